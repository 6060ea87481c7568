"""Agents that are deleted: marked, then their rows go.

The same work whether the agent was deleted now or by a process that died meanwhile. Whoever asks
for the agent waits for it, and finds a new one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from thinkwell.agent.wiring import Shared
from thinkwell.core.errors import StoreError
from thinkwell.core.events import AgentDestroyed
from thinkwell.core.tasks import TaskOwner
from thinkwell.journal.asked import if_not_stored
from thinkwell.journal.crash_points import crash_here
from thinkwell.journal.spending import close_all_of
from thinkwell.journal.trimming import erase_live_rows
from thinkwell.journal.turn_log import Owner
from thinkwell.store.base import Commit, Store, Transaction, commit_alone
from thinkwell.store.deleting import (
    PIECE,
    deleted_agents,
    has_rows,
    mark_deleted,
    remove_agent,
    remove_piece,
)

log = logging.getLogger("thinkwell.host")


class Deletions:
    """Removes agents that nobody runs any more, each in one task. `gone` hears of each."""

    def __init__(self, shared: Shared, tasks: TaskOwner, gone: Callable[[str], None]) -> None:
        self._shared = shared
        self._tasks = tasks
        self._gone = gone
        self._going: dict[str, asyncio.Task[None]] = {}

    def __contains__(self, agent_id: str) -> bool:
        return agent_id in self._going

    async def take_up(self) -> None:
        """Go on with what a process that is gone has begun."""
        try:
            left = await deleted_agents(self._shared.store)
        except StoreError:  # damage: the others start
            log.critical("what is deleted cannot be read", exc_info=True, extra={"action": "start"})
            return
        for agent_id in left:
            self._begin(agent_id, marked=True)

    async def remove(self, agent_id: str) -> None:
        """Until nothing is left of an agent. Leaving stops nothing."""
        task = self._going.get(agent_id)
        if task is None:
            task = self._begin(agent_id, marked=False)
        elif task.done():  # it failed, but not at the mark: this is the next try
            task = self._begin(agent_id, marked=True)
        await asyncio.shield(task)

    async def remove_marked(self, agent_id: str) -> None:
        """The same for an agent that counts as deleted already. If it fails, whoever asks for the
        agent next tries again.
        """
        await asyncio.shield(self._begin(agent_id, marked=True))

    def _begin(self, agent_id: str, *, marked: bool) -> asyncio.Task[None]:
        work = self._remove(agent_id, marked=marked)
        task = self._tasks.spawn(work, name=f"remove:{agent_id}")
        self._going[agent_id] = task
        return task

    async def _remove(self, agent_id: str, *, marked: bool) -> None:
        if not marked:
            try:
                await self._mark(agent_id)
            except BaseException:
                del self._going[agent_id]  # it is still there, and can be woken
                raise
        # A failure from here on leaves it in `_going`: nobody may own what is marked, so only
        # another try helps whoever asks for it.
        await self._erase(agent_id)
        del self._going[agent_id]
        self._gone(agent_id)
        self._shared.bus.emit(AgentDestroyed, agent=agent_id)

    async def _mark(self, agent_id: str) -> None:
        """From this commit on nobody owns it: whoever still writes for it is refused."""
        now, owner = self._shared.clock.now(), self._shared.owners.get(agent_id)

        async def mark(tx: Transaction) -> None:
            await mark_deleted(tx, agent_id, now=now)
            if owner is not None:
                # At once: what shares this transaction comes too late already. And for good, for
                # an owner that never had a row could otherwise make the agent anew.
                if_not_stored(partial(_keep, owner))
                owner.over = owner.deleted = True

        await self._shared.commits.run(None, mark)

    async def _erase(self, agent_id: str) -> None:
        store, commits = self._shared.store, self._shared.commits
        await _erase_rows(store, partial(commits.insist, None), agent_id)
        commits.forget_blobs(agent_id)
        await store.scrub()


async def _erase_rows(store: Store, commit: Commit, agent_id: str) -> None:
    crash_here("d0")

    async def piece(tx: Transaction) -> bool:
        await close_all_of(tx, agent_id, limit=PIECE)
        return await remove_piece(tx, agent_id)

    while await commit(piece):
        crash_here("d1")
        await asyncio.sleep(0)
    # Its turns are gone: none keeps its live rows.
    await erase_live_rows(store, commit, agent_id)
    await commit(lambda tx: remove_agent(tx, agent_id))


async def delete_unserved(store: Store, agent_id: str, *, now: float) -> bool:
    """Delete an agent of an open store that no host serves. False if there is nothing of it.

    The same marks and pieces: if this process dies, the next host or the next try goes on.
    """

    commit = partial(commit_alone, store)
    if not await has_rows(store, agent_id):
        return False
    await commit(lambda tx: mark_deleted(tx, agent_id, now=now))
    await _erase_rows(store, commit, agent_id)
    await store.scrub()
    return True


def _keep(owner: Owner) -> None:
    """The mark is not stored: the agent is still there."""
    owner.over = owner.deleted = False
