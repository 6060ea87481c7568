"""Which agents are not started, because their start kills the process (DESIGN §8.16).

A turn that kills is found by the places it writes down; the start of its agent comes before any of
them. So after two deaths soon after a start, agents start one at a time while the process is young,
each written down before. One at whose start the process died three times in a row stays asleep:
its turns wait, whoever asks for it is refused. An operator who retries one of its turns, or a start
after a planned stop, lets it try once more.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar

from thinkwell.core.errors import AgentParkedError
from thinkwell.journal.boots import SOON, Boot
from thinkwell.journal.starts import begin_start, end_start, is_deadly, start_reason
from thinkwell.store.base import Store

_inside: ContextVar[bool] = ContextVar("inside_a_start", default=False)
"""A start may need another agent, which must not wait for it."""


class Starts:
    """The starts of one life of the process."""

    def __init__(
        self,
        store: Store,
        boot: int = 0,
        *,
        before: Sequence[Boot] = (),
        deaths: Mapping[str, int] | None = None,
        monotonic: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._store = store
        self._boot = boot
        self._deaths = dict(deaths or {})
        planned = bool(before) and before[0].stopped_at is not None
        self.clean = planned or not before
        """Whether the life before this one was asked to stop, or there was none."""
        self._parked = {a for a, n in self._deaths.items() if is_deadly(n) and not planned}
        careful = len(before) > 1 and all(life.died_soon for life in before)
        self._monotonic = monotonic
        self._until = monotonic() + SOON if careful else 0.0
        self._one_at_a_time = asyncio.Lock()

    def in_order(self, agents: Iterable[str]) -> list[str]:
        """The worst first: they start while no turn runs that could kill the process instead."""
        return sorted(agents, key=lambda agent: -self._deaths.get(agent, 0))

    def parked(self, agent_id: str) -> str | None:
        """Why an agent stays asleep; None if it does not."""
        return start_reason(self._deaths[agent_id]) if agent_id in self._parked else None

    def allow(self, agent_id: str) -> bool:
        """An operator wants it to be tried. False if it is not parked."""
        was_parked = agent_id in self._parked
        self._parked.discard(agent_id)
        return was_parked

    def forget(self, agent_id: str) -> None:
        """The agent is deleted: another one of its name has not killed anything."""
        self._parked.discard(agent_id)
        self._deaths.pop(agent_id, None)

    def check(self, agent_id: str) -> None:
        """Raises `AgentParkedError` if the agent must not be started."""
        reason = self.parked(agent_id)
        if reason is not None:
            raise AgentParkedError(agent_id, reason)

    @asynccontextmanager
    async def watched(self, agent_id: str) -> AsyncGenerator[None]:
        """Around the start of an agent."""
        if self._monotonic() >= self._until and agent_id not in self._deaths:
            yield
            return
        async with self._alone():
            await begin_start(self._store, agent_id, self._boot)
            try:
                yield
            except Exception:
                await self._survived(agent_id)
                raise
            await self._survived(agent_id)

    async def _survived(self, agent_id: str) -> None:
        self._deaths.pop(agent_id, None)
        await end_start(self._store, agent_id)

    @asynccontextmanager
    async def _alone(self) -> AsyncGenerator[None]:
        """While the process is young nobody else starts; then a start that hangs holds up none."""
        holds = False
        if not _inside.get():
            try:
                async with asyncio.timeout(max(self._until - self._monotonic(), 0.0)):
                    holds = await self._one_at_a_time.acquire()
            except TimeoutError:
                pass
        inside = _inside.set(True)
        try:
            yield
        finally:
            _inside.reset(inside)
            if holds:
                self._one_at_a_time.release()
