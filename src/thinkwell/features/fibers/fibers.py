"""`agent.fibers`: functions that remember how far they came (spec/04 §2).

A fiber is a job. The host's one runner calls it in the agent, beside turns, and keeps the agent
awake for it. A function given here lives in this process only: after a crash its job is run again
and finds no function, and then `on_fiber_recovered` is asked. A method marked `@fiber` is found by
its name and goes on from what it stashed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Self, TypeVar

import msgspec

from thinkwell.core import json
from thinkwell.core.errors import AbortedError, FiberError, HostClosedError
from thinkwell.core.events import FiberEnded, FiberInterrupted, FiberSkipped, FiberStarted
from thinkwell.core.ids import new_id
from thinkwell.core.signal import Disposer
from thinkwell.core.user_code import call_user
from thinkwell.features.fibers.checks import (
    ENDS,
    check_function,
    checked_result,
    mapping_of,
    read_statuses,
    reason_of,
    storable,
)
from thinkwell.features.fibers.context import (
    MAX_ATTEMPTS,
    FiberContext,
    FiberFunction,
    FiberRecovery,
    current_fiber,
    mark_of,
    marked_method,
)
from thinkwell.features.jobs.desk import JobDesk
from thinkwell.hooks.feature import Feature
from thinkwell.hooks.jobs import JobContext, JobHandler
from thinkwell.journal.fibers import (
    FIBER_JOB,
    Fiber,
    FiberEnd,
    FiberStatus,
    delete_fiber_job,
    fiber_stash,
    first_ended_fibers,
    newest_fibers,
    read_fiber,
    resolve_stash,
)
from thinkwell.journal.jobs import Job, find_job, find_job_by_key

log = logging.getLogger("thinkwell.fibers")

T = TypeVar("T")
OLDEST = 24 * 3600.0
"""Seconds after which an unmanaged fiber whose recovery always fails is dropped."""
MOST_TRIES = 1_000
"""Of such a recovery: the pause between two of them grows to five minutes."""
STOPPED = "The app stopped while the fiber ran; its next start takes it up."
MOST_LISTED, MOST_DELETED = 100, 500
_READ = 1_000
"""Rows that are looked at for a list."""


class _Live:
    """A fiber of this process: its function until it is called, and who waits for its end."""

    def __init__(self, function: FiberFunction | None, release: Disposer) -> None:
        self.function = function
        self.release = release
        self.value: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.over = asyncio.Event()
        """Set when it has ended, or is to be waited for no longer."""


class Fibers(Feature):
    """The fibers of one agent."""

    name = "fibers"
    _live: dict[str, _Live]
    _starting: asyncio.Lock

    def __copy__(self) -> Self:
        """Each agent has fibers of its own."""
        made = type(self)()
        made._live, made._starting = {}, asyncio.Lock()
        return made

    def jobs(self) -> Mapping[str, JobHandler]:
        """Every fiber is a job of this one handler."""
        return {"run": self._run}

    @property
    def _desk(self) -> JobDesk:
        return self.kit.agent.jobs.desk

    # Start

    async def run(self, name: str, function: Callable[[FiberContext], Awaitable[T]]) -> T:
        """Run a function and give back what it returns, or raise what it raises.

        Cancelling whoever waits cancels it. After a crash `on_fiber_recovered` is asked.
        """
        check_function(name, function)
        job = self._job(name, function, managed=False)
        live = await self._enqueue(job, function)
        try:
            return await asyncio.shield(live.value)
        except asyncio.CancelledError:
            if not live.value.done():
                await self._desk.cancel(job.id, "the caller was cancelled")
            raise

    async def start(
        self,
        name: str,
        function: FiberFunction | None = None,
        *,
        fiber_id: str | None = None,
        idempotency_key: str | None = None,
        metadata: Any = None,
        wait_for_completion: bool = False,
    ) -> Fiber:
        """Start a function, or the method marked `@fiber(name)`, and return how it stands.

        The same id or key again gives the first fiber with `accepted=False`. With
        `wait_for_completion` it returns when the fiber has ended. Never the function's value.
        """
        for given, what in ((fiber_id, "fiber_id"), (idempotency_key, "idempotency_key")):
            if given is not None and not (isinstance(given, str) and given.strip()):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise FiberError(f"start() was given {what}={given!r}. Give a text, or leave it.")
        function = self._found(name, function)
        async with self._starting:
            known = await self._known(fiber_id, idempotency_key)
            job = known or self._job(
                name,
                function,
                managed=True,
                id=fiber_id,
                key=idempotency_key,
                metadata=storable(name, metadata),
            )
            if known is None:
                await self._enqueue(job, function)
        if wait_for_completion:
            await self._until_settled(job.id)
        found = await self.inspect(job.id)
        fiber = read_fiber(job) if found is None else found
        return msgspec.structs.replace(fiber, accepted=known is None)

    def _found(self, name: str, function: FiberFunction | None) -> FiberFunction:
        if function is not None:
            check_function(name, function)
            return function
        marked = marked_method(self.kit.agent, name)
        if marked is None:
            raise FiberError(
                f"{type(self.kit.agent).__name__} has no method marked @fiber({name!r}). Write "
                f"one, or give a function: `start({name!r}, function)`."
            )
        return marked[0]

    async def _known(self, fiber_id: str | None, key: str | None) -> Job | None:
        reader, agent_id = self._desk.reader, self._desk.agent_id
        by_id = None if fiber_id is None else await find_job(reader, agent_id, fiber_id)
        by_key = None if key is None else await find_job_by_key(reader, agent_id, f"fiber:{key}")
        if by_id is not None and by_key is not None and by_id.id != by_key.id:
            raise FiberError(
                f"fiber_id={fiber_id!r} and idempotency_key={key!r} name two different fibers. "
                "Give one of them."
            )
        found = by_id or by_key
        if found is not None and found.name != FIBER_JOB:
            raise FiberError(f"{fiber_id!r} is the id of a job that is no fiber.")
        return found

    def _job(
        self,
        name: str,
        function: FiberFunction,
        *,
        managed: bool,
        id: str | None = None,
        key: str | None = None,
        metadata: Any = None,
    ) -> Job:
        mark, now = mark_of(function), self._desk.clock.now()
        asker = self._desk.asking(self._desk.agent_id)
        return Job(
            agent_id=self._desk.agent_id,
            id=id or new_id(),
            name=FIBER_JOB,
            payload={
                "fiber": name,
                "marked": None if mark is None else mark.name,
                "managed": managed,
                "key": key,
                "metadata": metadata,
                "at": now,
            },
            due_at=now,
            key=None if key is None else f"fiber:{key}",
            max_attempts=(MOST_TRIES if not managed else MAX_ATTEMPTS)
            if mark is None
            else mark.max_attempts,
            created_at=now,
            principal=None if asker is None else asker.principal,
            read_only=asker is not None and asker.read_only,
        )

    async def _enqueue(self, job: Job, function: FiberFunction) -> _Live:
        live = self._live[job.id] = _Live(function, self.kit.keep_awake())
        try:
            await self._desk.enqueue(job)
        except BaseException:
            self._forget(job.id)
            raise
        return live

    # The job

    async def _run(self, payload: Any, ctx: JobContext) -> None:
        """One attempt of a fiber."""
        live = self._live.get(ctx.id)
        function = None if live is None else live.function
        if live is not None:
            live.function = None  # an attempt that follows would do everything twice
        end = mapping_of(mapping_of(ctx.stashed).get("end"))
        try:
            if end:
                return  # it had ended; only that was not written to its row
            marked = self._marked(payload, ctx)
            call = function if function is not None else marked
            if call is None:
                await self._recover(payload, ctx)
            else:
                await self._call(call, payload, ctx, live)
        except asyncio.CancelledError:
            stopped = AbortedError(ctx.signal.reason or "cancelled")
            _fail(live, stopped if ctx.signal.aborted else HostClosedError(STOPPED))
            raise
        finally:
            self._forget(ctx.id)

    def _marked(self, payload: Any, ctx: JobContext) -> FiberFunction | None:
        """The method that goes on where an attempt was cut off."""
        if payload.get("marked") is None:
            return None
        found = marked_method(self.kit.agent, payload["marked"])
        if found is None or not (found[1].auto_resume or not ctx.resumed):
            return None
        return found[0]

    async def _call(
        self, function: FiberFunction, payload: Any, ctx: JobContext, live: _Live | None
    ) -> None:
        facts = self._facts(payload, ctx)
        self.kit.events.emit(FiberStarted, **facts, attempt=ctx.attempt)
        context = self._context(payload, ctx)
        token = current_fiber.set(context)
        try:
            value = await call_user(f"fiber {payload['fiber']}", function, context)
            end = FiberEnd(status="completed")
        except Exception as error:
            value, status = error, "aborted" if ctx.signal.aborted else "error"
            end = FiberEnd(status=status, error=f"{type(error).__name__}: {json.error_text(error)}")
            if payload["managed"]:
                log.exception("fiber %s failed", payload["fiber"], extra={"fiber": ctx.id})
        finally:
            current_fiber.reset(token)
        await self._ended(payload, ctx, end, snapshot=context.snapshot)
        if live is not None and not live.value.done():
            if isinstance(value, Exception) and end.status != "completed":
                _fail(live, value)
            else:
                live.value.set_result(value)

    def _facts(self, payload: Any, ctx: JobContext) -> dict[str, Any]:
        """What every event of a fiber says."""
        return {"agent": self._desk.agent_id, "fiber": ctx.id, "name": payload["fiber"]}

    def _context(self, payload: Any, ctx: JobContext) -> FiberContext:
        async def keep(data: Any) -> None:
            await ctx.stash(fiber_stash(storable(payload["fiber"], data)))

        return FiberContext(
            id=ctx.id,
            name=payload["fiber"],
            attempt=ctx.attempt,
            snapshot=mapping_of(ctx.stashed).get("snapshot"),
            metadata=payload.get("metadata"),
            signal=ctx.signal,
            keep=keep,
        )

    async def _ended(
        self,
        payload: Any,
        ctx: JobContext,
        end: FiberEnd,
        *,
        snapshot: Any,
        metadata: Any = None,
    ) -> None:
        """Stored first: an unmanaged one is forgotten, a managed one keeps how it ended."""
        if payload["managed"]:
            await ctx.stash(fiber_stash(snapshot, end, metadata))
        else:
            job = await find_job(self._desk.reader, self._desk.agent_id, ctx.id)
            if job is not None:
                await self._desk.insist(lambda tx: delete_fiber_job(tx, job))
        facts = self._facts(payload, ctx)
        self.kit.events.emit(FiberEnded, **facts, status=end.status, error=end.error)

    # After a crash

    async def _recover(self, payload: Any, ctx: JobContext) -> None:
        """Its function is gone: `on_fiber_recovered` says what becomes of it."""
        facts = self._facts(payload, ctx)
        self.kit.events.emit(FiberInterrupted, **facts, attempt=ctx.attempt)
        managed, snapshot = payload["managed"], mapping_of(ctx.stashed).get("snapshot")
        recovery = FiberRecovery(
            id=ctx.id,
            name=payload["fiber"],
            snapshot=snapshot,
            created_at=payload["at"],
            managed=managed,
            idempotency_key=payload.get("key"),
            metadata=payload.get("metadata"),
        )
        try:
            said = await self._ask(recovery)
        except Exception as error:
            if managed:
                log.exception("on_fiber_recovered failed", extra={"fiber": ctx.id})
                text = f"{type(error).__name__}: {json.error_text(error)}"
                end = FiberEnd(status="error", error=text)
                await self._ended(payload, ctx, end, snapshot=snapshot)
                return
            if self._desk.clock.now() - payload["at"] < OLDEST:
                raise  # the job's pauses are the pauses between two tries
            log.exception("a fiber is given up", extra={"fiber": ctx.id})
            end = FiberEnd(status="error", error="It was given up.")
            await self._ended(payload, ctx, end, snapshot=snapshot)
            self.kit.events.emit(FiberSkipped, **facts, reason="max_age_exceeded")
            return
        end = FiberEnd(status=said.get("status", "interrupted"), error=reason_of(said))
        snapshot = said.get("snapshot", snapshot)
        await self._ended(payload, ctx, end, snapshot=snapshot, metadata=said.get("metadata"))

    async def _ask(self, recovery: FiberRecovery) -> dict[str, Any]:
        hook = getattr(self.kit.agent, "on_fiber_recovered", None)
        said = None if hook is None else await call_user("on_fiber_recovered", hook, recovery)
        if said is None:
            return {}
        return checked_result("on_fiber_recovered() returned", said)

    # Look and change

    async def stash(self, data: Any) -> None:
        """Stash for the fiber inside which this is called. Raises `FiberError` outside of one."""
        context = current_fiber.get()
        if context is None:
            raise FiberError("stash() was called outside of a fiber. Call it inside its function.")
        await context.stash(data)

    async def inspect(self, fiber_id: str) -> Fiber | None:
        """How a fiber stands; None if there is none with that id."""
        job = await find_job(self._desk.reader, self._desk.agent_id, fiber_id)
        return None if job is None or job.name != FIBER_JOB else read_fiber(job)

    async def inspect_by_key(self, idempotency_key: str) -> Fiber | None:
        """The same, by its idempotency key."""
        key = f"fiber:{idempotency_key}"
        job = await find_job_by_key(self._desk.reader, self._desk.agent_id, key)
        return None if job is None else read_fiber(job)

    async def list(
        self,
        status: FiberStatus | Sequence[FiberStatus] | None = None,
        name: str | None = None,
        limit: int = 50,
    ) -> list[Fiber]:
        """The fibers that were started, the newest first, at most a hundred.

        Looks at the newest thousand.
        """
        wanted = read_statuses(status)
        found = [
            fiber
            for fiber in await newest_fibers(self._desk.reader, self._desk.agent_id, _READ)
            if fiber.managed and fiber.status in wanted and name in (None, fiber.name)
        ]
        return found[: min(max(limit, 1), MOST_LISTED)]

    async def cancel(self, fiber_id: str, reason: str = "cancelled") -> bool:
        """Stop a fiber. Whoever waits for it goes on at once. False if it has ended."""
        fiber = await self.inspect(fiber_id)
        if fiber is None or not await self._desk.cancel(fiber_id, reason):
            return False
        live = self._live.get(fiber_id)
        if live is not None:
            live.over.set()
            _fail(live, AbortedError(reason))
            if fiber.status == "pending":
                self._forget(fiber_id)
        return True

    async def cancel_by_key(self, idempotency_key: str, reason: str = "cancelled") -> bool:
        """The same, by its idempotency key."""
        fiber = await self.inspect_by_key(idempotency_key)
        return fiber is not None and await self.cancel(fiber.fiber_id, reason)

    async def resolve(self, fiber_id: str, result: Mapping[str, Any]) -> bool:
        """Say what came of a fiber that was interrupted: `{"status": "completed"}`.

        False if it is not interrupted.
        """
        said = checked_result("resolve() was given", result)
        fiber = await self.inspect(fiber_id)
        job = await find_job(self._desk.reader, self._desk.agent_id, fiber_id)
        if fiber is None or job is None or fiber.status != "interrupted" or not job.ended:
            return False
        end = FiberEnd(status=said["status"], error=reason_of(said))
        stash = fiber_stash(said.get("snapshot", fiber.snapshot), end, said.get("metadata"))
        return await self._desk.insist(lambda tx: resolve_stash(tx, job, stash))

    async def delete(
        self,
        status: FiberStatus | Sequence[FiberStatus] = ("completed", "aborted", "error"),
        settled_before: float | None = None,
        limit: int = 100,
    ) -> int:
        """Forget fibers that have ended, first those that ended first, at most 500; how many.

        Looks at the thousand that ended first.
        """
        wanted = [each for each in read_statuses(status) if each in ENDS]
        ended = [
            fiber
            for fiber in await first_ended_fibers(self._desk.reader, self._desk.agent_id, _READ)
            if fiber.managed and fiber.status in wanted and fiber.settled_at is not None
            if settled_before is None or fiber.settled_at < settled_before
        ]
        count = 0
        for fiber in ended[: min(max(limit, 1), MOST_DELETED)]:
            job = await find_job(self._desk.reader, self._desk.agent_id, fiber.fiber_id)
            if job is not None and job.ended:
                count += await self._desk.insist(lambda tx, job=job: delete_fiber_job(tx, job))
        return count

    async def on_close(self) -> None:
        """The agent stops: whoever waits here hears that a restart takes its fiber up."""
        for live in [*self._live.values()]:
            live.over.set()
            _fail(live, HostClosedError(STOPPED))

    async def _until_settled(self, fiber_id: str) -> None:
        live = self._live.get(fiber_id)
        if live is None:  # cut off by a crash: its job is being taken up
            live = self._live.setdefault(fiber_id, _Live(None, self.kit.keep_awake()))
        fiber = await self.inspect(fiber_id)
        if fiber is None or fiber.settled:
            self._forget(fiber_id)
            return
        await live.over.wait()

    def _forget(self, fiber_id: str) -> None:
        live = self._live.pop(fiber_id, None)
        if live is not None:
            live.release()
            live.over.set()
            _fail(live, FiberError("The fiber has ended without a value."))


def _fail(live: _Live | None, error: Exception) -> None:
    """Whoever waits for a fiber's value gets an error instead, if it has none yet."""
    if live is not None and not live.value.done():
        live.value.set_exception(error)
        live.value.exception()  # nobody may be waiting for it
