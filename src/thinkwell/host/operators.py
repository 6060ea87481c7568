"""What operators do to a running host: pause an agent and resume it, stop turns.

Stored first, then honoured, also by an agent that is just starting. One that sleeps is not woken
for it: it finds the row when it wakes. So an agent whose start is broken can be paused and its
turns stopped all the same.
"""

from __future__ import annotations

from collections.abc import Callable

from thinkwell.agent.wiring import Shared
from thinkwell.core.events import AgentPaused, AgentResumed
from thinkwell.journal.crash_points import crash_here
from thinkwell.journal.operating import (
    Which,
    pause_agent,
    paused_agents,
    resume_agent,
    stop_turns,
)


class Operators:
    """Carries out what operators ask for."""

    def __init__(
        self,
        shared: Shared,
        go_on: Callable[[str], None],
    ) -> None:
        self._shared = shared
        self._go_on = go_on

    async def start(self) -> None:
        """Read who is paused, before anything begins."""
        self._shared.paused.update(await paused_agents(self._shared.store))

    async def pause(self, agent_id: str, reason: str) -> bool:
        """Let nothing of an agent begin any more. What runs goes on to its end. False if there is
        no such agent.
        """
        shared, now = self._shared, self._shared.clock.now()
        if not await shared.commits.run(
            None, lambda tx: pause_agent(tx, agent_id, reason, now=now)
        ):
            return False
        crash_here("c18")
        shared.paused[agent_id] = reason
        if (turns := shared.turns.get(agent_id)) is not None:
            turns.pause(reason)
        shared.bus.emit(AgentPaused, agent=agent_id, reason=reason)
        return True

    async def resume(self, agent_id: str) -> bool:
        """Let it go on. False if it was not paused."""
        shared = self._shared
        stored = await shared.commits.run(None, lambda tx: resume_agent(tx, agent_id))
        # Whatever the row says: what we believe must not outlive it.
        known = shared.paused.pop(agent_id, None) is not None
        if not (stored or known):
            return False
        if (turns := shared.turns.get(agent_id)) is not None:
            turns.resume()
        shared.bus.emit(AgentResumed, agent=agent_id)
        self._go_on(agent_id)
        return True

    async def stop_turns(self, which: Which, reason: str) -> int:
        """Stop turns that run or wait. How many there were."""
        stopped = await self._shared.commits.run(None, lambda tx: stop_turns(tx, which, reason))
        crash_here("c16")
        for agent_id, request_id in stopped:
            if (turns := self._shared.turns.get(agent_id)) is not None:
                turns.abort(request_id, reason)
        return len(stopped)
