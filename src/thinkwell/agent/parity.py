"""Names that those know who come from Think or from AG2B, and nothing else (DESIGN §4).

Each is another way to something the rest of `Think` does: `save_messages` is `run` with messages,
`on_chat_done` an `on_chat_response` of a completed turn. A test pins them to what the references
document, so that a name of our own never hides here. The bodies are in `entry.py`.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, Unpack, cast, overload

from thinkwell.agent.agent_events import AgentEvent, AgentResponse
from thinkwell.agent.callbacks import ChatCallback, ChatOutcome
from thinkwell.agent.entry import (
    ChatCall,
    ChatOptions,
    OnEvent,
    TurnOptions,
    chat,
    chat_stream,
    chat_to_callback,
    check_run_turn,
    run_and_wait,
    run_turn,
    wait_until_stable,
)
from thinkwell.agent.history_view import HistoryView
from thinkwell.core.degradations import Degradation, Degradations
from thinkwell.core.signal import AbortSignal, Disposer
from thinkwell.core.user_code import MaybeAsync
from thinkwell.features.fibers.context import (
    FiberContext,
    FiberFunction,
    FiberRecovery,
    current_fiber,
)
from thinkwell.features.fibers.fibers import Fibers
from thinkwell.features.schedules.declared import Retrying, ScheduledTask
from thinkwell.features.schedules.planning import read_reference_when
from thinkwell.features.schedules.retries import RetryOptions, check_retry, retry
from thinkwell.features.schedules.rows import QueueItem, Schedule, ScheduleType, holds
from thinkwell.features.schedules.schedules import Callback, Schedules
from thinkwell.hooks.contexts import (
    ChatAbortContext,
    ChatDoneContext,
    ChatRecoveryContext,
    ScopeContext,
)
from thinkwell.hooks.plugins import Cleanup, use
from thinkwell.hooks.recovery import DEFAULT, ChatRecovery, RecoveryOptions
from thinkwell.journal.fibers import Fiber, FiberStatus
from thinkwell.journal.submission import Submission
from thinkwell.messages.message import Part, UIMessage
from thinkwell.session.session import Session
from thinkwell.turn.ask.admission import MessageInput, TurnRequest, read_input, refuse_nested
from thinkwell.turn.end.ending import TurnResult
from thinkwell.turn.handle import InputFunction
from thinkwell.turn.run.running import current_turn
from thinkwell.turn.run.stash import stash
from thinkwell.turn.turns import Turns

if TYPE_CHECKING:
    from thinkwell.agent.think import Think

T = TypeVar("T")


log = logging.getLogger("thinkwell.fibers")

R = TypeVar("R")


class Parity:
    """What the references call it."""

    _turns: Turns
    _degradations: Degradations
    _history: HistoryView | None = None
    session: Session
    if TYPE_CHECKING:  # an annotation would be a name that the feature hides
        fibers: Fibers
        schedules: Schedules

    # Settings

    chat_stream_stall_timeout: float = 0.0
    """Seconds without a chunk after which the model call is begun anew; 0 means never."""
    hydration_byte_budget: int = 24 * 1024 * 1024
    """How much stored history a turn reads for the model, newest first; at least four messages."""

    chat_recovery: ChatRecovery | bool = DEFAULT
    """How interrupted turns are taken up again, and when they are given up."""

    retry_options: RetryOptions = RetryOptions()
    """How often schedules, tasks, queue items and `retry` try, unless they say otherwise."""

    # Hooks

    def on_chat_recovery(
        self, ctx: ChatRecoveryContext, /
    ) -> MaybeAsync[RecoveryOptions | Mapping[str, Any] | None]:
        """A turn was interrupted and is about to be taken up again.

        Return `RecoveryOptions` to drop the words of the interrupted step, or not to go on.
        """

    def repair_interrupted_tool_part(self, part: Part, /) -> MaybeAsync[Part | None]:
        """A call of an earlier turn never got its result: what stands in its place from now on.

        Return a call with its end, a text part, or None for a call that failed.
        """

    def on_chat_done(self, ctx: ChatDoneContext, /) -> MaybeAsync[None]:
        """The turn completed: stored, told, and the agent is free for the next one."""

    def on_chat_abort(self, ctx: ChatAbortContext, /) -> MaybeAsync[None]:
        """The turn was stopped: stored, told, and the agent is free for the next one."""

    def on_scope_register(self, ctx: ScopeContext, /) -> MaybeAsync[None]:
        """A scope was registered; it is visible already."""

    def on_scope_unregister(self, ctx: ScopeContext, /) -> MaybeAsync[None]:
        """A scope was removed; it is gone already."""

    # Turns

    async def save_messages(
        self,
        messages: Sequence[UIMessage] | InputFunction,
        *,
        signal: AbortSignal | None = None,
    ) -> TurnResult:
        """Add messages and answer them.

        A function gets the transcript inside the turn's slot and returns them. An empty list runs
        the model on what is there.
        """
        if callable(messages):
            request = TurnRequest(trigger="programmatic", function_input=True)
            return await run_and_wait(
                self._turns, request, call="save_messages", signal=signal, input_function=messages
            )
        request = TurnRequest(trigger="programmatic", messages=read_input(messages))
        return await run_and_wait(self._turns, request, call="save_messages", signal=signal)

    async def submit_messages(
        self,
        messages: MessageInput,
        *,
        submission_id: str | None = None,
        idempotency_key: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> Submission:
        """The same as `submit`."""
        return await cast("Think", self).submit(
            messages,
            submission_id=submission_id,
            idempotency_key=idempotency_key,
            metadata=metadata,
        )

    async def continue_last_turn(
        self, *, body: dict[str, Any] | None = None, signal: AbortSignal | None = None
    ) -> TurnResult:
        """Go on with the last answer, in the same message. Skipped if the last word is a user's."""
        refuse_nested("continue_last_turn", self._turns.parts.owner.agent_id)
        head = await self.session.get_head()
        if head is None or head.role != "assistant":
            return TurnResult(request_id="", status="skipped", message=None, continuation=True)
        request = TurnRequest(trigger="programmatic", continues=head.id, body=body)
        return await run_and_wait(self._turns, request, call="continue_last_turn", signal=signal)

    @overload
    async def run_turn(
        self, *, mode: Literal["wait"] = "wait", **options: Unpack[TurnOptions]
    ) -> TurnResult: ...
    @overload
    async def run_turn(
        self, *, mode: Literal["submit"], **options: Unpack[TurnOptions]
    ) -> Submission: ...
    @overload
    async def run_turn(
        self, *, mode: Literal["stream"], **options: Unpack[TurnOptions]
    ) -> ChatOutcome: ...
    async def run_turn(self, *, mode: str = "wait", **options: Unpack[TurnOptions]) -> Any:
        """Run a turn: wait for its result, submit it, or stream it to a `callback`.

        `continuation=True`, or the request's body, goes on with the last answer instead of an
        input. Raises `TypeError` for options that do not go together.
        """
        given = check_run_turn(mode, options)
        return await run_turn(cast("Think", self), self._turns, mode, given)

    @overload
    async def chat(
        self,
        message: str | UIMessage,
        callback: ChatCallback,
        **options: Unpack[ChatOptions],
    ) -> ChatOutcome: ...
    @overload
    async def chat(
        self,
        message: str | UIMessage,
        callback: None = None,
        *,
        on_event: OnEvent | None = None,
        **options: Unpack[ChatOptions],
    ) -> AgentResponse: ...
    async def chat(
        self,
        message: str | UIMessage,
        callback: ChatCallback | None = None,
        *,
        on_event: OnEvent | None = None,
        **options: Unpack[ChatOptions],
    ) -> ChatOutcome | AgentResponse:
        """Run a turn for a message.

        With a callback its chunks and its end go there. Without one the answer is returned, and
        errors are raised: `AbortedError`, `MaxStepsError`, whatever ended the turn. `on_event` gets
        its events. `client_tools` are tools of this turn only; `on_client_tool_call` runs them.
        """
        request = ChatCall(input=message, **options)
        if callback is not None:
            return await chat_to_callback(self._turns, request, callback)
        return await chat(self._turns, request, on_event)

    async def chat_stream(
        self, message: str | UIMessage, *, signal: AbortSignal | None = None
    ) -> AsyncGenerator[AgentEvent]:
        """Run a turn and yield its events. Leaving the loop stops it; errors are raised at the end.

        Close it when you leave early: `async with contextlib.aclosing(...)`.
        """
        request = ChatCall(input=message, signal=signal)
        async with aclosing(chat_stream(self._turns, request)) as events:
            async for event in events:
                yield event

    async def wait_until_stable(self, timeout: float | None = None) -> bool:
        """Wait until nothing runs, waits in line or waits for an answer. False when time is up."""
        return await wait_until_stable(self._turns, self.has_pending_interaction, timeout)

    async def has_pending_interaction(self) -> bool:
        """Whether a call waits for a client or a person."""
        return await self._turns.has_pending_interaction()

    async def stash(self, data: Any) -> None:
        """Keep a value with the turn that runs; `on_chat_recovery` finds it after a crash.

        It is stored when this returns, replaces what was kept before, and goes with the turn.
        Inside a fiber it is the fiber's: `ctx.snapshot` has it after a crash.
        """
        if current_turn.get() is None and current_fiber.get() is not None:
            await self.fibers.stash(data)
            return
        await stash(self._turns.parts.owner.agent_id, data)

    def get_on_start_degradations(self) -> tuple[Degradation, ...]:
        """What of this agent could not be read when it woke, and it serves without."""
        return tuple(self._degradations)

    async def reset_turn_state(self) -> None:
        """Stop what runs and skip what waits. Messages stay."""
        await self._turns.reset()

    # Fibers: `agent.fibers` has the same

    def on_fiber_recovered(self, ctx: FiberRecovery, /) -> MaybeAsync[Mapping[str, Any] | None]:
        """A fiber was cut off by a crash, and its function is gone with that process.

        Return what became of it, `{"status": "completed"}`; None leaves it `interrupted`.
        """
        log.warning("fiber %s was interrupted", ctx.name, extra={"fiber": ctx.id})

    async def run_fiber(self, name: str, fn: Callable[[FiberContext], Awaitable[R]]) -> R:
        """The same as `fibers.run`."""
        return await self.fibers.run(name, fn)

    async def start_fiber(
        self,
        name: str,
        fn: FiberFunction | None = None,
        *,
        fiber_id: str | None = None,
        idempotency_key: str | None = None,
        metadata: Any = None,
        wait_for_completion: bool = False,
    ) -> Fiber:
        """The same as `fibers.start`."""
        return await self.fibers.start(
            name,
            fn,
            fiber_id=fiber_id,
            idempotency_key=idempotency_key,
            metadata=metadata,
            wait_for_completion=wait_for_completion,
        )

    async def inspect_fiber(self, fiber_id: str) -> Fiber | None:
        """The same as `fibers.inspect`."""
        return await self.fibers.inspect(fiber_id)

    async def inspect_fiber_by_key(self, idempotency_key: str) -> Fiber | None:
        """The same as `fibers.inspect_by_key`."""
        return await self.fibers.inspect_by_key(idempotency_key)

    async def list_fibers(
        self,
        status: FiberStatus | Sequence[FiberStatus] | None = None,
        name: str | None = None,
        limit: int = 50,
    ) -> list[Fiber]:
        """The same as `fibers.list`."""
        return await self.fibers.list(status, name, limit)

    async def cancel_fiber(self, fiber_id: str, reason: str = "cancelled") -> bool:
        """The same as `fibers.cancel`."""
        return await self.fibers.cancel(fiber_id, reason)

    async def cancel_fiber_by_key(self, idempotency_key: str, reason: str = "cancelled") -> bool:
        """The same as `fibers.cancel_by_key`."""
        return await self.fibers.cancel_by_key(idempotency_key, reason)

    async def resolve_fiber(self, fiber_id: str, result: Mapping[str, Any]) -> bool:
        """The same as `fibers.resolve`."""
        return await self.fibers.resolve(fiber_id, result)

    async def delete_fibers(
        self,
        status: FiberStatus | Sequence[FiberStatus] = ("completed", "aborted", "error"),
        settled_before: float | None = None,
        limit: int = 100,
    ) -> int:
        """The same as `fibers.delete`."""
        return await self.fibers.delete(status, settled_before, limit)

    async def keep_alive(self) -> Disposer:
        """Keep the agent from going to sleep until what this returns is called."""
        return self.fibers.kit.keep_awake()

    async def keep_alive_while(self, fn: Callable[[], Awaitable[R]]) -> R:
        """Keep the agent from going to sleep while a function runs; what that returns."""
        dispose = self.fibers.kit.keep_awake()
        try:
            return await fn()
        finally:
            dispose()

    # Later: `agent.schedules` has the same, and more

    def get_scheduled_tasks(self) -> MaybeAsync[Mapping[str, ScheduledTask]]:
        """Recurring tasks by name, beside the methods with `@scheduled`. Asked at every start."""
        no_tasks: Mapping[str, ScheduledTask] = {}
        return no_tasks

    def get_default_timezone(self) -> MaybeAsync[str | None]:
        """The time zone of tasks that name none; None refuses those."""
        return None

    async def reconcile_scheduled_tasks(self) -> Sequence[str]:
        """Make the stored tasks those that are declared now; the names of what changed."""
        return await self.schedules.reconcile()

    async def schedule(
        self,
        when: float | timedelta | datetime | str,
        callback: Callback,
        payload: Any = None,
        *,
        retry: Retrying = None,
        idempotent: bool | None = None,
        tz: str | None = None,
    ) -> Schedule:
        """Have a method called in so many seconds, at a time, or as a cron expression says."""
        return await self.schedules.schedule(
            callback,
            payload,
            retry=retry,
            idempotent=idempotent,
            tz=tz,
            **read_reference_when(when),
        )

    async def schedule_every(
        self,
        interval: float | timedelta,
        callback: Callback,
        payload: Any = None,
        *,
        retry: Retrying = None,
    ) -> Schedule:
        """Have a method called again and again, so many seconds after the end of each run."""
        return await self.schedules.schedule(callback, payload, every=interval, retry=retry)

    async def get_schedule_by_id(self, id: str) -> Schedule | None:
        """The same as `schedules.get`."""
        return await self.schedules.get(id)

    async def list_schedules(
        self,
        *,
        id: str | None = None,
        type: ScheduleType | None = None,
        time_range: tuple[datetime | None, datetime | None] = (None, None),
    ) -> Sequence[Schedule]:
        """The schedules that have not ended: all, one, those of a type, those between two times."""
        start, end = time_range
        found = await self.schedules.list(type=type, start=start, end=end)
        return [schedule for schedule in found if id is None or schedule.id == id]

    async def cancel_schedule(self, id: str) -> bool:
        """The same as `schedules.cancel`."""
        return await self.schedules.cancel(id)

    async def queue(
        self, callback: Callback, payload: Any = None, *, retry: Retrying = None
    ) -> str:
        """Put a call into the agent's queue; its id."""
        return (await self.schedules.queue(callback, payload, retry=retry)).id

    async def dequeue(self, id: str) -> bool:
        """Take one item out of the queue. False if it has begun, or is not there."""
        return await self.schedules.dequeue(id) == 1

    async def dequeue_all(self) -> int:
        """Take out everything that has not begun; how many items that were."""
        return await self.schedules.clear_queue()

    async def dequeue_all_by_callback(self, callback: Callback) -> int:
        """Take out what is there for one method and has not begun; how many items that were."""
        return await self.schedules.clear_queue(callback)

    async def get_queue(self, id: str) -> QueueItem | None:
        """One item of the queue."""
        return next((item for item in await self.schedules.items() if item.id == id), None)

    async def get_queues(self, key: str, value: Any) -> Sequence[QueueItem]:
        """The items of the queue whose payload has this value under this key."""
        items = await self.schedules.items()
        return [item for item in items if holds(item.payload, key, value)]

    async def retry(
        self,
        work: Callable[[int], MaybeAsync[T]],
        *,
        max_attempts: int | None = None,
        base_delay: float | None = None,
        max_delay: float | None = None,
        should_retry: Callable[[Exception, int], bool] | None = None,
    ) -> T:
        """Call `work(attempt)` until it returns, with growing pauses; the last error is raised.

        What is left out is as in `retry_options`. For as long as the process lives: what must
        outlive it is a job.
        """
        said = {"max_attempts": max_attempts, "base_delay": base_delay, "max_delay": max_delay}
        given = {name: value for name, value in said.items() if value is not None}
        options = check_retry(given, self.retry_options)
        return await retry(work, options, should_retry=should_retry)

    # What AG2B has on every agent

    async def use(self, plugin: Callable[[Self], Any]) -> Cleanup | None:
        """Let a plugin, `fn(agent)`, add hooks and scopes; it may be async.

        What it returns removes it again. If the plugin raises, nothing of it stays.
        """
        return await use(self, plugin)

    @property
    def history(self) -> HistoryView:
        """The conversation as a flat list of model messages, to read, watch and replace."""
        if self._history is None:
            self._history = HistoryView(self._turns)
        return self._history
