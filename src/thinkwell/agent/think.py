"""`Think`: the chat agent users subclass. A facade: settings, overrides, verbs; bodies delegate.

The hooks are in `lifecycle.py`, their registration in `registration.py`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, ClassVar, Literal, Self, Unpack, overload

from thinkwell.agent.agent import Agent
from thinkwell.agent.agent_events import AgentEvent, AgentResponse
from thinkwell.agent.callbacks import ChatCallback, ChatOutcome
from thinkwell.agent.client_calls import ClientCalls
from thinkwell.agent.entry import (
    ChatOptions,
    ChatRequest,
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
from thinkwell.agent.lifecycle import Lifecycle
from thinkwell.agent.outcomes import ToolOutcomes
from thinkwell.agent.registration import Registration
from thinkwell.core.errors import ModelNotConfiguredError, TurnNotFoundError
from thinkwell.core.signal import AbortSignal
from thinkwell.hooks.plugins import Cleanup, use
from thinkwell.journal.submission import Submission
from thinkwell.messages.chunks import Chunk
from thinkwell.messages.message import UIMessage
from thinkwell.session.rows import AUTO, Parent
from thinkwell.session.session import Session
from thinkwell.tools.scope_registry import ScopeRegistry
from thinkwell.tools.tool import Tool
from thinkwell.turn.ask.admission import TurnRequest, refuse_nested
from thinkwell.turn.ask.answers import approval_answer, result_answer
from thinkwell.turn.ask.inputs import MessageInput, as_messages, is_empty
from thinkwell.turn.end.ending import TurnResult
from thinkwell.turn.handle import InputFunction
from thinkwell.turn.info import TurnInfo
from thinkwell.turn.tail import end_chunks
from thinkwell.turn.turns import Turns

DEFAULT_PROMPT = (
    "You are a helpful assistant. Answer plainly and to the point, say so when you do not know "
    "something, and ask when a request can be read in more than one way."
)


class Think(Lifecycle, Registration, ClientCalls, ToolOutcomes, Agent):
    """A chat agent whose turns are durable. Name a `model`; everything else has a default."""

    model: ClassVar[Any] = None
    """The model or its name, e.g. `"openai-chat:gpt-4o-mini"`. Or override `get_model`."""
    system_prompt: ClassVar[str] = DEFAULT_PROMPT
    """The system prompt. Or override `get_system_prompt`."""
    max_steps: int = 10
    """Model calls a turn may make."""
    on_max_steps: Literal["stop", "error", "answer"] = "stop"
    """What happens at the cap: stop, fail the turn, or one more step without tools."""
    max_retries: int = 2
    """How often a failed model call is tried again while nothing of it was sent."""
    message_concurrency: str | Mapping[str, Any] = "queue"
    """What happens to a message that arrives while a turn runs: queue, latest, merge, drop,
    debounce or steer."""
    tool_execution: Literal["parallel", "sequential"] = "parallel"
    """How the tool calls of one step run."""
    send_reasoning: bool = True
    """Whether clients see reasoning."""
    store_reasoning: bool = True
    """Whether reasoning is stored with the answer."""
    strict_hooks: bool = False
    """Whether what an observer or a tool hook raises fails the turn."""
    chat_stream_stall_timeout: float = 0.0
    """Seconds without a chunk after which the model call is begun anew; 0 means never."""
    hydration_byte_budget: int = 24 * 1024 * 1024
    """How much stored history a turn reads for the model, newest first; at least four messages."""
    max_tool_output_chars: int = 100_000
    """How long a tool's result may be; a longer one is shortened with a note."""
    max_turn_chain: int = 25
    """How many turns may start one another in their end hooks."""
    time_limits: ClassVar[Mapping[str, Any]] = {}
    """Seconds by name: connect, first_chunk, chunk, step, tool, tools, hook, total. What is not
    named keeps its default, None switches one off."""
    cancel_grace: float = 1.0
    """Seconds a tool gets to see a stop before its task is cancelled."""
    expose_errors: bool = False
    """Whether clients and the model read the text of internal errors."""
    max_recovery_attempts: int = 10
    """Attempts in a row that may die without adding to the answer before the turn is given up."""

    session: Session
    """The message tree of this agent."""
    scopes: ScopeRegistry
    """Groups of tools and context that come and go while the agent is awake."""
    _turns: Turns
    _history: HistoryView | None = None

    # What to override

    def get_model(self) -> Any:
        """The model of the next turn: a model object or its name."""
        if self.model is None:
            raise ModelNotConfiguredError(
                f'{type(self).__name__} has no model. Write `model = "openai-chat:gpt-4o-mini"` '
                "in the class, or override get_model()."
            )
        return self.model

    def get_system_prompt(self) -> Any:
        """The system prompt of the next turn; may be async."""
        return self.system_prompt

    def get_tools(self) -> Any:
        """More tools for the next turn, by name, beside the methods decorated with `@tool`.

        May be async.
        """
        no_tools: Mapping[str, Tool] = {}
        return no_tools

    async def use(self, plugin: Callable[[Self], Any]) -> Cleanup | None:
        """Let a plugin, `fn(agent)`, add hooks and scopes; it may be async.

        What it returns removes it again. If the plugin raises, nothing of it stays.
        """
        return await use(self, plugin)

    # Turns

    async def run(
        self,
        input: MessageInput,
        *,
        signal: AbortSignal | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> TurnResult:
        """Run a turn and wait for its result. Errors are in the result, they are not raised."""
        if is_empty(input):
            return TurnResult(request_id="", status="skipped", message=None)
        request = TurnRequest(
            trigger="programmatic",
            messages=as_messages(input),
            new_ids=isinstance(input, str),
            metadata=metadata,
        )
        return await run_and_wait(self._turns, request, call="run", signal=signal)

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
        request = TurnRequest(trigger="programmatic", messages=as_messages(messages))
        return await run_and_wait(self._turns, request, call="save_messages", signal=signal)

    async def submit(
        self,
        input: MessageInput,
        *,
        idempotency_key: str | None = None,
        submission_id: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> Submission:
        """Accept a turn and return at once; it runs whatever happens to the caller or the process.

        The same id or key again gives the first submission with `accepted=False`. Look at it with
        `get_turn`, stop it with `cancel_chat`.
        """
        if is_empty(input):
            raise ValueError('submit() needs at least one message: `await agent.submit("hello")`.')
        request = TurnRequest(
            trigger="submission",
            messages=as_messages(input),
            new_ids=isinstance(input, str),
            request_id=submission_id,
            idempotency_key=idempotency_key,
            metadata=metadata,
        )
        admission, _ = await self._turns.ask(request)
        return Submission(
            request_id=admission.record.request_id,
            status=admission.record.status,
            accepted=admission.accepted,
        )

    async def stream(self, input: MessageInput) -> AsyncIterator[Chunk]:
        """Run a turn and yield its chunks as they become durable. Leaving the loop stops it.

        A turn that fails or is stopped ends with an `error` or `abort` chunk.
        """
        refuse_nested("stream", self._turns.parts.owner.agent_id)
        request = TurnRequest(trigger="programmatic", messages=as_messages(input))
        _, handle = await self._turns.ask(request)
        if handle is not None:
            async for chunk in self._turns.follow(handle):
                yield chunk
            result = await self._turns.wait(handle)
            for chunk in end_chunks(result.status, result.error):
                yield chunk

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

    async def steer(self, text: str) -> Submission:
        """Say something while a turn runs: it stops at its next step, and this is answered next."""
        request = TurnRequest(trigger="submission", messages=as_messages(text), steer=True)
        admission, _ = await self._turns.ask(request)
        return Submission(request_id=admission.record.request_id, status="accepted", accepted=True)

    async def submit_messages(
        self,
        messages: MessageInput,
        *,
        submission_id: str | None = None,
        idempotency_key: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> Submission:
        """The same as `submit`."""
        return await self.submit(
            messages,
            submission_id=submission_id,
            idempotency_key=idempotency_key,
            metadata=metadata,
        )

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
        return await run_turn(self, self._turns, mode, given)

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
        request = ChatRequest(input=message, **options)
        if callback is not None:
            return await chat_to_callback(self._turns, request, callback)
        return await chat(self._turns, request, on_event)

    async def chat_stream(
        self, message: str | UIMessage, *, signal: AbortSignal | None = None
    ) -> AsyncGenerator[AgentEvent]:
        """Run a turn and yield its events. Leaving the loop stops it; errors are raised at the end.

        Close it when you leave early: `async with contextlib.aclosing(...)`.
        """
        request = ChatRequest(input=message, signal=signal)
        async with aclosing(chat_stream(self._turns, request)) as events:
            async for event in events:
                yield event

    async def wait_until_stable(self, timeout: float | None = None) -> bool:
        """Wait until nothing runs, waits in line or waits for an answer. False when time is up."""
        return await wait_until_stable(self._turns, self.has_pending_interaction, timeout)

    async def cancel_chat(self, request_id: str | None = None, reason: str = "cancelled") -> bool:
        """Stop a turn that runs or waits; without an id, the one that runs. False if none did."""
        if request_id is None:
            return await self._turns.cancel_running(reason)
        return await self._turns.cancel(request_id, reason)

    async def get_turn(self, request_id: str) -> TurnInfo:
        """How a turn stands, also after a restart. Raises `TurnNotFoundError`."""
        record = await self._turns.find(request_id)
        if record is None:
            raise TurnNotFoundError(request_id)
        return TurnInfo.from_record(record)

    # Answers from outside

    async def add_tool_result(self, tool_call_id: str, **answer: Any) -> bool:
        """Answer a client tool: `output=` or `error=`. False if nothing waited for it.

        Once no call of the answer waits any more, the turn goes on, unless `auto_continue=False`.
        """
        return await self._turns.answer(result_answer(tool_call_id, **answer))

    async def respond_to_approval(
        self,
        tool_call_id: str,
        approved: bool,  # noqa: FBT001 - the decision itself
        *,
        reason: str | None = None,
        auto_continue: bool = True,
    ) -> bool:
        """Allow or refuse a call that waits for a person. False if nothing waited for it."""
        return await self._turns.answer(
            approval_answer(
                tool_call_id, approved=approved, reason=reason, auto_continue=auto_continue
            )
        )

    async def has_pending_interaction(self) -> bool:
        """Whether a call waits for a client or a person."""
        return await self._turns.has_pending_interaction()

    # Messages

    async def add_messages(
        self,
        messages: Sequence[UIMessage] | Callable[[list[UIMessage]], Sequence[UIMessage]],
        *,
        parent_id: Parent = AUTO,
        mode: Literal["append", "upsert"] = "append",
        broadcast: bool = True,
    ) -> None:
        """Write messages as a chain, without running a turn. Safe inside a tool."""
        await self.session.add_messages(messages, parent_id, mode=mode)
        if broadcast and not self._turns.busy:
            await self._turns.parts.audience.send_transcript()
        self._turns.changes.tell()

    async def get_messages(self) -> list[UIMessage]:
        """The messages of the active path, oldest first."""
        return await self.session.get_history()

    @property
    def history(self) -> HistoryView:
        """The conversation as a flat list of model messages, to read, watch and replace."""
        if self._history is None:
            self._history = HistoryView(self._turns)
        return self._history

    async def clear_messages(self) -> None:
        """Forget the conversation: what runs stops, what waits is skipped, clients are cleared."""
        await self._turns.clear()

    async def reset_turn_state(self) -> None:
        """Stop what runs and skip what waits. Messages stay."""
        await self._turns.reset()
