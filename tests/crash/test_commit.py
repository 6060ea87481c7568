"""What joins a journal while a commit is under way is not lost (spec/04 §4, W7)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from thinkwell.core.clock import SystemClock
from thinkwell.core.tasks import TaskOwner
from thinkwell.journal.group_commit import GroupCommit
from thinkwell.journal.turn_log import Owner, TurnLog
from thinkwell.store.ownership import claim
from thinkwell.store.sqlite import SqliteStore

AGENT = "talker/one"


class SlowCommits(SqliteStore):
    """A store whose commits wait for a gate."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.committing = asyncio.Event()
        self.gate = asyncio.Event()

    def transaction(self) -> Any:
        return _Slow(self, super().transaction())


class _Slow:
    def __init__(self, store: SlowCommits, inner: Any) -> None:
        self._store = store
        self._inner = inner

    async def __aenter__(self) -> Any:
        return await self._inner.__aenter__()

    async def __aexit__(self, *error: Any) -> None:
        self._store.committing.set()
        await self._store.gate.wait()
        await self._inner.__aexit__(*error)


async def test_an_event_that_comes_during_a_commit_is_in_the_next_one(tmp_path: Path):
    store, tasks = SlowCommits(tmp_path / "a.db"), TaskOwner("test")
    await store.open()
    store.gate.set()
    owned = await claim(store, AGENT, cls="talker", name="one", now=0.0)
    commits, log = GroupCommit(store, SystemClock()), TurnLog(Owner(AGENT, owned.epoch), "r1")
    store.gate.clear()
    store.committing.clear()
    log.append('{"type":"start"}')
    commits.note(log)
    first = tasks.spawn(commits.flush(), name="first")
    await store.committing.wait()
    log.append_event("model", "{}")
    commits.note(log)
    store.gate.set()
    await first
    await commits.close()
    rows = await store.fetch_all("read_journal", {"agent": AGENT, "turn": "r1", "start": 0})
    assert [row["kind"] for row in rows] == ["chunks", "model"]
    await store.close()
