"""`Think`: the chat agent users subclass. A facade: settings, overrides, verbs; bodies delegate.

The hooks are in `lifecycle.py`, their registration in `registration.py`, and what the references
call it in `parity.py`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, Unpack, cast, overload

from msgspec import UNSET, UnsetType

from thinkwell.agent.agent import Agent, StateT
from thinkwell.agent.entry import RunOptions, run
from thinkwell.agent.lifecycle import Lifecycle
from thinkwell.agent.parity import Parity
from thinkwell.agent.registration import Registration
from thinkwell.core.budgets import Budget
from thinkwell.core.errors import ModelNotConfiguredError, TurnNotFoundError
from thinkwell.core.signal import AbortSignal
from thinkwell.core.user_code import MaybeAsync
from thinkwell.features.approvals import Approvals
from thinkwell.features.branches import Branches
from thinkwell.features.budgets import Budgets
from thinkwell.features.costs import Costs
from thinkwell.features.fibers.fibers import Fibers
from thinkwell.features.http_chat.chat import HttpChat
from thinkwell.features.http_run import HttpRun
from thinkwell.features.scopes import Scopes
from thinkwell.features.telemetry import Telemetry
from thinkwell.features.turn_details import TurnFacts
from thinkwell.hooks.feature import Feature, Without
from thinkwell.journal.submission import Submission
from thinkwell.journal.tail import end_chunks
from thinkwell.messages.message import UIMessage
from thinkwell.session.rows import AUTO, Parent
from thinkwell.session.session import Session
from thinkwell.tools.output import Output
from thinkwell.tools.tool import Tool
from thinkwell.turn.ask.admission import (
    MessageInput,
    TurnRequest,
    read_input,
    read_needed,
    read_question,
    refuse_nested,
)
from thinkwell.turn.ask.answers import approval_answer, result_answer
from thinkwell.turn.ask.outcomes import resolve_outcome
from thinkwell.turn.ask.run_options import check_body, read_options
from thinkwell.turn.end.ending import TurnResult
from thinkwell.turn.info import TurnInfo

if TYPE_CHECKING:
    from thinkwell.messages.stream_chunks import StreamChunk

T = TypeVar("T")

DEFAULT_PROMPT = (
    "You are a helpful assistant. Answer plainly and to the point, say so when you do not know "
    "something, and ask when a request can be read in more than one way."
)


class Think(Parity, Lifecycle, Registration, Agent[StateT]):
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
    max_tool_output_chars: int = 100_000
    """How long a tool's result may be; a longer one is shortened with a note."""
    max_turn_chain: int = 25
    """How many turns may start one another in their end hooks."""
    budget: Budget | Sequence[Budget] = ()
    """How much its turns may cost: a `Budget`, or a list of them."""
    time_limits: ClassVar[Mapping[str, Any]] = {}
    """Seconds by name: connect, first_chunk, chunk, step, tool, tools, hook, total, grace. What is
    not named keeps its default, None switches one off."""
    expose_errors: bool = False
    """Whether clients and the model read the text of internal errors."""

    session: Session
    """The message tree of this agent."""
    scopes: Scopes
    """Groups of tools and context that come and go while the agent is awake."""
    branches: Branches
    """Alternatives in the message tree: which there are, and which one the conversation goes on
    from."""
    approvals: Approvals
    """Calls that wait for somebody, what was decided, and rules that always allow."""
    fibers: Fibers
    """Functions that remember how far they came, and go on after a crash."""
    turn_details: TurnFacts
    """How answers were made: steps, tokens, times."""
    costs: Costs
    """What this agent's turns have cost."""
    budgets: Budgets
    """How its budgets stand, and more for one of them."""

    # Annotated once more: type checkers compare what a subclass gives with its nearest base only.
    features: ClassVar[Sequence[Feature | Without]] = (
        *(
            HttpChat(),
            HttpRun(),
            Branches(),
            Approvals(),
            Fibers(),
            TurnFacts(),
            Costs(),
            Budgets(),
            Telemetry(),
            Scopes(),
        ),
    )

    # What to override

    def get_model(self) -> Any:
        """The model of the next turn: a model object or its name; may be async."""
        if self.model is None:
            raise ModelNotConfiguredError(
                f'{type(self).__name__} has no model. Write `model = "openai-chat:gpt-4o-mini"` '
                "in the class, or override get_model()."
            )
        return self.model

    def get_system_prompt(self) -> MaybeAsync[str]:
        """The system prompt of the next turn; may be async."""
        return self.system_prompt

    def get_tools(self) -> MaybeAsync[Mapping[str, Any]]:
        """More tools for the next turn, by name, beside the methods decorated with `@tool`.

        May be async.
        """
        no_tools: Mapping[str, Tool] = {}
        return no_tools

    # Turns

    @overload
    async def run(
        self, input: MessageInput, *, output: type[T] | Output[T], **options: Unpack[RunOptions]
    ) -> TurnResult[T]: ...
    @overload
    async def run(
        self, input: MessageInput, *, output: Any = None, **options: Unpack[RunOptions]
    ) -> TurnResult: ...
    async def run(
        self,
        input: MessageInput,
        *,
        output: Any = None,
        model: Any = None,
        body: Mapping[str, Any] | None = None,
        tools: Iterable[Any] | Mapping[str, Any] = (),
        max_steps: int | None = None,
        signal: AbortSignal | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> TurnResult[Any]:
        """Run a turn and wait for its result. Errors are in the result, they are not raised.

        `output` is a type or an `Output`: the answer as data, in `result.output`. `model`, `tools`
        and `max_steps` hold for this turn; hooks read `body`. Names, numbers and schemas are stored
        with the turn; one that needs an object of this process fails after a crash, and says so.
        """
        options = read_options(model=model, max_steps=max_steps, output=output, tools=tools)
        rest = {"body": check_body(body), "metadata": metadata}
        return await run(self._turns, input, options, signal=signal, **rest)

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
        request = TurnRequest(
            trigger="submission",
            messages=read_needed("submit", input),
            new_ids=isinstance(input, str),
            request_id=submission_id,
            idempotency_key=idempotency_key,
            metadata=metadata,
        )
        admission, _ = await self._turns.ask(request)
        return Submission.of(admission.record, accepted=admission.accepted)

    async def stream(self, input: MessageInput) -> AsyncIterator[StreamChunk]:
        """Run a turn and yield its chunks as they become durable. Leaving the loop stops it.

        A turn that fails or is stopped ends with an `error` or `abort` chunk. Nothing to answer is
        no turn, and no chunk, as `run` skips it.
        """
        if not (messages := read_question(input)):
            return
        refuse_nested("stream", self._turns.parts.owner.agent_id)
        request = TurnRequest(trigger="programmatic", messages=messages)
        _, handle = await self._turns.ask(request, awaited=True)
        if handle is not None:
            async with aclosing(self._turns.chunks(handle)) as chunks:
                async for chunk in chunks:
                    yield cast("StreamChunk", chunk)
            result = await self._turns.wait(handle)
            for chunk in end_chunks(result.status, result.error):
                yield cast("StreamChunk", chunk)

    async def steer(self, text: str) -> Submission:
        """Say something while a turn runs: it stops at its next step, and this is answered next."""
        request = TurnRequest(trigger="submission", messages=read_needed("steer", text), steer=True)
        admission, _ = await self._turns.ask(request)
        return Submission.of(admission.record, accepted=admission.accepted)

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

    async def resolve_tool_outcome(
        self,
        tool_call_id: str,
        *,
        output: Any = UNSET,
        error: str | UnsetType = UNSET,
        not_done: bool = False,
    ) -> bool:
        """Say what came of a call that was cut off; without it, the same call is never run again.

        Exactly one of the three. With `output=`, which may be None, it took effect: the next call
        of the same gets that result instead of running. With `error=` or `not_done=True` it did
        not, and may run again. The id may be the call's idempotency key. False if no such call is
        open.
        """
        return await resolve_outcome(
            self._turns.parts, tool_call_id, output=output, error=error, not_done=not_done
        )

    # Messages

    async def add_messages(
        self,
        messages: MessageInput | Callable[[list[UIMessage]], Sequence[UIMessage]],
        *,
        parent_id: Parent = AUTO,
        mode: Literal["append", "upsert"] = "append",
        broadcast: bool = True,
    ) -> None:
        """Write messages as a chain, without running a turn. Safe inside a tool."""
        chain = messages if callable(messages) else read_input(messages)
        await self.session.add_messages(chain, parent_id, mode=mode)
        if broadcast and not self._turns.busy:
            await self._turns.parts.audience.send_transcript()
        self._turns.changed()

    async def get_messages(self) -> list[UIMessage]:
        """The messages of the active path, oldest first."""
        return await self.session.get_history()

    async def clear_messages(self) -> None:
        """Forget the conversation: what runs stops, what waits is skipped, clients are cleared."""
        await self._turns.clear()
