"""The gate in front of the models: calls wait here until their model's limits let them through.

`limits.py` decides, `fair_queue.py` says who is next, and this is the place that carries it out. A
call without a limit never comes here; one that may begin at once neither waits nor makes a task.
All agents of a host share one gate. A call that several limits hold for passes one after another,
those of its model first: while it waits for what a whole key shares, it keeps nobody from another
model.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextvars import ContextVar
from fnmatch import fnmatchcase
from typing import Any, Final, Protocol, cast

import msgspec

from thinkwell.core.clock import Clock
from thinkwell.core.errors import ModelBusyError, ModelError
from thinkwell.core.histogram import Histogram
from thinkwell.core.signal import AbortSignal
from thinkwell.messages.usage import Usage
from thinkwell.models.base import Failure, Finish, Model, ModelEvent, ModelRequest
from thinkwell.models.error_classes import default_error_classifier
from thinkwell.models.fair_queue import FairQueue
from thinkwell.models.limits import Allowance, Hold, ModelLimits, WaitReason, estimate_tokens
from thinkwell.models.retry_after import used_up_for

WAITS: Final = (0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0)
MOST_LANES: Final = 1000
"""Keys and models that are remembered before those that nobody has used lately are forgotten."""


class ModelWait(msgspec.Struct, frozen=True, kw_only=True):
    """A call that waits."""

    model: str
    """Provider and model."""
    limit: str
    """The pattern in `model_limits` that it waits for."""
    reason: WaitReason
    ahead: int
    """How many calls waited already."""


class Caller(Protocol):
    """Who calls a model, and wants to know that the call waits."""

    @property
    def who(self) -> str:
        """Whose share it is: a principal, or an agent."""
        ...

    @property
    def gate(self) -> ModelGate:
        """The gate that the call goes through."""
        ...

    async def waiting(self, wait: ModelWait) -> None:
        """The call has its place in the line."""
        ...

    async def admitted(self, wait: ModelWait, seconds: float) -> None:
        """Its wait is over."""
        ...

    def left(self, wait: ModelWait) -> None:
        """It was stopped while it waited."""
        ...


current_caller: ContextVar[Caller | None] = ContextVar("current_caller", default=None)
"""On whose behalf models are called here; None where there are no limits."""


def open_stream(
    model: Model, request: ModelRequest, signal: AbortSignal, *, last: bool = True
) -> AsyncIterator[ModelEvent]:
    """Call a model, through the gate if there is one. `last`: no other model could answer."""
    caller = current_caller.get()
    if caller is None:
        return model.stream(request, signal)
    return caller.gate.stream(caller, model, request, signal=signal, last=last)


class LimitFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What one of the limits does at the moment."""

    limit: str
    waiting: int
    running: int
    waits: Histogram
    """How long calls have waited."""


