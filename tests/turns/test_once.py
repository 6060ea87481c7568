"""`once` holds for a call of the conversation (DESIGN §8.15, spec/04 §15.1).

The crash is a store that loses its process at the right moment: the first host is left with the
tool at work, and another one goes on from the file.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.turns.support import Stage, running, until_event, untyped
from thinkwell import Think, tool
from thinkwell.messages.message import tool_parts
from thinkwell.store.sqlite import SqliteStore
from thinkwell.testing import call
from thinkwell.tools import Done, EarlierCall, NotDone

PAY = call("pay", {"amount": 9})


class Base(Think):
    runs: ClassVar[int] = 0
    asked: ClassVar[list[EarlierCall]] = []
    verdict: ClassVar[Any] = None
    at_work: ClassVar[asyncio.Event]
    go_on: ClassVar[asyncio.Event]
    holds: ClassVar[bool] = True

    async def _pay(self, amount: int) -> str:
        Base.runs += 1
        if self.holds:
            self.at_work.set()
            await self.go_on.wait()
        return f"paid {amount}"


class Till(Base):
    @tool(effect="once")
    async def pay(self, amount: int) -> str:
        """Pay."""
        return await self._pay(amount)


class Asks(Base):
    """Its tool can find out."""

    @staticmethod
    async def look(earlier: EarlierCall) -> Any:
        Base.asked.append(earlier)
        if isinstance(Base.verdict, Exception):
            raise Base.verdict
        return Base.verdict

    @tool(effect="once", reconcile=look)
    async def pay(self, amount: int) -> str:
        """Pay."""
        return await self._pay(amount)


@pytest.fixture(autouse=True)
def fresh() -> None:
    Base.runs, Base.asked, Base.verdict, Base.holds = 0, [], None, True
    Base.at_work, Base.go_on = asyncio.Event(), asyncio.Event()


async def crash_while_paying(file: Path, cls: type[Base] = Till) -> None:
    """The process ends while the tool runs; nothing it does afterwards is stored."""
    async with running(cls, [PAY], store=SqliteStore(file), drain=0) as stage:
        await stage.agent.submit("pay nine", submission_id="r1")
        await Base.at_work.wait()
    Base.holds = False


async def recovered(stage: Stage[Any]) -> None:
    await untyped(stage)._turns.wait_until_idle()


async def states(stage: Stage[Any]) -> list[str]:
    return [
        str(part["state"]) for message in await stage.messages() for part in tool_parts(message)
    ]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "thinkwell.db"


async def test_an_insisting_model_pays_once_in_its_turn_a_continuation_and_a_new_turn(file: Path):
    await crash_while_paying(file)
    steps = [[PAY], "sorry", [PAY], "again sorry", [PAY], "and again"]
    async with running(Till, *steps, store=SqliteStore(file)) as stage:
        await recovered(stage)
        await stage.agent.continue_last_turn()
        await stage.agent.run("pay nine, I said")
        assert (await states(stage), Base.runs) == (["output-error"] * 4, 1)
        texts = [p["errorText"] for m in await stage.messages() for p in tool_parts(m)]
        assert all("outcome is unknown" in text for text in texts)
        assert len(stage.fields("tool:outcome_unknown")) == 3


async def test_another_input_another_tool_and_a_settled_call_are_not_refused(file: Path):
    await crash_while_paying(file)
    other = call("pay", {"amount": 8})
    async with running(Till, "sorry", [other], [other], "ok", store=SqliteStore(file)) as stage:
        await recovered(stage)
        await stage.agent.run("pay eight, twice")
        assert (await states(stage), Base.runs) == (["output-error", *["output-available"] * 2], 3)


async def test_two_equal_calls_beside_each_other_both_run(file: Path):
    Base.holds = False
    async with running(Till, [PAY, PAY], "ok", store=SqliteStore(file)) as stage:
        await stage.agent.run("pay nine, twice")
        assert (await states(stage), Base.runs) == (["output-available"] * 2, 2)


async def test_a_clear_forgets_it(file: Path):
    await crash_while_paying(file)
    async with running(Till, "sorry", [PAY], "ok", store=SqliteStore(file)) as stage:
        await recovered(stage)
        await stage.agent.clear_messages()
        await stage.agent.run("pay nine")
        assert (await states(stage), Base.runs) == (["output-available"], 2)


@pytest.mark.parametrize(
    ("said", "runs", "output"),
    [
        ({"output": "receipt 7"}, 1, "receipt 7"),
        ({"output": None}, 1, None),
        ({"error": "declined"}, 2, "paid 9"),
    ],
)
async def test_somebody_who_knows_can_say_what_came_of_it(
    file: Path, said: dict[str, Any], runs: int, output: str
):
    await crash_while_paying(file)
    async with running(Till, "sorry", [PAY], "ok", [PAY], "ok", store=SqliteStore(file)) as stage:
        await recovered(stage)
        assert await stage.agent.resolve_tool_outcome("call-1", **said)
        assert not await stage.agent.resolve_tool_outcome("call-1", **said)
        await stage.agent.run("pay nine")
        (part,) = tool_parts(await stage.answer())
        assert (part["output"], Base.runs) == (output, runs)
        await stage.agent.run("and once more")  # that is a new wish, not the old one
        assert Base.runs == runs + 1


@pytest.mark.parametrize("said", [{}, {"output": "receipt 7", "error": "declined"}])
async def test_whoever_says_what_came_of_it_says_one_thing(said: dict[str, Any]):
    async with running(Till) as stage:
        with pytest.raises(TypeError, match=r"resolve_tool_outcome\(call_id, output="):
            await stage.agent.resolve_tool_outcome("call-1", **said)


@pytest.mark.parametrize(
    ("verdict", "state", "runs"),
    [
        (Done("receipt 7"), "output-available", 1),
        (NotDone(), "output-available", 2),
        (None, "output-error", 1),
        (RuntimeError("no answer"), "output-error", 1),
    ],
)
async def test_reconcile_decides_for_the_call_that_was_cut(
    file: Path, verdict: Any, state: str, runs: int
):
    await crash_while_paying(file, Asks)
    Base.verdict = verdict
    async with running(Asks, "ok", store=SqliteStore(file)) as stage:
        await recovered(stage)
        assert (await states(stage), Base.runs) == ([state], runs)
        (earlier,) = Base.asked
        assert (earlier.tool_name, earlier.input) == ("pay", {"amount": 9})
        assert len(earlier.idempotency_key) == 32


@pytest.mark.parametrize(("verdict", "runs"), [(Done("receipt 7"), 1), (NotDone(), 2), (None, 1)])
async def test_reconcile_decides_for_the_same_call_in_a_later_turn(
    file: Path, verdict: Any, runs: int
):
    await crash_while_paying(file, Asks)
    async with running(Asks, "sorry", [PAY], "ok", store=SqliteStore(file)) as stage:
        await recovered(stage)
        Base.verdict = verdict
        await stage.agent.run("pay nine")
        assert Base.runs == runs


class Stubborn(Base):
    """Its tool does not stop when it is told to."""

    time_limits = {"grace": 0.0}

    @tool(effect="once")
    async def pay(self, amount: int) -> str:
        """Pay."""
        Base.runs += 1
        Base.at_work.set()
        while not Base.go_on.is_set():
            with suppress(asyncio.CancelledError):
                await Base.go_on.wait()
        return f"paid {amount}"


async def test_a_call_left_behind_is_not_made_again_and_its_late_result_is_told_once():
    steps = [[PAY], [PAY], "sorry", [PAY], "ah, paid", [PAY], "paid again"]
    async with running(Stubborn, *steps) as stage:
        first = asyncio.ensure_future(stage.agent.run("pay nine"))
        await Base.at_work.wait()
        await stage.agent.cancel_chat()
        await first
        await stage.agent.run("and now?")
        assert (await states(stage), Base.runs) == (["output-error"] * 2, 1)
        Base.go_on.set()
        await until_event(stage, "tool:ended_late")
        await stage.agent.run("has it been paid?")
        (part,) = tool_parts(await stage.answer())
        assert (part["output"], Base.runs) == ("paid 9", 1)
        await stage.agent.run("pay another nine")  # a new wish
        assert Base.runs == 2


class Heeds(Base):
    """Its tools stop at once when they are cancelled; the payment may be on its way."""

    time_limits: ClassVar[Any] = {"tool": 0.01}

    @tool(effect="once", timeout=600)
    async def pay(self, amount: int) -> str:
        """Pay."""
        return await self._pay(amount)

    @tool(effect="once")
    async def pay_soon(self, amount: int) -> str:
        """Pay, within the limit."""
        return await self._pay(amount)

    @tool(effect="idempotent", timeout=600)
    async def look(self, amount: int) -> str:
        """Look."""
        return await self._pay(amount)


async def stop_while_it_runs(stage: Stage[Any]) -> None:
    first = asyncio.ensure_future(stage.agent.run("go"))
    await Base.at_work.wait()
    await stage.agent.cancel_chat()
    await first
    Base.holds = False


async def test_a_call_that_heeds_a_stop_may_have_happened_and_is_not_made_again():
    async with running(Heeds, [PAY], [PAY], "sorry") as stage:
        await stop_while_it_runs(stage)
        (part,) = tool_parts(await stage.answer())
        assert "It may have happened." in part["errorText"]
        await stage.agent.run("pay nine, I said")
        (part,) = tool_parts(await stage.answer())
        assert "outcome is unknown" in part["errorText"]
        assert Base.runs == 1


async def test_a_call_that_heeds_its_time_limit_may_have_happened_and_is_not_made_again():
    pay = call("pay_soon", {"amount": 9})
    async with running(Heeds, [pay], "sorry", [pay], "sorry") as stage:
        await stage.agent.run("pay nine")
        (part,) = tool_parts(await stage.answer())
        assert "within 0.01 s and was stopped. It may have happened." in part["errorText"]
        Base.holds = False
        await stage.agent.run("pay nine, I said")
        assert (await states(stage), Base.runs) == (["output-error"] * 2, 1)


async def test_a_stopped_call_that_may_be_repeated_is_made_again():
    look = call("look", {"amount": 9})
    async with running(Heeds, [look], [look], "seen") as stage:
        await stop_while_it_runs(stage)
        (part,) = tool_parts(await stage.answer())
        assert part["errorText"] == "Stopped before it finished: cancelled"
        await stage.agent.run("look again")
        assert Base.runs == 2


@pytest.mark.parametrize(("verdict", "runs"), [(Done("receipt 7"), 1), (NotDone(), 2), (None, 1)])
async def test_reconcile_decides_for_a_call_that_was_stopped(verdict: Any, runs: int):
    async with running(Asks, [PAY], [PAY], "ok") as stage:
        await stop_while_it_runs(stage)
        Base.verdict = verdict
        await stage.agent.run("pay nine")
        assert (len(Base.asked), Base.runs) == (1, runs)


async def test_an_error_hook_that_rewords_an_unknown_outcome_does_not_settle_it(file: Path):
    class Rewords(Till):
        async def on_tool_error(self, ctx: Any) -> dict[str, Exception]:
            return {"error": ValueError("something went wrong")}

    await crash_while_paying(file, Rewords)
    async with running(Rewords, "sorry", [PAY], "sorry", store=SqliteStore(file)) as stage:
        await recovered(stage)
        await stage.agent.run("pay nine")
        assert (await states(stage), Base.runs) == (["output-error"] * 2, 1)
