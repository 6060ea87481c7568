"""Fibers as they are stored: jobs of one name, whose stash says how far they came.

There is no other record. What a user stashed, and how the function ended, are two fields of the
job's stash; the status of a fiber is a view of both (`read_fiber`, pure).
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, cast

import msgspec

from thinkwell.core import json
from thinkwell.journal.jobs import Job, readable_job
from thinkwell.store.base import Reader, Transaction

FIBER_JOB = "fibers.run"
FiberStatus: TypeAlias = Literal[
    "pending", "running", "completed", "aborted", "interrupted", "error"
]


class Fiber(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How a fiber stands."""

    fiber_id: str
    name: str
    status: FiberStatus
    accepted: bool = True
    """False if the fiber was there already: the function given now is not called."""
    snapshot: Any = None
    """What it stashed last."""
    error: str | None = None
    """Why it failed or was stopped."""
    metadata: Any = None
    idempotency_key: str | None = None
    managed: bool = True
    """Whether it was started, not only run: then it can be looked at after its end."""
    attempt: int = 0
    created_at: float = 0.0
    started_at: float | None = None
    settled_at: float | None = None

    @property
    def settled(self) -> bool:
        """Whether nobody has to wait for it any more."""
        return self.status not in ("pending", "running")


class FiberEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How the function of a fiber ended."""

    status: Literal["completed", "aborted", "interrupted", "error"]
    error: str | None = None


def fiber_stash(snapshot: Any, end: FiberEnd | None = None, metadata: Any = None) -> dict[str, Any]:
    """What the job of a fiber remembers."""
    said = None if end is None else msgspec.structs.asdict(end)
    return {"snapshot": snapshot, "end": said, "metadata": metadata}


def read_fiber(job: Job, *, accepted: bool = True) -> Fiber:
    """The fiber that a job is."""
    payload, stash = _mapping(job.payload), _mapping(job.stash)
    end = _mapping(stash.get("end"))
    status, error = _status(job, end)
    kept = stash.get("metadata")
    return Fiber(
        fiber_id=job.id,
        name=str(payload.get("fiber", "")),
        status=status,
        accepted=accepted,
        snapshot=stash.get("snapshot"),
        error=error,
        metadata=payload.get("metadata") if kept is None else kept,
        idempotency_key=payload.get("key"),
        managed=bool(payload.get("managed")),
        attempt=job.attempt,
        created_at=job.created_at,
        started_at=job.started_at,
        settled_at=job.finished_at,
    )


def _status(job: Job, end: dict[str, Any]) -> tuple[FiberStatus, str | None]:
    match job.status:
        case "waiting":
            return ("pending" if job.attempt == 0 else "running"), None
        case "running" if end and job.cancel_requested is None:
            return end["status"], end.get("error")  # only its row does not say so yet
        case "running":
            # A cancel counts at once, however long the function takes to see it.
            stopped = job.cancel_requested is not None
            return ("aborted", job.cancel_requested) if stopped else ("running", None)
        case "cancelled":
            return "aborted", job.cancel_requested
        case "failed":
            return "error", job.error
        case "done":
            return end.get("status", "completed"), end.get("error")


def _mapping(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


async def newest_fibers(reader: Reader, agent_id: str, limit: int) -> list[Fiber]:
    """Those that were started or run last, the newest first. An id may be the caller's own and
    sorts by nothing, so the order is that of the rows.
    """
    return await _fibers(reader, "newest_fibers", agent_id, limit)


async def first_ended_fibers(reader: Reader, agent_id: str, limit: int) -> list[Fiber]:
    """Those that ended first, in the order they did."""
    return await _fibers(reader, "first_ended_fibers", agent_id, limit)


async def _fibers(reader: Reader, query: str, agent_id: str, limit: int) -> list[Fiber]:
    asked = {"agent": agent_id, "name": FIBER_JOB, "limit": limit}
    rows = await reader.fetch_all(query, asked)
    return [read_fiber(job) for row in rows if (job := readable_job(row)) is not None]


async def resolve_stash(tx: Transaction, job: Job, stash: dict[str, Any]) -> bool:
    """Say what came of a fiber that has ended. False if it has not."""
    fields = {"agent": job.agent_id, "id": job.id, "stash": json.dumps(stash)}
    return await tx.execute("resolve_fiber", fields) == 1


async def delete_fiber_job(tx: Transaction, job: Job) -> bool:
    """Forget a fiber that is over."""
    named = {"agent": job.agent_id, "id": job.id}
    return await tx.execute("delete_ended_job", named) == 1
