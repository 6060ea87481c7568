"""`Think`: the chat agent users subclass. A facade: settings, overrides, hooks, verbs; bodies
delegate.

The hooks' docstrings say when each fires relative to storage and frames; `docs/the-turn.md` shows
them in order.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal

from thinkwell.agent.agent import Agent
from thinkwell.agent.inputs import as_messages
from thinkwell.agent.turn_info import Submission, TurnInfo
from thinkwell.agent.turns import Turns
from thinkwell.core.errors import ModelNotConfiguredError, TurnNotFoundError
from thinkwell.core.signal import AbortSignal, Disposer
from thinkwell.hooks.answers import StepConfig, ToolDecision, TurnConfig
from thinkwell.hooks.contexts import (
    ChatErrorContext,
    ChatResponse,
    ChunkContext,
    StepContext,
    StepFinishContext,
    ToolCallContext,
    ToolResultContext,
    TurnContext,
)
from thinkwell.messages.chunks import Chunk
from thinkwell.messages.message import UIMessage
from thinkwell.session.rows import AUTO, Parent
from thinkwell.session.session import Session
from thinkwell.tools.tool import Tool
from thinkwell.turn.admission import TurnRequest, refuse_nested
from thinkwell.turn.ending import TurnResult
from thinkwell.turn.ticket import InputFunction

MessageInput = str | UIMessage | Sequence[UIMessage]
"""What starts a turn: a text, a message, or several."""


class Think(Agent):
    """A chat agent whose turns are durable. Name a `model`; everything else has a default."""

    model: ClassVar[Any] = None
    """The model or its name, e.g. `"openai-chat:gpt-4o-mini"`. Or override `get_model`."""
    system_prompt: ClassVar[str] = "You are a helpful assistant."
    """The system prompt. Or override `get_system_prompt`."""
    max_steps: int = 10
    """Model calls a turn may make."""
    hydration_byte_budget: int = 24 * 1024 * 1024
    """How much stored history a turn reads for the model, newest first; at least four messages."""
    cancel_grace: float = 1.0
    """Seconds a tool gets to see a stop before its task is cancelled."""
    expose_errors: bool = False
    """Whether clients and the model read the text of internal errors."""
    max_recovery_attempts: int = 10
    """Attempts in a row that may die without adding to the answer before the turn is given up."""

    session: Session
    """The message tree of this agent."""
    _turns: Turns

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
        """More tools for the next turn, by name, beside the methods decorated with `@tool`; may be
        async.
        """
        no_tools: Mapping[str, Tool] = {}
        return no_tools

    # Hooks, in the order of a turn

    def configure_session(self, session: Session) -> Any:
        """Called once when the agent wakes, before `on_start`.

        Returns the session to use; may be async.
        """
        return session

    def before_turn(self, ctx: TurnContext) -> TurnConfig | dict[str, Any] | Any | None:
        """The prompt is assembled, the input stored, the model not called.

        May change this turn. A raise fails it.
        """

    def before_step(self, ctx: StepContext) -> StepConfig | dict[str, Any] | Any | None:
        """Before every model call. May change this step. A raise fails the turn."""

    def on_chunk(self, ctx: ChunkContext) -> Any:
        """For every chunk, before it is stored and sent."""

    def before_tool_call(self, ctx: ToolCallContext) -> ToolDecision | dict[str, Any] | Any | None:
        """Input is valid, the tool has not run.

        Allow, change, block or substitute. A raise keeps the tool from running.
        """

    def after_tool_call(self, ctx: ToolResultContext) -> Any:
        """Once per call, before its result is stored and sent."""

    def on_step_finish(self, ctx: StepFinishContext) -> Any:
        """The step's tools are settled and stored."""

    def on_chat_error(self, error: Exception | str, ctx: ChatErrorContext) -> Any:
        """The turn failed; its end is not stored yet.

        Return another error or text to replace it.
        """

    def on_chat_response(self, ctx: ChatResponse) -> Any:
        """Stored, told, and free for the next turn: a new turn may be started here."""

    def add_hook(
        self, event: str, call: Callable[..., Any], *, name: str | None = None
    ) -> Disposer:
        """Register `call` for a moment of every turn, after the class's own method. Returns a
        disposer.

        Registrations last as long as the agent is awake; put permanent ones into `on_start`.
        """
        return self._turns.parts.hooks.registry.add(event, call, name=name)

    # Turns

    async def run(self, input: MessageInput, *, signal: AbortSignal | None = None) -> TurnResult:
        """Run a turn and wait for its result. Errors are in the result, they are not raised."""
        return await self._run_and_wait(
            "run", TurnRequest(trigger="programmatic", messages=as_messages(input)), signal
        )

    async def save_messages(
        self,
        messages: Sequence[UIMessage] | InputFunction,
        *,
        signal: AbortSignal | None = None,
    ) -> TurnResult:
        """Add messages and answer them.

        A function gets the transcript inside the turn's slot and returns them.
        """
        if callable(messages):
            request = TurnRequest(trigger="programmatic", function_input=True)
            return await self._run_and_wait("save_messages", request, signal, messages)
        request = TurnRequest(trigger="programmatic", messages=as_messages(messages))
        return await self._run_and_wait("save_messages", request, signal)

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
        messages = as_messages(input)
        if not messages:
            raise ValueError('submit() needs at least one message: `await agent.submit("hello")`.')
        request = TurnRequest(
            trigger="submission",
            messages=messages,
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
        """Run a turn and yield its chunks as they become durable.

        Leaving the loop stops the turn.
        """
        refuse_nested("stream", self._turns.parts.owner.agent_id)
        request = TurnRequest(trigger="programmatic", messages=as_messages(input))
        _, ticket = await self._turns.ask(request)
        if ticket is not None:
            async for chunk in self._turns.follow(ticket):
                yield chunk

    async def cancel_chat(self, request_id: str | None = None, reason: str = "cancelled") -> bool:
        """Stop a turn that runs or waits; without an id, the one that runs.

        False if there was none.
        """
        if request_id is None:
            return await self._turns.cancel_running(reason)
        return await self._turns.cancel(request_id, reason)

    async def get_turn(self, request_id: str) -> TurnInfo:
        """How a turn stands, also after a restart. Raises `TurnNotFoundError`."""
        record = await self._turns.find(request_id)
        if record is None:
            raise TurnNotFoundError(request_id)
        return TurnInfo.from_record(record)

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
            await self._turns.live.send_transcript()

    async def get_messages(self) -> list[UIMessage]:
        """The messages of the active path, oldest first."""
        return await self.session.get_history()

    async def clear_messages(self) -> None:
        """Forget the conversation: the running turn stops, waiting ones are skipped, clients are
        cleared.
        """
        await self._turns.clear()

    async def _run_and_wait(
        self,
        call: str,
        request: TurnRequest,
        signal: AbortSignal | None,
        input_function: InputFunction | None = None,
    ) -> TurnResult:
        refuse_nested(call, self._turns.parts.owner.agent_id)
        _, ticket = await self._turns.ask(request, input_function=input_function, signal=signal)
        if ticket is None:
            raise RuntimeError("a turn with a new id was known before")
        return await self._turns.wait(ticket)