class ModelGate:
    """All limits of a host, and who waits for them."""

    def __init__(
        self,
        limits: Mapping[str, ModelLimits],
        clock: Clock,
        *,
        alarm: Callable[[float, Callable[[], None]], asyncio.TimerHandle] | None = None,
    ) -> None:
        # Those of one model before those that models share: see the module docstring.
        self._limits = sorted(limits.items(), key=lambda item: item[1].per == "key")
        self._clock = clock
        self._alarm = alarm
        self._lanes: dict[tuple[str, str, str], _Lane] = {}
        self._waits = {pattern: Histogram(WAITS) for pattern in limits}
        self._closed = False

    @classmethod
    def of(cls, limits: Mapping[str, ModelLimits] | None, clock: Clock) -> ModelGate | None:
        """The gate for some limits; None if there are none."""
        return cls(limits, clock) if limits else None

    def close(self) -> None:
        """The host stops: whoever waits is not let through, and waits again at its next start."""
        self._closed = True
        for lane in self._lanes.values():
            lane.close()

    def figures(self) -> list[LimitFigures]:
        """How much is going on, by limit."""
        found: list[LimitFigures] = []
        for pattern, waits in self._waits.items():
            lanes = [lane for (limit, _, _), lane in self._lanes.items() if limit == pattern]
            waiting = sum(len(lane.queue) for lane in lanes)
            running = sum(lane.allowance.running for lane in lanes)
            found.append(LimitFigures(limit=pattern, waiting=waiting, running=running, waits=waits))
        return found

    def stream(
        self,
        caller: Caller,
        model: Model,
        request: ModelRequest,
        *,
        signal: AbortSignal,
        last: bool = True,
    ) -> AsyncIterator[ModelEvent]:
        """Call a model once its limits allow it."""
        # A chain asks other models, each through a call of its own.
        lanes = () if getattr(model, "asks_others", False) else self._lanes_of(model)
        if not lanes:
            return model.stream(request, signal)
        return self._limited(caller, model, request, signal=signal, lanes=lanes, last=last)

    async def _limited(
        self,
        caller: Caller,
        model: Model,
        request: ModelRequest,
        *,
        signal: AbortSignal,
        lanes: Sequence[_Lane],
        last: bool,
    ) -> AsyncIterator[ModelEvent]:
        counted = any(lane.limits.tokens_per_minute is not None for lane in lanes)
        call = _Call(caller.who, estimate_tokens(request) if counted else 0.0, signal)
        try:
            for lane in lanes:
                busy = await self._enter(lane, call, caller, _name(model), last=last)
                if busy is not None:
                    yield Failure(busy)
                    return
                if signal.aborted:
                    return
            events = model.stream(request, signal)
            try:
                async for event in events:
                    if call.quiet or isinstance(event, Finish | Failure):
                        call.note(event)
                    yield event
            finally:
                close = getattr(events, "aclose", None)
                if close is not None:
                    await close()
        finally:
            call.leave()

    async def _enter(
        self, lane: _Lane, call: _Call, caller: Caller, name: str, *, last: bool
    ) -> ModelBusyError | None:
        hold = lane.take(call)
        if hold is None:
            return None
        when_full = lane.limits.when_full
        if when_full == "error" or (when_full == "next" and not last):
            return _busy(name, lane, hold)
        started = self._clock.monotonic()
        ahead = len(lane.queue)
        wait = ModelWait(model=name, limit=lane.pattern, reason=hold.reason, ahead=ahead)
        if not await lane.wait(call, caller, wait):
            return None
        seconds = self._clock.monotonic() - started
        _count(self._waits[lane.pattern], seconds)
        await caller.admitted(wait, seconds)
        return None

    def _lanes_of(self, model: Model) -> list[_Lane]:
        name = _name(model)
        matching = [(p, limits) for p, limits in self._limits if fnmatchcase(name, p)]
        return [self._lane(p, limits, name, _key_of(model)) for p, limits in matching]

    def _lane(self, pattern: str, limits: ModelLimits, name: str, key: str) -> _Lane:
        place = (pattern, name if limits.per == "model" else "", key)
        lane = self._lanes.get(place)
        if lane is None:
            if len(self._lanes) >= MOST_LANES:
                self._lanes = {at: each for at, each in self._lanes.items() if each.in_use}
            lane = self._lanes[place] = _Lane(pattern, limits, self._clock, self._set_alarm)
            lane.closed = self._closed
        return lane

    def _set_alarm(self, seconds: float, call: Callable[[], None]) -> asyncio.TimerHandle:
        alarm = self._alarm or asyncio.get_running_loop().call_later
        return alarm(seconds, call)


class _Call:
    """One call on its way through the lanes, and what is known of it."""

    def __init__(self, who: str, tokens: float, signal: AbortSignal) -> None:
        self.who = who
        self.tokens = tokens
        self.signal = signal
        self.quiet = True
        """Nothing has come yet."""
        self._lanes: list[_Lane] = []
        self._ahead: list[_Lane] = []
        """Where it goes ahead after a pause, and the others wait for its answer."""
        self._more = 0.0

    def holds(self, lane: _Lane) -> None:
        """It has been let through."""
        self._lanes.append(lane)
        if lane.allowance.trying:
            self._ahead.append(lane)

    def note(self, event: ModelEvent) -> None:
        """The first event says that the provider took the call, the last how it went."""
        self.quiet = False
        if isinstance(event, Failure):
            error = event.error
            for lane in self._lanes if _is_refusal(error) else ():
                lane.refused(error.retry_after if isinstance(error, ModelError) else None)
            return
        self._tried(answered=True)
        if isinstance(event, Finish):
            self._more = _used(event.usage, self.tokens) - self.tokens
            for lane in self._lanes if event.headers else ():
                lane.told(event.headers)

    def _tried(self, *, answered: bool) -> None:
        ahead, self._ahead = self._ahead, []
        for lane in ahead:
            lane.tried(answered=answered)

    def leave(self) -> None:
        """It is over, however it ended."""
        self._tried(answered=False)
        lanes, self._lanes = self._lanes, []
        for lane in lanes:
            lane.leave(self._more)


def _used(usage: Usage, otherwise: float) -> float:
    """How many tokens a call took, as far as the provider says it."""
    if usage.total_tokens is not None:
        return usage.total_tokens
    if usage.input_tokens is None:
        return otherwise
    return usage.input_tokens + (usage.output_tokens or 0)


class _Waiter:
    __slots__ = ("call", "future")

    def __init__(self, call: _Call) -> None:
        self.call = call
        self.future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()


