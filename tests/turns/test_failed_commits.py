"""A commit that fails leaves nothing in memory that a later one would store (DESIGN §5, §8.17).

The disk refuses single commits; the store then writes again. Whoever was refused had no effect, and
what is told beside it is what is stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.turns.support import (
    Stage,
    fail_next_commit,
    loosely,
    part_of,
    running,
    until_event,
    untyped,
)
from thinkwell import Think, tool
from thinkwell.core.errors import StoreUnavailableError
from thinkwell.journal.ledger import read_ledger
from thinkwell.journal.reading import read_journal
from thinkwell.messages.message import text_of
from thinkwell.store.base import Params
from thinkwell.store.sqlite_link import SqliteLink
from thinkwell.testing import call, pause


class Careful(Think):
    ran = 0

    @tool(needs_approval=True)
    async def danger(self) -> str:
        """Ask first."""
        self.ran += 1
        return "boom"

    @tool(effect="once")
    async def pay(self) -> str:
        """Pay."""
        self.ran += 1
        return "paid"


def look_at_once(stage: Stage[Any]) -> None:
    """A store that fails is looked at without waiting."""
    loosely(stage.host)._shared.commits.health._sleep = lambda _: asyncio.sleep(0)


async def recovered(stage: Stage[Any]) -> None:
    await until_event(stage, "store:recovered")


class TestAnApproval:
    async def test_that_was_refused_has_no_effect_and_can_be_given_again(
        self, monkeypatch: pytest.MonkeyPatch
    ):
        async with running(Careful, [call("danger", {}, id="c1")], "done") as stage:
            look_at_once(stage)
            client = await stage.connect()
            await client.ask("go")
            await client.until_end()
            fail_next_commit(monkeypatch)
            with pytest.raises(StoreUnavailableError):
                await stage.agent.respond_to_approval("c1", True)
            await recovered(stage)
            await untyped(stage)._turns.wait_until_idle()
            assert stage.agent.ran == 0
            assert await stage.agent.respond_to_approval("c1", True)
            await untyped(stage)._turns.wait_until_idle()
            assert stage.agent.ran == 1

    async def test_that_was_refused_while_another_tool_runs_is_not_stored_later(
        self, monkeypatch: pytest.MonkeyPatch
    ):
        gate = asyncio.Event()

        class Waits(Careful):
            @tool
            async def slow(self) -> str:
                """Take long."""
                await gate.wait()
                return "ok"

        calls = [call("danger", {}, id="c1"), call("slow", {}, id="c2")]
        async with running(Waits, calls, "done") as stage:
            look_at_once(stage)
            client = await stage.connect()
            await client.ask("go")
            await client.until(lambda f: "tool-approval-request" in f.get("body", ""))
            running_turn = untyped(stage)._turns.running
            before = dict(running_turn.reply.fold.tool_call("c1"))
            fail_next_commit(monkeypatch)
            with pytest.raises(StoreUnavailableError):
                await stage.agent.respond_to_approval("c1", True)
            assert running_turn.reply.fold.tool_call("c1") == before
            await recovered(stage)
            gate.set()
            await client.until_end()
            await untyped(stage)._turns.wait_until_idle()
            assert stage.agent.ran == 0
            assert part_of(await stage.answer(), "c1")["state"] == "approval-requested"
            assert stage.fields("chat:decision") == []


class TestAToolsResult:
    async def test_and_its_ledger_row_are_stored_together_or_not_at_all(
        self, monkeypatch: pytest.MonkeyPatch
    ):
        """The disk takes small writes and not the result: nobody may hear of that alone."""
        async with running(Careful, [call("pay", {}, id="c1")], "thanks") as stage:
            look_at_once(stage)
            client = await stage.connect()
            disk = refuse_commits_with(monkeypatch, "settle_call")
            await client.ask("go")
            await disk.probed.wait()
            parts, record = untyped(stage)._turns.parts, untyped(stage)._turns.running.record
            journal = await read_journal(parts.store, record)
            ledger = await read_ledger(parts.store, record)
            assert [b for b in journal.bodies if "tool-output-available" in b] == []
            assert ledger["c1"].outcome is None
            assert not [c for c in client.chunks() if c["type"] == "tool-output-available"]
            disk.refuses = False
            await client.until_end()
            outputs = [c for c in client.chunks() if c["type"] == "tool-output-available"]
            assert (len(outputs), stage.agent.ran) == (1, 1)
            assert text_of(await stage.answer()) == "thanks"

    async def test_a_claim_is_in_the_journal_only_with_its_row(
        self, monkeypatch: pytest.MonkeyPatch
    ):
        async with running(Careful, [call("pay", {}, id="c1")], "thanks") as stage:
            look_at_once(stage)
            client = await stage.connect()
            disk = refuse_commits_with(monkeypatch, "claim_call")
            await client.ask("go")
            await disk.probed.wait()
            turn = untyped(stage)._turns.running
            journal = await read_journal(turn.parts.store, turn.record)
            assert journal.of_kind("claim") == []
            disk.refuses = False
            await client.until_end()
            assert stage.agent.ran == 1


class TestAClear:
    async def test_that_fails_in_a_shared_transaction_leaves_every_told_chunk_stored(
        self, monkeypatch: pytest.MonkeyPatch
    ):
        gate = pause()

        async def refuse(*_: Any) -> None:
            raise ValueError("a feature's write")

        monkeypatch.setattr("thinkwell.turn.ask.clear._forget", refuse)
        async with running(Careful, ["one", gate, "two"]) as stage:
            client = await stage.connect()
            await client.ask("go")
            await gate.reached()
            turns = untyped(stage)._turns
            turn = turns.running
            await turns.parts.commits.flush()
            await turn.emit({"type": "data-note", "data": 1})
            await asyncio.gather(
                stage.agent.clear_messages(),
                stage.agent.storage.set("other", 1),
                return_exceptions=True,
            )
            await turn.emit({"type": "data-note", "data": 2})
            await turns.parts.commits.flush()
            stored = await read_journal(turns.parts.store, turn.record)
            assert list(stored.bodies) == turn.log.bodies[: turn.log.written]
            gate.open()
            await client.until_end()
            assert text_of(await stage.answer()) == "onetwo"


class refuse_commits_with:  # noqa: N801 - reads as what it does
    """Commits of transactions in which a query ran fail; `probed` says that another one went."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, query: str) -> None:
        self.refuses = True
        self.probed = asyncio.Event()
        self._query = query
        self._seen: set[str] = set()
        execute, commit = SqliteLink.execute, SqliteLink.commit

        def note(link: SqliteLink, name: str, params: Params) -> int:
            self._seen.add(name)
            return execute(link, name, params)

        monkeypatch.setattr(SqliteLink, "execute", note)
        monkeypatch.setattr(SqliteLink, "commit", lambda link: self._commit(link, commit))

    def _commit(self, link: SqliteLink, commit: Callable[[SqliteLink], None]) -> None:
        seen, self._seen = self._seen, set()
        if self.refuses and self._query in seen:
            link.rollback()
            raise StoreUnavailableError("the disk is full")
        commit(link)
        if self.refuses and "erase_probe" in seen:
            self.probed.set()
