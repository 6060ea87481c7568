"""Budgets: reserved before a step, settled after it, and what a breach does (spec/02 §8)."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from click.testing import CliRunner

from tests.turns.support import Log, Stage
from thinkwell import App, Budget, Think, TurnConfig, tool
from thinkwell.cli.main import main
from thinkwell.core import json
from thinkwell.core.budgets import BudgetError
from thinkwell.core.clock import SystemClock
from thinkwell.core.errors import (
    AgentDefinitionError,
    ConfigurationError,
    ModelBusyError,
    ModelError,
)
from thinkwell.core.principal import Principal
from thinkwell.core.signal import AbortSignal
from thinkwell.hooks import TurnContext
from thinkwell.host.client import AgentAddress
from thinkwell.host.deletions import delete_unserved
from thinkwell.host.erasure import erase_unserved
from thinkwell.host.host import Host
from thinkwell.journal.spending import ScopeSums, standing_of
from thinkwell.messages.usage import Usage
from thinkwell.models import Price
from thinkwell.models.base import Bookmark, Finish, ModelEvent, ModelRequest
from thinkwell.models.provider_errors import UnreachableError
from thinkwell.store.sqlite import SqliteStore
from thinkwell.testing import ScriptedModel, call, error, pause, text
from thinkwell.turn.run.worst_case import estimate_input

PRICES = {"scripted:scripted": Price(input=1, output=1)}
STEP = 15_000
"""What a scripted step really costs: fifteen tokens."""


def agent_with(budget: Any, *steps: Any, limit: int | None = None) -> type[Think]:
    class Spender(Think):
        model = ScriptedModel(steps)

        def before_turn(self, ctx: TurnContext) -> TurnConfig:
            return TurnConfig(system="x", max_output_tokens=limit)

        @tool
        def look(self) -> str:
            """Look."""
            return "seen"

    Spender.budget = budget
    return Spender


@asynccontextmanager
async def app_with(tmp_path: Path, *classes: type[Think], **options: Any) -> AsyncIterator[App]:
    options = {"prices": PRICES, **options}
    async with App(list(classes), store=f"sqlite:///{tmp_path}/b.db", **options) as app:
        yield app


async def ledger(app: App) -> dict[str, ScopeSums]:
    """Every scope and how it stands."""
    store = app._host._shared.store  # type: ignore[union-attr]
    rows = await store.fetch_all("list_spending", {"agent": None, "limit": 1000})
    return {row["scope"]: standing_of(row) for row in rows}


async def test_a_step_costs_what_it_used_and_gives_back_the_rest(tmp_path: Path):
    cls = agent_with(Budget(usd=1, per="agent"), [call("look")], "done")
    async with app_with(tmp_path, cls) as app:
        result = await app.agent(cls, "a").run("go")
        assert result.status == "completed"
        assert await ledger(app) == {
            "spender|agent:spender/a|": ScopeSums(nano_usd=2 * STEP, tokens=30)
        }


async def test_a_breach_ends_the_turn_with_the_figures_and_clients_read_no_amounts(tmp_path: Path):
    cls = agent_with(Budget(usd="0.0005", per="agent"), "never")
    async with app_with(tmp_path, cls) as app:
        result = await app.agent(cls).run("go")
        assert result.status == "error"
        assert "The budget per agent of $0.0005 has no room for this step" in (result.error or "")
        assert "max_output_tokens" in (result.error or "")
        assert cls.model.requests == []
        assert all(s.reserved_nano_usd == 0 for s in (await ledger(app)).values())


async def test_a_budget_that_is_used_up_ends_the_turn_between_two_steps(tmp_path: Path):
    cls = agent_with(Budget(tokens=1500, per="turn"), *[[call("look")]] * 8, "done", limit=500)
    async with app_with(tmp_path, cls) as app:
        result = await app.agent(cls).run("go")
        assert result.status == "error"
        assert 1 <= len(cls.model.requests) < 9
        (standing,) = (await ledger(app)).values()
        assert standing.tokens + standing.reserved_tokens <= 1500


async def test_little_room_limits_the_output_instead_of_refusing(tmp_path: Path):
    cls = agent_with(Budget(tokens=3000, per="turn"), "short")
    async with app_with(tmp_path, cls) as app:
        assert (await app.agent(cls).run("go")).status == "completed"
        (request,) = cls.model.requests
        assert request.max_output_tokens == 1024


async def test_without_a_budget_the_ledger_stays_empty(tmp_path: Path):
    cls = agent_with((), "done")
    async with app_with(tmp_path, cls) as app:
        await app.agent(cls).run("go")
        assert await ledger(app) == {}


async def test_a_budget_in_dollars_needs_a_price_and_says_where_to_give_it(tmp_path: Path):
    cls = agent_with(Budget(usd=1), "never")
    async with app_with(tmp_path, cls, prices=None) as app:
        result = await app.agent(cls).run("go")
        assert 'App(prices={"scripted:scripted": Price(' in (result.error or "")


async def test_dollars_and_tokens_of_one_scope_are_reserved_once(tmp_path: Path):
    budgets = [Budget(usd=1, per="agent"), Budget(tokens=99_000, per="agent")]
    cls = agent_with(budgets, [call("look")], "done")
    async with app_with(tmp_path, cls) as app:
        assert (await app.agent(cls, "a").run("go")).status == "completed"
        assert await ledger(app) == {
            "spender|agent:spender/a|": ScopeSums(nano_usd=2 * STEP, tokens=30)
        }


async def test_a_question_is_for_the_approvers_of_the_budget_that_asks(tmp_path: Path):
    dollars = Budget(usd=1, per="agent", on_breach="ask", approvers=("cfo",))
    tokens = Budget(tokens=1100, per="agent", on_breach="ask", approvers=("ops",))
    cls = agent_with([dollars, tokens], "never")
    async with app_with(tmp_path, cls) as app:
        agent = app.agent(cls, "a")
        await agent.run("x" * 300)
        (waiting,) = await agent.approvals.pending()
        assert waiting.input["question"].endswith("tokens more?")
        assert waiting.approvers == ("ops",)


async def test_more_goes_to_the_budget_that_counts_in_its_unit():
    cls = agent_with([Budget(usd=1, per="agent"), Budget(tokens=500, per="agent")], "one")
    async with host_with(cls, "a") as (_, (a,)):
        state = await a.budgets.extend(tokens=1000, per="agent")
        assert (state.usd, state.tokens) == (None, 1500)


async def test_the_app_s_budget_counts_for_all_agents(tmp_path: Path):
    one, two = agent_with((), "done"), agent_with((), "done")
    two.agent_class = "other"
    async with app_with(tmp_path, one, budget=Budget(usd=5, per="day")) as app:
        await app.agent(one, "a").run("go")
        (scope,) = await ledger(app)
        assert scope.startswith("*|all:|20")


async def test_a_question_about_the_budget_is_a_durable_wait_that_somebody_answers(tmp_path: Path):
    budget = Budget(tokens=1200, per="agent", on_breach="ask", more_tokens=2000)
    cls = agent_with(budget, "first", "second", limit=500)
    async with app_with(tmp_path, cls) as app:
        agent = app.agent(cls, "a")
        assert (await agent.run("go")).status == "completed"
        asked = await agent.run("x" * 600)
        assert (asked.status, asked.stop_reason) == ("completed", "approval")
        (waiting,) = await agent.approvals.pending()
        assert waiting.tool_name == "raise_budget"
        assert waiting.input["question"] == "Continue with 2,000 tokens more?"
    async with app_with(tmp_path, cls) as app:  # a restart changes nothing
        agent = app.agent(cls, "a")
        assert await agent.approvals.respond(waiting.id, approved=True)
        await agent.wait_until_stable()
        messages = await agent.get_messages()
        assert messages[-1]["parts"][-1]["text"] == "second"
        (standing,) = (await ledger(app)).values()
        assert (standing.added_tokens, standing.tokens) == (2000, 30)
        last = cls.model.requests[-1]
        assert "raise_budget" not in repr(last.messages)  # the model is not told of money


async def test_a_no_ends_the_turn_and_nobody_is_asked_again(tmp_path: Path):
    budget = Budget(tokens=1100, per="agent", on_breach="ask")
    cls = agent_with(budget, "never")
    async with app_with(tmp_path, cls) as app:
        agent = app.agent(cls, "a")
        await agent.run("x" * 300)
        (waiting,) = await agent.approvals.pending()
        await agent.approvals.respond(waiting.id, approved=False)
        await agent.wait_until_stable()
        assert await agent.approvals.pending() == []
        assert cls.model.requests == []
        (standing,) = (await ledger(app)).values() or (ScopeSums(),)
        assert standing.added_tokens == 0


async def test_no_rule_allows_more_once_and_for_all(tmp_path: Path):
    cls = agent_with(Budget(tokens=1100, per="agent", on_breach="ask"), "never")
    async with app_with(tmp_path, cls) as app:
        agent = app.agent(cls, "a")
        await agent.run("x" * 300)
        (waiting,) = await agent.approvals.pending()
        with pytest.raises(Exception, match="raise_budget"):
            await agent.approvals.allow_always(waiting.id)


class FakeTime(SystemClock):
    """A clock that a test sets."""

    at = datetime(2026, 5, 1, 23, 30, tzinfo=UTC).timestamp()

    def now(self) -> float:
        return self.at


@asynccontextmanager
async def host_with(cls: type[Think], *names: str, **options: Any) -> AsyncIterator[Any]:
    clock = FakeTime()
    host = Host([cls], SqliteStore(":memory:"), clock=clock, prices=PRICES, **options)
    await host.start()
    try:
        found = [await host.agent(AgentAddress(cls.agent_class, name)) for name in names]
        agents: list[Any] = [activation.agent for activation in found]
        for agent in agents:
            agent.host_of_test = host
        yield clock, agents
    finally:
        await host.stop()


async def test_a_day_is_over_at_midnight_utc(tmp_path: Path):
    cls = agent_with(Budget(tokens=1000, per="day"), "one", "two", limit=400)
    async with host_with(cls, "a", "b") as (clock, (a, b)):
        assert (await a.run("x" * 400)).status == "completed"
        await a.budgets.extend(tokens=1, per="day")
        (before,) = await b.budgets.states()
        assert (before.spent_tokens, before.tokens) == (15, 1001)  # one sum for the whole class
        clock.at += 3600
        (after,) = await b.budgets.states()
        assert (after.spent_tokens, after.tokens) == (0, 1000)


async def test_a_day_can_begin_where_people_live(tmp_path: Path):
    cls = agent_with(Budget(tokens=9000, per="day", timezone="Europe/Berlin"), "one", limit=400)
    async with host_with(cls, "a") as (clock, (a,)):  # 01:30 of the next day in Berlin
        await a.run("go")
        clock.at += 3600
        (state,) = await a.budgets.states()
        assert state.spent_tokens == 15


async def test_a_principal_has_one_budget_across_agents():
    budget = Budget(tokens=9000, per=("principal", "day"))
    cls = agent_with(budget, "one", "two", limit=400)
    async with host_with(cls, "x", "y") as (_, agents):
        for agent in agents:
            stage = Stage(agent.host_of_test, agent, cls.model, Log())
            client = await stage.connect(principal=Principal(id="alice"))
            await client.ask("go")
            await agent.wait_until_stable()
        (state,) = await agents[1].budgets.states(principal="alice")
        assert state.spent_tokens == 30
        (state,) = await agents[1].budgets.states(principal="bob")
        assert state.spent_tokens == 0


async def test_code_of_the_app_may_allow_more_and_says_where(tmp_path: Path):
    cls = agent_with([Budget(tokens=500, per="agent"), Budget(tokens=9000)], "one", limit=400)
    async with host_with(cls, "a") as (_, (a,)):
        assert (await a.run("x" * 300)).status == "error"
        state = await a.budgets.extend(tokens=1000)
        assert (state.tokens, state.shared) == (1500, False)
        assert (await a.run("again")).status == "completed"
        with pytest.raises(BudgetError, match="There are: per agent, per turn"):
            await a.budgets.extend(tokens=1, per="day")
        with pytest.raises(BudgetError, match="in tokens only"):
            await a.budgets.extend(usd=1)
        with pytest.raises(BudgetError, match="message_id="):
            await a.budgets.extend(tokens=1, per="turn")
        with pytest.raises(BudgetError, match="Say how much more"):
            await a.budgets.extend()


async def test_what_a_provider_refuses_costs_nothing_and_each_try_reserves(tmp_path: Path):
    refused = error(ModelError("busy", status=429, retryable=True))
    cls = agent_with(Budget(tokens=9000, per="agent"), [refused], "done", limit=400)
    async with host_with(cls, "a", sleep=_at_once) as (_, (a,)):
        assert (await a.run("go")).status == "completed"
        (state,) = await a.budgets.states()
        assert (state.spent_tokens, state.reserved_tokens) == (15, 0)


async def test_a_connection_that_was_lost_counts_as_spent(tmp_path: Path):
    lost = error(ModelError("gone", retryable=True, cut=True))
    cls = agent_with(Budget(tokens=9000, per="agent"), [lost], "done", limit=400)
    async with host_with(cls, "a", sleep=_at_once) as (_, (a,)):
        assert (await a.run("go")).status == "completed"
        (state,) = await a.budgets.states()
        assert state.spent_tokens > 15 + 400
        assert state.reserved_tokens == 0


def unreachable() -> ModelError:
    failed = ModelError("down", retryable=True, cut=True)
    failed.__cause__ = UnreachableError("no connection")
    return failed


@pytest.mark.parametrize(
    "failure", [unreachable(), ModelBusyError("no slot", retryable=True)], ids=["network", "slots"]
)
async def test_a_request_that_never_left_costs_nothing(failure: ModelError):
    cls = agent_with(Budget(tokens=9000, per="agent"), [error(failure)], "done", limit=400)
    async with host_with(cls, "a", sleep=_at_once) as (_, (a,)):
        assert (await a.run("go")).status == "completed"
        (state,) = await a.budgets.states()
        assert (state.spent_tokens, state.reserved_tokens) == (15, 0)


class LosesKept(ScriptedModel):
    """Says that it keeps the answer, loses the connection, and then does not know the answer."""

    async def stream(self, request: ModelRequest, signal: AbortSignal) -> AsyncIterator[ModelEvent]:
        if not self.requests:
            yield Bookmark({"id": "1"})
        async for event in super().stream(request, signal):
            yield event

    async def resume(
        self, token: Mapping[str, Any], request: ModelRequest, signal: AbortSignal
    ) -> AsyncIterator[ModelEvent]:
        yield Bookmark(None)
        yield error(ModelError("no such answer", status=404))

    async def cancel(self, token: Mapping[str, Any]) -> None:
        """Nothing runs there."""


async def test_a_kept_answer_that_cannot_be_read_again_counts_as_spent():
    cls = agent_with(Budget(tokens=9000, per="agent"), limit=400)
    cls.model = LosesKept([[error(ModelError("gone", retryable=True, cut=True))], "done"])
    async with host_with(cls, "a", sleep=_at_once) as (_, (a,)):
        assert (await a.run("go")).status == "completed"
        (state,) = await a.budgets.states()
        assert state.spent_tokens > 15 + 400
        assert state.reserved_tokens == 0


@pytest.mark.parametrize(
    "end",
    [
        Finish(reason="stop", usage=Usage(output_tokens=5)),
        Finish(reason="stop", usage=Usage(input_tokens=10)),
        Finish(
            reason="stop",
            usage=Usage(input_tokens=10, output_tokens=5),
            answered_by="scripted:unpriced",
        ),
    ],
    ids=["no input", "no output", "no price"],
)
async def test_half_a_bill_counts_as_all_that_was_reserved(tmp_path: Path, end: Finish):
    cls = agent_with(Budget(usd=1, per="agent"), [text("done"), end], limit=400)
    async with app_with(tmp_path, cls) as app:
        assert (await app.agent(cls, "a").run("go")).status == "completed"
        (standing,) = (await ledger(app)).values()
        assert standing.nano_usd > 400 * 1000
        assert standing.reserved_nano_usd == 0
        assert (standing.tokens == 15) == (end.answered_by is not None)


def test_the_worst_case_counts_bytes_of_tools_and_schemas():
    word = "\N{SNOWMAN}" * 100
    plain = ModelRequest(system="", messages=())
    tools = [{"name": "look", "description": word, "parameters": {}}]
    asked = msgspec.structs.replace(plain, tools=tools)
    assert estimate_input(asked) - estimate_input(plain) > 300
    asked = msgspec.structs.replace(plain, response_format={"description": word})
    assert estimate_input(asked) - estimate_input(plain) > 300


async def leave_reserved(tmp_path: Path) -> SqliteStore:
    """The store of an app that stopped in the second turn of `a`, for ann: its step is reserved."""
    gate = pause()
    cls = agent_with(Budget(tokens=9000, per="day"), "one", [gate, "never"], limit=400)
    async with app_with(tmp_path, cls, drain_timeout=0.1) as app:
        agent = app.agent(cls, "a")
        await agent.run("go")
        await agent.submit("go on")
        await gate.reached()
    with closing(sqlite3.connect(tmp_path / "b.db")) as file:
        file.execute("UPDATE turns SET principal = '{\"id\":\"ann\"}' WHERE status = 'running'")
        file.commit()
    assert reserved_and_spent(tmp_path) > (400, 15)
    store = SqliteStore(str(tmp_path / "b.db"))
    await store.open()
    return store


def reserved_and_spent(tmp_path: Path) -> tuple[int, int]:
    with closing(sqlite3.connect(tmp_path / "b.db")) as file:
        (count,) = file.execute("SELECT COUNT(*) FROM reservations").fetchone()
        (sums,) = file.execute("SELECT reserved_tokens, tokens FROM spending").fetchall()
    assert count == (sums[0] > 0)
    return sums


async def test_what_a_deleted_agent_had_reserved_is_spent(tmp_path: Path):
    store = await leave_reserved(tmp_path)
    assert await delete_unserved(store, "spender/a", now=1.0)
    await store.close()
    reserved, spent = reserved_and_spent(tmp_path)
    assert (reserved, spent > 15 + 400) == (0, True)


async def test_what_an_erased_turn_had_reserved_is_spent(tmp_path: Path):
    store = await leave_reserved(tmp_path)
    await erase_unserved(store, "ann", now=1.0)
    await store.close()
    reserved, spent = reserved_and_spent(tmp_path)
    assert (reserved, spent > 15 + 400) == (0, True)


async def test_the_upkeep_closes_what_a_turn_without_its_budget_has_left(tmp_path: Path):
    await (await leave_reserved(tmp_path)).close()
    cls = agent_with((), "done")
    async with app_with(tmp_path, cls) as app:
        await app.agent(cls, "a").wait_until_stable()
        assert reserved_and_spent(tmp_path)[1] == 15
        host = cast("Any", app)._host
        await host._upkeep.drop_old_rows()
        reserved, spent = reserved_and_spent(tmp_path)
        assert (reserved, spent > 15 + 400) == (0, True)


async def test_the_upkeep_leaves_what_a_step_that_runs_has_reserved(tmp_path: Path):
    gate = pause()
    cls = agent_with(Budget(tokens=9000, per="day"), [gate, "done"], limit=400)
    async with app_with(tmp_path, cls) as app:
        agent = app.agent(cls, "a")
        await agent.submit("go")
        await gate.reached()
        host = cast("Any", app)._host
        await host._upkeep.drop_old_rows()
        assert reserved_and_spent(tmp_path) > (400, 0)
        gate.open()
        await agent.wait_until_stable()
        assert reserved_and_spent(tmp_path) == (0, 15)


async def _at_once(_: float) -> None:
    """No test waits for time."""


async def test_a_chain_reserves_for_its_dearest_model(tmp_path: Path):
    cheap = ScriptedModel([[error(ModelError("down", status=503))]], model_id="cheap")
    dear = ScriptedModel(["done"], model_id="dear")
    cls = agent_with(Budget(usd=1, per="agent"), limit=400)
    cls.model = [cheap, dear]
    prices = {"scripted:cheap": Price(input=1, output=1), "scripted:dear": Price(input=9, output=9)}
    async with app_with(tmp_path, cls, prices=prices) as app:
        result = await app.agent(cls).run("go")
        assert result.usage.nano_usd == 15 * 9000
        (standing,) = (await ledger(app)).values()
        assert standing.nano_usd == 15 * 9000
        story = await app.turns.show(result.request_id)
        reserved = story.steps[0].models[0].reserved
        assert reserved is not None
        assert reserved > 400 * 9e-6


async def test_a_model_that_can_have_no_price_is_refused_at_the_start(tmp_path: Path):
    cls = agent_with(Budget(usd=1))
    cls.model = "ollama:llama3"
    with pytest.raises(ConfigurationError, match=r'App\(prices=\{"ollama:llama3": Price\('):
        async with app_with(tmp_path, cls):
            pass
    free = {"ollama:llama3": Price(input=0, output=0)}
    async with app_with(tmp_path, cls, prices=free):
        pass


async def test_a_model_whose_name_has_no_provider_is_its_own(tmp_path: Path):
    cls = agent_with(Budget(usd=1))
    cls.model = "demo"
    with pytest.raises(ConfigurationError, match=r'App\(prices=\{"demo:demo": Price\('):
        async with app_with(tmp_path, cls):
            pass
    async with app_with(tmp_path, cls, prices={"demo:demo": Price(input=0, output=0)}):
        pass


async def test_a_budget_in_tokens_does_not_warn_of_dollars(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    cls = agent_with(Budget(tokens=1_000_000), "one")
    async with app_with(tmp_path, cls) as app:
        assert (await app.agent(cls).run("hi")).status == "completed"
    assert "more than was reserved" not in caplog.text
    cls.budget = Budget(tokens=10)
    async with app_with(tmp_path, cls):
        pass


async def test_the_command_line_shows_how_budgets_stand(tmp_path: Path):
    cls = agent_with([Budget(usd=1, per="agent"), Budget(tokens=99_000, per="day")], "done")
    async with app_with(tmp_path, cls) as app:
        await app.agent(cls, "a").run("go")
    store = ["--store", f"sqlite:///{tmp_path}/b.db"]
    shown = CliRunner().invoke(main, ["budgets", *store]).output
    assert "agent spender/a" in shown
    assert "$0.000015, 15 tokens" in shown
    (row,) = json.loads(
        CliRunner().invoke(main, ["budgets", "--agent", "spender/a", "--json", *store]).output
    )
    assert (row["nanoUsd"], row["reservedNanoUsd"]) == (STEP, 0)


async def test_a_client_s_yes_passes_authorize_and_names_no_amount():
    class Guarded(agent_with(Budget(tokens=1100, per="agent", on_breach="ask"), "never")):
        def authorize(self, action: str, principal: Any, subject: Any) -> bool:
            return action != "approve"

    async with host_with(Guarded, "a") as (_, (a,)):
        await a.run("x" * 300)
        (waiting,) = await a.approvals.pending()
        client = await Stage(a.host_of_test, a, Guarded.model, Log()).connect()
        forged = {"toolCallId": waiting.tool_call_id, "approved": True, "input": {"tokens": 10**9}}
        await client.send(type="cf_agent_tool_approval", **forged)
        assert [asked.id for asked in await a.approvals.pending()] == [waiting.id]
        (state,) = await a.budgets.states()
        assert (state.tokens, state.spent_tokens) == (1100, 0)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"usd": 5, "per": "tree"}, "comes with sub-agents"),
        ({}, "limits nothing"),
        ({"usd": -1}, r"Budget\(usd=-1\) is wrong"),
        ({"tokens": 0}, "above 0"),
        ({"usd": 1, "per": "week"}, "'principal', 'day'"),
        ({"usd": 1, "per": ("agent", "principal")}, "two sums"),
        ({"usd": 1, "more_usd": 1}, 'Add on_breach="ask"'),
        ({"usd": 1, "timezone": "Mars/Base"}, "Europe/Berlin"),
        ({"usd": 1, "on_breach": "wait"}, '"stop" or "ask"'),
    ],
)
def test_what_is_no_budget_is_refused_with_what_to_write(given: dict[str, Any], text: str):
    with pytest.raises(ConfigurationError, match=text):
        Budget(**given)


def test_a_class_with_something_else_as_its_budget_is_refused():
    with pytest.raises(AgentDefinitionError, match=r"A.budget is 5. Give a Budget"):

        class A(Think):
            budget = 5  # type: ignore[assignment]

    with pytest.raises(AgentDefinitionError, match="two budgets of usd per day"):

        class B(Think):
            budget = [Budget(usd=1, per="day"), Budget(usd=2, per="day")]

    with pytest.raises(AgentDefinitionError, match="two budgets of usd per day and agent"):

        class C(Think):
            budget = [Budget(usd=1, per=("agent", "day")), Budget(usd=2, per=("day", "agent"))]
