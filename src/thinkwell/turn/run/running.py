"""The state of one running turn, and the one way a chunk leaves it.

`emit` is the hot path: fold, `on_chunk`, encode, append to the log. The log's commit tells the
clients.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, Literal

import msgspec

from thinkwell.core import json
from thinkwell.core.signal import AbortSignal
from thinkwell.core.user_code import contained
from thinkwell.hooks.contexts import ChunkContext, MessageContext, StepResult, facts_of
from thinkwell.hooks.read_only import ReadOnlyDict
from thinkwell.journal.bodies import Body
from thinkwell.journal.ledger import LedgerRow
from thinkwell.journal.turn_log import TurnLog
from thinkwell.journal.turns import TurnRecord
from thinkwell.messages.chunks import Chunk, opened_call
from thinkwell.messages.fold import Fold
from thinkwell.messages.message import Part, UIMessage, is_tool_part, tool_parts
from thinkwell.messages.model_messages import ModelMessage
from thinkwell.messages.usage import Usage
from thinkwell.models.base import Finish
from thinkwell.session.rows import Appended
from thinkwell.tools.tool import Tool
from thinkwell.turn.handle import TurnHandle
from thinkwell.turn.parts import Parts
from thinkwell.turn.run.request_record import RequestRecord
from thinkwell.turn.run.settings import TurnSettings
from thinkwell.turn.run.step_result import has_result, step_blocks, step_messages


class OutsideAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a client or a person said about a call of the turn that runs. Stored format."""

    part: dict[str, Any]
    """The call as it is now."""
    stop_reason: Literal["approval", "client_tool"]
    auto_continue: bool
    client_tools: tuple[dict[str, Any], ...] | None = None


current_turn: ContextVar[RunningTurn | None] = ContextVar("current_turn", default=None)
"""The turn inside which the current code runs, if any."""


