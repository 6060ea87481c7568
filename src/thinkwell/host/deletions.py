"""Agents that are deleted and whose rows still have to go.

The same work whether the agent was deleted now or by a process that died meanwhile. Whoever asks
for the agent waits for it, and finds a new one.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from thinkwell.agent.wiring import Shared
from thinkwell.core.errors import StoreError
from thinkwell.core.tasks import TaskOwner
from thinkwell.journal.crash_points import crash_here
from thinkwell.journal.trimming import erase_live_rows
from thinkwell.store.deleting import deleted_agents, remove_piece

log = logging.getLogger("thinkwell.host")


class Deletions:
    """Removes the rows of marked agents, each in one task."""

    def __init__(self, shared: Shared, tasks: TaskOwner) -> None:
        self._shared = shared
        self._tasks = tasks
        self._marked: dict[str, asyncio.Task[None] | None] = {}

    def __contains__(self, agent_id: str) -> bool:
        return agent_id in self._marked

    async def take_up(self) -> None:
        """Go on with what a process that is gone has begun."""
        try:
            left = await deleted_agents(self._shared.store)
        except StoreError:  # damage: the others start
            log.critical("what is deleted cannot be read", exc_info=True, extra={"action": "start"})
            return
        for agent_id in left:
            self._begin(agent_id)

    async def erase(self, agent_id: str) -> None:
        """Until nothing is left of a marked agent. Leaving stops nothing."""
        task = self._marked.get(agent_id)
        if task is None or task.done():  # it failed: this is the next try
            task = self._begin(agent_id)
        await asyncio.shield(task)

    def _begin(self, agent_id: str) -> asyncio.Task[None]:
        task = self._tasks.spawn(self._erase(agent_id), name=f"erase:{agent_id}")
        self._marked[agent_id] = task
        return task

    async def _erase(self, agent_id: str) -> None:
        store, commits = self._shared.store, self._shared.commits
        commit = partial(commits.insist, None)
        crash_here("d0")
        while await commit(lambda tx: remove_piece(tx, agent_id)):
            crash_here("d1")
            await asyncio.sleep(0)
        # Its turns are gone: none keeps its live rows.
        await erase_live_rows(store, commit, agent_id)
        await commit(lambda tx: tx.execute("remove_agent", {"agent": agent_id}))
        commits.forget_bodies(agent_id)
        await store.scrub()
        del self._marked[agent_id]
