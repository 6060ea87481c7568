"""Records of finished work have ages (spec/04 §10 retention, DESIGN §5, §8.15)."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.jobs.support import Stage, serving
from thinkwell import App, Retention, Think, tool
from thinkwell.errors import ConfigurationError
from thinkwell.host import upkeep
from thinkwell.host.client import AgentAddress
from thinkwell.host.upkeep import HOST, PAUSE
from thinkwell.journal.turns import TurnRecord, insert_turn
from thinkwell.store.sqlite import SqliteStore
from thinkwell.testing import ScriptedModel, call

DAY = 24 * 3600.0
AGENT = {"agent": "clerk/x"}


class Clerk(Think):
    model: Any = ScriptedModel([])
    paid: list[int] = []

    @tool(needs_approval=True)
    async def pay(self, amount: int) -> str:
        """Pay a bill."""
        self.paid.append(amount)
        return "paid"

    @tool
    async def note(self, text: str) -> str:
        """Write something down. Like every tool that says nothing else, `once`."""
        return f"noted: {text}"

    @tool(effect="pure")
    async def look(self, text: str) -> str:
        """Look something up."""
        return f"found {text}"


def scripted(*steps: Any) -> type[Clerk]:
    """The class with a model of its own."""
    return type("Clerk", (Clerk,), {"model": ScriptedModel(list(steps)), "paid": []}, name="clerk")


async def clean_up(stage: Stage) -> None:
    """Let the upkeep run until it finds nothing more."""
    before = len(_rounds(stage))
    stage.hours.move(PAUSE)
    await stage.until_true(
        lambda: any(told["due_at"] > stage.hours.now() for told in _rounds(stage)[before:])
    )


def _rounds(stage: Stage) -> list[Any]:
    return [told for told in stage.told("job:retried") if told["agent"] == HOST]


def words(seed: int, count: int) -> str:
    """Something that compresses as badly as a text."""
    rng = random.Random(seed)
    letters = "abcdefghijklmnopqrstuvwxyz"
    return " ".join("".join(rng.choices(letters, k=rng.randint(2, 9))) for _ in range(count))


def sizes(path: Path) -> Mapping[str, int]:
    """The bytes that rows take, by table, those of its indexes included."""
    with closing(sqlite3.connect(path)) as file:
        owner = dict(file.execute("SELECT name, tbl_name FROM sqlite_schema").fetchall())
        found: dict[str, int] = {}
        for name, size in file.execute("SELECT name, SUM(payload) FROM dbstat GROUP BY name"):
            table = owner.get(name, name)
            found[table] = found.get(table, 0) + size
    return found


async def test_after_clean_up_turns_journal_and_ledger_take_no_more_than_the_messages(
    tmp_path: Path,
):
    """Spec/04 §21 (files that grow) and the budget of storage: by bytes, indexes included."""
    steps: list[Any] = []
    for turn in range(40):
        kind = turn % 4
        if kind == 2:
            steps.append([call("note", {"text": words(turn, 20)})])
        if kind == 3:
            steps.append([call("look", {"text": words(turn, 20)})])
        steps.append(words(1000 + turn, 40 + 20 * kind))
    cls, path = scripted(*steps), tmp_path / "a.db"
    async with serving(cls, store=path) as stage:
        agent = await stage.agent(cls)
        for turn in range(40):
            await agent.run(words(2000 + turn, 12))
        whole = sizes(path)
        stage.hours.move(40 * DAY)
        await clean_up(stage)
        assert len(await agent.get_messages()) == 80
    kept = sizes(path)
    records = ("turns", "journal", "packed_journals", "tool_calls", "blobs", "blob_uses")
    assert sum(kept.get(t, 0) for t in records) <= kept["messages"]
    assert sum(whole.get(t, 0) for t in records) > whole["messages"]


async def test_a_question_that_waits_outlives_every_age():
    """Spec/04 §15: an open approval lives as long as its conversation."""
    cls = scripted([call("pay", {"amount": 7}, id="call-1")], "Paid it.")
    store = SqliteStore(":memory:")
    async with serving(cls, store=store) as stage:
        agent = await stage.agent(cls)
        asked = await agent.run("pay the bill")
        # A later turn that leaves the question open: the asking one is not the newest any more.
        await _insert_skipped(store)
        stage.hours.move(400 * DAY)
        await clean_up(stage)
        row = await store.fetch_one("turn_by_id", {**AGENT, "id": asked.request_id})
        assert row is not None
        assert row["input"] is not None
        assert await agent.respond_to_approval("call-1", approved=True)
        await (await stage.host.agent(_address(cls))).wait_until_idle()
        assert agent.paid == [7]


async def _insert_skipped(store: SqliteStore) -> None:
    async with store.transaction() as tx:
        await insert_turn(
            tx,
            TurnRecord(
                agent_id="clerk/x",
                request_id="later",
                trigger="ws-chat",
                status="skipped",
                generation=0,
            ),
        )


def _address(cls: Any) -> Any:
    return AgentAddress(cls.agent_class, "x")


async def test_claims_and_unknown_outcomes_stay_and_other_calls_go(tmp_path: Path):
    cls = scripted(
        [call("note", {"text": "a"}, id="n"), call("look", {"text": "b"}, id="l")], "Done.", "Hi."
    )
    path = tmp_path / "a.db"
    async with serving(cls, store=path) as stage:
        agent = await stage.agent(cls)
        done = await agent.run("work")
        await agent.run("hello")
        with closing(sqlite3.connect(path)) as file:
            file.execute(
                "INSERT INTO tool_calls (agent, turn, call_id, tool_name, input, effect, step, "
                "status, claimed_at) VALUES ('clerk/x', ?, 'lost', 'note', '{}', 'once', 0, "
                "'pending', 0)",
                (done.request_id,),
            )
            file.commit()
        stage.hours.move(40 * DAY)
        await clean_up(stage)
    with closing(sqlite3.connect(path)) as file:
        calls = file.execute(
            "SELECT call_id, outcome, input, output FROM tool_calls ORDER BY call_id"
        ).fetchall()
        (held,) = file.execute("SELECT input FROM turns ORDER BY seq LIMIT 1").fetchone()
    assert calls == [("lost", None, "{}", None), ("n", "executed", None, None)]
    assert held is not None  # a turn with an unknown outcome is kept whole


async def test_a_turn_is_forgotten_when_nothing_refers_to_it_any_more():
    cls = scripted("One.", "Two.", "Three.", "Four.")
    store = SqliteStore(":memory:")
    async with serving(cls, store=store) as stage:
        agent = await stage.agent(cls)
        for question in ("a", "b"):
            await agent.run(question)
        stage.hours.move(40 * DAY)
        await clean_up(stage)
        rows = await _turns(store)
        assert [row["input"] is None for row in rows] == [True, False]  # the newest stays whole
        assert rows[0]["message_id"] is not None
        assert rows[0]["message_ids"] is not None
        await agent.clear_messages()
        await agent.run("c")
        stage.hours.move(40 * DAY)
        await clean_up(stage)
        assert [row["seq"] for row in await _turns(store)] == [3]


async def test_an_idempotency_key_counts_as_long_as_turns_are_kept():
    """Spec/04 §10: terminal submissions are kept for 30 days by default."""
    cls = scripted("One.", "Two.", "Three.")
    async with serving(cls) as stage:
        agent = await stage.agent(cls)
        first = await agent.submit("go", idempotency_key="k")
        await stage.until("chat:turn:finish", 1)
        stage.hours.move(20 * DAY)
        await clean_up(stage)
        assert (await agent.submit("go", idempotency_key="k")).request_id == first.request_id
        await agent.run("something else")
        stage.hours.move(11 * DAY)
        await clean_up(stage)
        assert (await agent.submit("go", idempotency_key="k")).request_id != first.request_id
        await stage.until("chat:turn:finish", 3)


async def test_decided_questions_and_revoked_rules_go_at_the_age_of_decisions(tmp_path: Path):
    """A question that waits and a rule that holds stay, however old they are."""
    file = tmp_path / "x.db"
    pay = call("settle", {"amount": 5})
    cls = scripted([pay], "Paid.", [pay])

    class Named(cls, name="clerk"):
        @tool(needs_approval=True, approvers={"boss"})
        async def settle(self, amount: int) -> str:
            """Settle a bill."""
            return "settled"

    def count(table: str) -> int:
        with closing(sqlite3.connect(file)) as link:
            return link.execute(f"SELECT count(*) FROM {table}").fetchone()[0]

    tables = ("approvals", "approvers", "approval_rules")
    async with serving(Named, store=file) as stage:
        agent: Any = await stage.agent(Named)
        await agent.run("pay")
        await agent.respond_to_approval("call-1", approved=True)
        await agent._turns.wait_until_idle()
        revoked = await agent.approvals.allow("settle", {"amount": 1})
        await agent.approvals.allow("settle", {"amount": 2})
        await agent.approvals.revoke(revoked.id)
        await agent.run("again")
        assert [count(table) for table in tables] == [2, 2, 2]
        stage.hours.move(364 * DAY)
        await clean_up(stage)
        assert [count(table) for table in tables] == [2, 2, 2]
        stage.hours.move(2 * DAY)
        await clean_up(stage)
        assert [count(table) for table in tables] == [1, 1, 1]
        (asked,) = await agent.approvals.pending()
        assert (asked.tool_call_id, asked.approvers) == ("call-2", ("boss",))


async def test_what_is_kept_for_ever_stays():
    kept = Retention(
        journals=None, message_versions=None, turns=None, tool_calls=None, jobs=None, decisions=None
    )
    cls = scripted([call("look", {"text": "b"}, id="l")], "Done.", "Hi.")
    store = SqliteStore(":memory:")
    async with serving(cls, store=store, retention=kept) as stage:
        agent = await stage.agent(cls)
        done = await agent.run("work")
        await agent.run("hello")
        stage.hours.move(4000 * DAY)
        await clean_up(stage)
        named = {**AGENT, "turn": done.request_id}
        assert await store.fetch_one("packed_journal", named) is not None
        assert len(await store.fetch_all("calls_of_turn", named)) == 1
        assert all(row["input"] is not None for row in await _turns(store))


async def test_the_walk_over_turns_goes_piece_by_piece(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(upkeep, "TURN_PIECE", 2)
    cls = scripted(*["Yes."] * 7)
    store = SqliteStore(":memory:")
    async with serving(cls, store=store) as stage:
        agent = await stage.agent(cls)
        for _ in range(7):
            await agent.run("so?")
        stage.hours.move(40 * DAY)
        await clean_up(stage)
        assert [row["input"] is None for row in await _turns(store)] == [True] * 6 + [False]


async def _turns(store: SqliteStore) -> Any:
    found = await store.fetch_all("turns_from", {"after": 0, "limit": 99})
    named = [{"agent": row["agent"], "id": row["id"]} for row in found]
    return [await store.fetch_one("turn_by_id", each) for each in named]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"jobs": "7d"}, "jobs=timedelta"),
        ({"turns": -1}, "is no age"),
        ({"turns": True}, "is no age"),
        ({"journals": timedelta(days=9)}, "message_versions"),
        ({"journals": None}, "message_versions"),
    ],
)
def test_an_age_that_is_none_is_refused(given: Any, said: str):
    with pytest.raises(ConfigurationError, match=said):
        Retention(**given)


def test_an_app_wants_a_retention():
    wrong: Any = timedelta(days=7)
    with pytest.raises(ConfigurationError, match="Retention"):
        App(agents=[Clerk], store="sqlite://:memory:", retention=wrong)