class RunningTurn:
    """One turn while it holds the slot."""

    answered: Literal["approval", "client_tool"] | None = None
    """A call of the last step was answered from outside: its continuation goes on."""
    continuation_owed = False
    """A client asked to go on once every open call of this answer has its result."""
    claimed: frozenset[str] = frozenset()
    """Ids of calls whose tool was started in this attempt."""
    written: Sequence[Appended] = ()
    """What the last transaction of the turn added to the tree."""
    tools: Mapping[str, Tool] = MappingProxyType({})
    """All tools of the turn, once it is assembled."""
    progress = 0
    """How far it was when its attempt began, as the budget counts it."""
    places: tuple[str, ...] = ()
    """Where the turn is, as far as it keeps a record of it (`places.py`)."""
    written_places: tuple[str, ...] = ()
    """What of that its row says."""
    open_text: str | None = None
    """A text part left open by a crash, which the next text goes on with."""
    input_applied = False
    """Whether its input has joined the tree."""
    lost = False
    """Its attempt is left behind: whatever still comes of it is too late for the answer."""
    forgotten = False
    """What was answered could not be stored and was dropped."""
    stored = False
    """The settling transaction has written the answer: from then on answers go to the row."""

    earlier_bytes: int = 0
    """How large the answer is that a continuation goes on with."""

    def __init__(self, handle: TurnHandle, parts: Parts) -> None:
        record = handle.record
        if record.message_id is None:
            raise ValueError("a running turn has a message id")
        self.handle = handle
        """What was asked, and whoever waits for it."""
        self.parts = parts
        self.signal: AbortSignal = handle.controller.signal
        self.settings = TurnSettings(limits=parts.limits)
        """How this turn runs; the real ones come with assembly."""
        self.active = True
        """False once the slot is free: from then on, code started here may wait for other turns."""
        self.message_id = record.message_id
        self.log = TurnLog(parts.owner, record.request_id)
        self.requests = RequestRecord()
        """What its model requests were made of, for the journal."""
        self.fold = Fold(self.empty_reply())
        self.reply_parent: str | None = record.branch_from
        """The message the answer is stored under."""
        self.newest_at_start = 0
        """The newest message when the turn began: later ones were added while it ran."""
        self.started = False
        """Whether the `start` chunk is in the journal."""
        self.steps: list[StepResult] = []
        self.step_number = 0
        self.earlier_steps = 0
        """Steps of earlier turns in the answer that a continuation goes on with."""
        self.output_tries = 0
        """How often a structured output was refused."""
        self.authorization: Any = True
        """What `authorize_turn` said."""
        self.interrupted = False
        """Whether a crash left the step `step_number` open."""
        self.ledger: Mapping[str, LedgerRow] = {}
        """What earlier attempts recorded of tool calls, by call id."""
        self.running_calls: set[str] = set()
        """Calls of this attempt that run, or have a result on its way to the ledger."""
        self.reply_known = not record.continuation
        """Whether `fold` holds the whole answer: a continuation has to read it first."""
        self.interrupted_finish: Finish | None = None
        """How the interrupted step's model call had ended, as far as the journal knows."""

    @property
    def record(self) -> TurnRecord:
        """The turn's row."""
        return self.handle.record

    @record.setter
    def record(self, record: TurnRecord) -> None:
        self.handle.record = record

    def empty_reply(self) -> UIMessage:
        """The answer before its first chunk."""
        return {"id": self.message_id, "role": "assistant", "parts": []}

    def forget_reply(self) -> None:
        """Drop what was answered: it cannot be stored. A stored beginning stays as it is."""
        self.fold = Fold(self.empty_reply())
        self.reply_known = not self.record.continuation
        self.forgotten = True

    def not_stored(self) -> None:
        """The settling transaction failed: nothing of it is there."""
        self.stored = self.log.packed = False

    def take_answer(self, answer: OutsideAnswer) -> None:
        """An answer from outside for a call of this turn."""
        self.fold.replace_call(answer.part)
        self.answered = answer.stop_reason
        self.continuation_owed = self.continuation_owed or answer.auto_continue
        if answer.client_tools is not None:
            self.record = msgspec.structs.replace(self.record, client_tools=answer.client_tools)

    def take_repaired(self, message: UIMessage) -> None:
        """The stored answer that this continuation goes on with was repaired."""
        for part in tool_parts(message):
            self.fold.replace_call(part)

    @property
    def usage(self) -> Usage:
        """Token counts of all finished steps."""
        return sum((step.usage for step in self.steps), start=Usage())

    def hook_fields(self) -> dict[str, Any]:
        """What every hook context carries."""
        return facts_of(self.record, self.parts.agent_ref, self.signal)

    def begun_step(self) -> tuple[ModelMessage, ...]:
        """What the model had said in a step that was cut: it is asked to go on from there."""
        if not self.interrupted:
            return ()
        return step_messages(step_blocks(self.fold.message["parts"])[-1])

    def waiting_calls(self) -> set[str]:
        """States of calls in the last step that wait for a person or a client."""
        block = step_blocks(self.fold.message["parts"])[-1]
        return {str(part["state"]) for part in block if is_tool_part(part) and not has_result(part)}

    def own_parts(self) -> list[Part]:
        """The parts of this turn's steps, without those of earlier turns in the same answer."""
        blocks = step_blocks(self.fold.message["parts"])[self.earlier_steps :]
        return [part for block in blocks for part in block]

    def steered(self) -> bool:
        """Whether a steering input waits for this turn to make room (DESIGN §8.8)."""
        return self.parts.line.steering_waits()

    def note(self, kind: str, body: str, bodies: tuple[Body, ...] = ()) -> None:
        """Write an event into the journal, with the next commit."""
        if not self.lost:
            self.log.append_event(kind, body, bodies)
            self.log.noted += len(body)
            self.parts.commits.note(self.log)

    async def start_stream(self) -> None:
        """Say `start`, unless an earlier attempt or phase has."""
        if self.started:
            return
        self.started = True
        start: Chunk = {"type": "start"}
        if not self.record.continuation:
            start["messageId"] = self.message_id
        await self.emit(start)

    def has_opened(self, tool_call_id: str) -> bool:
        """Whether this stream, not one of an earlier turn, has made a call known."""
        return any(opened_call(json.loads(body)) == tool_call_id for body in self.log.bodies)

    async def emit(self, chunk: Chunk) -> None:
        """Send one chunk: hooks see it, it joins the message and the log; the commit tells the
        clients.
        """
        if self.lost:
            return
        for transform in self.settings.transforms:
            with contained("transforms"):
                transformed = transform(chunk)
            if transformed is None:
                return
            chunk = transformed
        await self.show(chunk)
        self.record_chunk(chunk)
        if self.parts.commits.note(self.log):
            await self.parts.commits.flush()
            await asyncio.sleep(0)  # a burst must not starve the other agents

    async def show(self, chunk: Chunk) -> None:
        """Let `on_chunk` hooks see a chunk."""
        hooks = self.parts.hooks
        if not hooks.registry.hooks("on_chunk"):
            return
        context = ChunkContext(
            **self.hook_fields(),
            chunk=ReadOnlyDict(chunk),
            step_number=self.step_number,
            message_id=self.message_id,
        )
        await hooks.observe("on_chunk", context)

    def record_chunk(self, chunk: Chunk) -> None:
        """Fold and log a chunk without waiting; whoever calls this commits."""
        hidden = not self.settings.send_reasoning and chunk["type"].startswith("reasoning-")
        if hidden:
            chunk = {**chunk, "hidden": True}
        body = json.dumps(chunk)  # first: what cannot be encoded joins neither message nor log
        self.fold.apply(chunk)
        if hidden:
            self.log.append_event("hidden", body)  # stored, never told
        else:
            self.log.append(body)


async def call_on_message(
    turn: RunningTurn,
    message: ModelMessage,
    step_number: int | None,
    ui_message_id: str | None = None,
) -> None:
    """One message has entered history."""
    if turn.parts.hooks.registry.hooks("on_message"):
        context = MessageContext(
            **turn.hook_fields(),
            message=message,
            ui_message_id=ui_message_id or turn.message_id,
            step_number=step_number,
        )
        await turn.parts.hooks.observe("on_message", context)
