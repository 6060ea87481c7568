"""Jobs during which the process died: one of them may be what killed it.

While the new life of the process is young they run one after another, over all agents, so that the
next death is the killer's alone. Everything else goes on beside them: an agent whose suspect has to
wait is set aside and takes its other jobs. It is called when the suspect before has ended, or when
the process has lasted.
"""

from __future__ import annotations

from collections.abc import Callable

from thinkwell.core.clock import Clock
from thinkwell.core.tasks import TaskOwner
from thinkwell.journal.boots import SOON
from thinkwell.journal.jobs import Job
from thinkwell.journal.store_health import Sleep


class SuspectJobs:
    """The suspects of one life of the process. `call` hears whose may be tried now."""

    def __init__(
        self, clock: Clock, *, sleep: Sleep, tasks: TaskOwner, call: Callable[[str], None]
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._tasks = tasks
        self._call = call
        self._young_until = 0.0
        self._one_runs = False
        self._aside: dict[str, None] = {}  # agents, in the order they were set aside
        self._timed = False

    def start(self) -> None:
        """This life begins."""
        self._young_until = self._clock.monotonic() + SOON

    @property
    def must_wait(self) -> bool:
        """Whether no suspect may begin now."""
        return self._one_runs and self._clock.monotonic() < self._young_until

    def take_place(self, job: Job) -> bool:
        """A job begins. Whether suspects wait for it from now on, until `leave`."""
        taken = job.deaths > 0 and self._clock.monotonic() < self._young_until
        self._one_runs = self._one_runs or taken
        return taken

    def leave(self) -> None:
        """The suspect has ended."""
        self._one_runs = False
        self.call_next()

    def set_aside(self, agent_id: str) -> None:
        """The next due job of an agent is a suspect that has to wait."""
        self._aside[agent_id] = None
        if not self._timed:
            self._timed = True
            self._tasks.spawn(self._grow_up(), name="suspects")

    def call_next(self) -> None:
        """Let the next agent try, unless a suspect runs. Its own may be gone: then it calls on."""
        if self._aside and not self.must_wait:
            agent_id = next(iter(self._aside))
            del self._aside[agent_id]
            self._call(agent_id)

    async def _grow_up(self) -> None:
        await self._sleep(self._young_until - self._clock.monotonic())
        self._young_until = 0.0
        while self._aside:
            self.call_next()
