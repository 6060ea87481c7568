"""What a job's handler is and gets: `JobContext`, and finding the handler by its name.

A handler is a public async method of the agent, or what a feature's `jobs()` names. It may be
called more than once for one job: whatever it does to the world must bear that, or use `ctx.key`,
`ctx.id` or `ctx.stash` to know what is done already.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Collection, Mapping
from math import inf
from typing import Any, TypeAlias, cast

import msgspec

from thinkwell.core.errors import JobError
from thinkwell.core.signal import AbortSignal
from thinkwell.core.spelling import did_you_mean
from thinkwell.journal.jobs import Job

JobHandler: TypeAlias = Callable[[Any, "JobContext"], Awaitable[Any]]
"""Does a job: `handler(payload, ctx)`. Contract: at least once, so the same payload may come again;
beside turns; a raise is tried again later.
"""


class RunAgain(msgspec.Struct, frozen=True):
    """What a handler returns to be called again, with fresh attempts, in `delay` seconds."""

    delay: float = 0.0

    def __post_init__(self) -> None:
        # Here it is the handler's own error, with its line; later it would be a row's.
        delay = cast("object", self.delay)
        if isinstance(delay, bool) or not isinstance(delay, int | float) or not 0 <= delay < inf:
            raise JobError(f"RunAgain({delay!r}): give seconds, 0 or more.")


class JobContext:
    """What a handler knows of its job."""

    __slots__ = (
        "_keep",
        "agent",
        "attempt",
        "id",
        "key",
        "name",
        "payload",
        "principal",
        "resumed",
        "scheduled_for",
        "signal",
        "stashed",
    )

    def __init__(
        self,
        job: Job,
        *,
        agent: Any,
        signal: AbortSignal,
        keep: Callable[[Any], Awaitable[None]],
    ) -> None:
        self.id = job.id
        self.name = job.name
        self.agent = agent
        """The agent it runs in."""
        self.attempt = job.attempt
        """Which attempt this is, from 1. One that a planned stop cut off does not count."""
        self.resumed = job.resumed
        """Whether an earlier attempt of this job had begun, however it ended."""
        self.key = job.key
        """The idempotency key it was enqueued with."""
        self.payload = job.payload
        self.principal = job.principal
        """Who it works for: whoever asked for what enqueued it, if anybody is known."""
        self.scheduled_for = job.scheduled_for
        """The time this run was planned for, in seconds since the epoch; None for a plain job."""
        self.stashed = job.stash
        """What an earlier attempt, or this one, stashed last."""
        self.signal = signal
        """Aborts when somebody cancels the job, or it takes too long."""
        self._keep = keep

    async def stash(self, value: Any) -> None:
        """Remember `value` (JSON data) for the next attempt. Durable when this returns."""
        await self._keep(value)
        self.stashed = value


class JobHandlers:
    """The handlers of one agent by name."""

    def __init__(self, agent: Any, built_in: Collection[str] = ()) -> None:
        self._agent = agent
        self._built_in = built_in
        """What every agent has: hooks, which are called at their moment, and verbs."""
        self._others: dict[str, JobHandler] = {}

    def add(self, owner: str, handlers: Mapping[str, JobHandler]) -> None:
        """Take the handlers of a feature; their jobs are named `owner.name`."""
        self._others.update({f"{owner}.{name}": call for name, call in handlers.items()})

    def find(self, name: str) -> JobHandler:
        """The handler with that name. Raises `JobError`, which says what to write."""
        if (handler := self._others.get(name)) is not None:
            return handler
        if "." in name:
            raise JobError(self._missing(*name.split(".", 1)))
        if name.startswith("_"):
            raise JobError(
                f"{self._class} has no public method {name!r} to run as a job: its name must not "
                "begin with `_`."
            )
        if name in self._built_in:
            raise JobError(
                f"{self._class}.{name} cannot run as a job: every agent has it, as a hook or a "
                "verb. Write a method of your own that does what you want, for example `async def "
                "every_morning(self, payload, ctx)`."
            )
        method = getattr(self._agent, name, None)
        if method is None:
            near = did_you_mean(name, self._known())
            write = f" Write `async def {name}(self, payload, ctx)` in the class."
            raise JobError(
                f"{self._class} has no public method {name!r} to run as a job.{near or write}"
            )
        if not inspect.iscoroutinefunction(method):
            raise JobError(
                f"{self._class}.{name} cannot run as a job: it is no async method. Write "
                f"`async def {name}(self, payload, ctx)`."
            )
        return _adapted(f"{self._class}.{name}", method)

    @property
    def _class(self) -> str:
        return type(self._agent).__name__

    def _known(self) -> list[str]:
        """What can be enqueued."""
        own: type = self._agent.__class__
        methods = [
            name
            for name in dir(own)
            if not name.startswith("_")
            and name not in self._built_in
            and inspect.iscoroutinefunction(getattr(own, name, None))
        ]
        return [*methods, *self._others]

    def _missing(self, feature: str, job: str) -> str:
        # Also read as the reason why a job is held, so it speaks of no call in particular.
        brought = [name for name in sorted(self._others) if name.startswith(f"{feature}.")]
        known = ", ".join(name.removeprefix(f"{feature}.") for name in brought) or "none"
        return (
            f"No feature of {self._class} has a job named '{feature}.{job}'. Jobs of {feature!r}: "
            f"{known}. A method of the agent is enqueued with `agent.jobs.enqueue({job!r})`, in a "
            f"feature `kit.agent.jobs.enqueue({job!r})`."
        )


def _adapted(what: str, method: Callable[..., Awaitable[Any]]) -> JobHandler:
    """Calls a method with what it takes: nothing, the payload, `ctx`, or both."""
    parameters = inspect.signature(method).parameters
    takes_ctx = "ctx" in parameters
    positional = [
        parameter
        for parameter in parameters.values()
        if parameter.name != "ctx"
        and parameter.kind
        in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD, parameter.VAR_POSITIONAL)
    ]
    required = [p for p in parameters.values() if p.name != "ctx" and p.default is p.empty]
    needed = [p for p in required if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if len(needed) > 1 or any(p.kind is p.KEYWORD_ONLY for p in needed):
        raise JobError(
            f"{what} cannot run as a job: it needs {', '.join(p.name for p in needed)}, and a job "
            "gives one payload and `ctx`. Write `async def ...(self, payload, ctx)` and enqueue "
            "one JSON object."
        )

    def call(payload: Any, ctx: JobContext) -> Awaitable[Any]:
        given = (payload,) if positional else ()
        return method(*given, ctx=ctx) if takes_ctx else method(*given)

    return call
