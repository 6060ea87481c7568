"""`agent.jobs`: durable calls of the agent's own methods, outside its turns.

Enqueueing writes a row; the host's one runner (`host/job_runner.py`) calls the handler when the job
is due, in the agent but beside its turns, and wakes the agent for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from thinkwell.core.errors import JobError
from thinkwell.core.ids import new_id
from thinkwell.features.jobs.desk import JobDesk, checked_json
from thinkwell.features.jobs.shapes import check_shapes, check_status, due_at
from thinkwell.journal.jobs import (
    BASE_DELAY,
    MAX_ATTEMPTS,
    MAX_DELAY,
    Job,
    JobStatus,
    find_job,
    jobs_of_agent,
)


class Jobs:
    """The jobs of one agent."""

    def __init__(self, desk: JobDesk) -> None:
        self._desk = desk

    @property
    def desk(self) -> JobDesk:
        """What features build on whose work is jobs of another kind: schedules, for instance."""
        return self._desk

    async def enqueue(
        self,
        name: str,
        payload: Any = None,
        *,
        due: datetime | float | None = None,
        delay: timedelta | float | None = None,
        key: str | None = None,
        max_attempts: int = MAX_ATTEMPTS,
        base_delay: float = BASE_DELAY,
        max_delay: float = MAX_DELAY,
    ) -> Job:
        """Have the method `name` called with `payload`, at least once, also after a crash.

        At once, `delay` seconds from now (or a timedelta), or when it is `due` (a datetime with a
        time zone, or seconds since the epoch). The same `key` again gives the first job. A handler
        that raises is called again up to `max_attempts` times, with pauses that grow from
        `base_delay` seconds to `max_delay`. Raises `JobError` for what cannot run.

        It works on behalf of whoever asked for what runs now, and so do the turns it asks for.
        Inside `async with storage.together():` it is enqueued with what the block writes.
        """
        check_shapes(name, key, max_attempts, base_delay=base_delay, max_delay=max_delay)
        now = self._desk.clock.now()
        asker = self._desk.asking(self._desk.agent_id)
        job = Job(
            agent_id=self._desk.agent_id,
            id=new_id(),
            name=name,
            payload=_payload(name, payload),
            due_at=due_at(now, due, delay),
            key=key,
            max_attempts=max_attempts,
            base_delay=base_delay,
            max_delay=max_delay,
            created_at=now,
            principal=None if asker is None else asker.principal,
            read_only=asker is not None and asker.read_only,
        )
        return await self._desk.enqueue(job)

    async def get(self, id: str) -> Job | None:
        """The job with that id, or None."""
        return await find_job(self._desk.reader, self._desk.agent_id, id)

    async def list(
        self, status: JobStatus | None = None, name: str | None = None, limit: int = 100
    ) -> Sequence[Job]:
        """The jobs of this agent, the newest first. `Retention` says how long ended ones stay."""
        check_status(status)
        desk = self._desk
        return await jobs_of_agent(
            desk.reader, desk.agent_id, status=status, name=name, limit=limit
        )

    async def cancel(self, id: str, reason: str = "cancelled") -> bool:
        """Cancel a job: one that waits never runs, of one that runs `ctx.signal` aborts.

        False if it has ended, is being cancelled already, or does not exist.
        """
        return await self._desk.cancel(id, reason)


def _payload(name: str, payload: Any) -> Any:
    try:
        return checked_json(payload)
    except ValueError as error:
        raise JobError(
            f"The payload of {name!r} cannot be stored: {error}. Enqueue what JSON can hold, for "
            f"example an id: `enqueue({name!r}, {{'id': 7}})`."
        ) from error