class _Lane:
    """One set of limits, for one model or key: what is left of it and who waits for it."""

    def __init__(
        self,
        pattern: str,
        limits: ModelLimits,
        clock: Clock,
        alarm: Callable[[float, Callable[[], None]], asyncio.TimerHandle],
    ) -> None:
        self.pattern = pattern
        self.limits = limits
        self.queue: FairQueue[_Waiter] = FairQueue()
        self.closed = False
        self.allowance = Allowance.full(limits, clock.monotonic())
        self._clock = clock
        self._alarm = alarm
        self._timer: asyncio.TimerHandle | None = None

    @property
    def in_use(self) -> bool:
        """Whether it must be remembered."""
        if self.queue:
            return True
        return not self.allowance.at_rest(self.limits, self._clock.monotonic())

    def take(self, call: _Call) -> Hold | None:
        """Begin at once, or say why not."""
        now = self._clock.monotonic()
        hold = self.allowance.hold(self.limits, now, call.tokens)
        if hold is None and self.queue:
            hold = Hold("turn")  # those who wait were first
        if hold is None:
            self._begin(call, now)
        return hold

    def _begin(self, call: _Call, now: float) -> None:
        self.allowance = self.allowance.begun(self.limits, now, call.tokens)
        call.holds(self)

    async def wait(self, call: _Call, caller: Caller, wait: ModelWait) -> bool:
        """Wait for the place in the line; False if the call was stopped first."""
        waiter = _Waiter(call)
        self.queue.put(call.who, waiter)
        dispose = call.signal.add_listener(lambda _: _leave(waiter))
        admitted = False
        try:
            await caller.waiting(wait)
            self._pump()  # nobody else may set the alarm for whoever comes first
            admitted = await waiter.future
        finally:
            dispose()
            # Whoever is let through and cancelled in the same moment gives it back in `leave`.
            self.queue.remove(call.who, waiter)
            if not admitted:
                caller.left(wait)
                self._pump()
        return admitted

    def leave(self, more: float) -> None:
        """A call is over that took so many more tokens than was thought."""
        self.allowance = self.allowance.ended(self.limits, self._clock.monotonic(), more)
        self._pump()

    def tried(self, *, answered: bool) -> None:
        """The call that went ahead after a pause has its answer, or ended without one."""
        self.allowance = self.allowance.tried(answered=answered)
        self._pump()

    def refused(self, seconds: float | None) -> None:
        """The provider refused one because of its limits."""
        self.allowance = self.allowance.refused(self._clock.monotonic(), seconds)

    def told(self, headers: Mapping[str, str]) -> None:
        """What an answer's headers say about the provider's limits."""
        seconds = used_up_for(headers, self._clock.now())
        if seconds is not None:
            self.allowance = self.allowance.used_up(self._clock.monotonic(), seconds)

    def close(self) -> None:
        """Nobody is let through any more."""
        self.closed = True
        if self._timer is not None:
            self._timer.cancel()

    def _pump(self) -> None:
        """Let through whom the limits allow, in turn; look again when that may change."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while not self.closed and (waiter := self.queue.first()) is not None:
            now = self._clock.monotonic()
            hold = self.allowance.hold(self.limits, now, waiter.call.tokens)
            if hold is not None:
                if hold.until is not None:
                    self._timer = self._alarm(max(hold.until - now, 0.0), self._pump)
                return
            self.queue.take()
            if _tell(waiter, admitted=True):
                self._begin(waiter.call, now)


def _leave(waiter: _Waiter) -> None:
    """It was stopped."""
    _tell(waiter, admitted=False)


def _tell(waiter: _Waiter, *, admitted: bool) -> bool:
    """False if it has been told something else, or was cancelled."""
    if waiter.future.done():
        return False
    waiter.future.set_result(admitted)
    return True


def _is_refusal(error: Exception) -> bool:
    if not isinstance(error, ModelError) or isinstance(error, ModelBusyError):
        return False
    return error.status in (429, 529) or default_error_classifier(error) == "rate_limit"


def _busy(name: str, lane: _Lane, hold: Hold) -> ModelBusyError:
    return ModelBusyError(
        f"{name} has no free slot ({_REASONS[hold.reason]}), and model_limits[{lane.pattern!r}] "
        f'says when_full="{lane.limits.when_full}".'
    )


_REASONS: Final[Mapping[WaitReason, str]] = {
    "parallel": "too many calls run at once",
    "requests": "the requests of this minute are used up",
    "tokens": "the tokens of this minute are used up",
    "provider": "the provider has asked for a pause",
    "turn": "others wait already",
}


def _name(model: Model) -> str:
    return f"{model.provider}:{model.model_id}"


def _key_of(model: Model) -> str:
    """Calls with the same key share limits: what a model calls its `limit_key`, or its provider."""
    return str(cast("Any", getattr(model, "limit_key", "")) or model.provider)


def _count(waits: Histogram, seconds: float) -> None:
    place = next((at for at, bound in enumerate(waits.bounds) if seconds <= bound), -1)
    waits.counts[place] += 1
    waits.total += seconds
