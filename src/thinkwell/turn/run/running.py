"""The state of one running turn, and the one way a chunk leaves it.

`emit` is the hot path: fold, `on_chunk`, encode, append to the log. The log's commit tells the
clients.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import msgspec

from thinkwell.core import json
from thinkwell.core.signal import AbortSignal
from thinkwell.core.user_code import contained
from thinkwell.hooks.contexts import ChunkContext, MessageContext, StepResult, facts_of
from thinkwell.hooks.read_only import read_only_copy
from thinkwell.journal.asked import if_not_stored
from thinkwell.journal.blobs import Blob
from thinkwell.journal.events import ResponseKept
from thinkwell.journal.spending import Reservation
from thinkwell.journal.turn_log import TurnLog
from thinkwell.journal.turns import TurnRecord
from thinkwell.messages.chunks import Chunk, opened_call
from thinkwell.messages.model_messages import ModelMessage
from thinkwell.messages.usage import Usage
from thinkwell.models.base import Finish, Model
from thinkwell.turn.handle import TurnHandle
from thinkwell.turn.parts import Parts
from thinkwell.turn.run.growth import Calls, GrowingReply, OutsideAnswer, Past, Places
from thinkwell.turn.run.request_record import RequestRecord
from thinkwell.turn.run.settings import TurnSettings
from thinkwell.turn.run.step_result import step_messages

if TYPE_CHECKING:
    from thinkwell.messages.stream_chunks import StreamChunk

current_turn: ContextVar[RunningTurn | None] = ContextVar("current_turn", default=None)
"""The turn inside which the current code runs, if any."""


class RunningTurn:
    """One turn while it holds the slot: what was asked, what holds for it, and what grows."""

    input_applied = False
    """Whether its input has joined the tree."""
    started = False
    """Whether the `start` chunk is in the journal."""
    step_number = 0
    """The step that runs, or comes next."""
    output_tries = 0
    """How often a structured output was refused."""
    answering: Model | None = None
    """The model whose provider keeps the answer, once it has said so."""
    lost = False
    """Its attempt is left behind: whatever still comes of it is too late for the reply."""
    spent: Mapping[str, Usage] = MappingProxyType({})
    """What its finished steps have used, by model."""
    reserved: Reservation | None = None
    """What the step that runs has set aside from the budgets, if there are any."""
    active = True
    """False once the slot is free: from then on, code started here may wait for other turns."""

    _facts: tuple[TurnRecord, dict[str, Any]] | None = None

    def __init__(self, handle: TurnHandle, parts: Parts) -> None:
        record = handle.record
        if record.message_id is None:
            raise ValueError("a running turn has a message id")
        # What was asked
        self.handle = handle
        self.signal: AbortSignal = handle.controller.signal
        self.message_id = record.message_id
        # What holds
        self.parts = parts
        self.settings = TurnSettings(limits=parts.limits)
        """How this turn runs; the real ones come with assembly."""
        # What grows
        self.reply = GrowingReply(
            record.message_id, parent=record.branch_from, known=not record.continuation
        )
        self.log = TurnLog(parts.owner, record.request_id)
        self.requests = RequestRecord()
        """What its model requests were made of, for the journal."""
        self.steps: list[StepResult] = []
        self.past = Past()
        self.calls = Calls()
        self.places: Places | None = None
        """Where it is, from the second attempt on."""

    @property
    def record(self) -> TurnRecord:
        """The turn's row."""
        return self.handle.record

    @record.setter
    def record(self, record: TurnRecord) -> None:
        self.handle.record = record

    def forget_reply(self) -> None:
        """Drop what was answered: it cannot be stored. A stored beginning stays as it is."""
        self.reply.forget(known=not self.record.continuation)

    def not_stored(self) -> None:
        """The settling transaction failed: nothing of it is there."""
        self.reply.stored = self.log.packed = False
        self.reply.written = ()

    def take_answer(self, answer: OutsideAnswer) -> None:
        """An answer from outside for a call of this turn."""
        self.reply.take(answer)
        if answer.client_tools is not None:
            self.record = msgspec.structs.replace(self.record, client_tools=answer.client_tools)

    @contextmanager
    def unless_refused(self, tool_call_id: str) -> Generator[None]:
        """Around what a work adds to reply and log about a call: taken back if it is not stored.

        The block must not wait. Chunks that come between it and a commit that fails stay.
        """
        mark, tools = self.log.mark(), self.record.client_tools
        put_back = self.reply.keeper(tool_call_id)
        try:
            yield
        finally:
            added = self.log.since(mark)

            def undo() -> None:
                self.log.take_back(added)
                put_back()
                self.record = msgspec.structs.replace(self.record, client_tools=tools)

            if_not_stored(undo)

    @property
    def usage(self) -> Usage:
        """Token counts of all finished steps."""
        return sum((step.usage for step in self.steps), start=Usage())

    def note_spent(self, finish: Finish) -> None:
        """A step has ended whose tokens a provider counted."""
        name = finish.answered_by
        if name is not None:
            used = self.spent.get(name)
            self.spent = {**self.spent, name: finish.usage if used is None else used + finish.usage}

    def hook_fields(self) -> dict[str, Any]:
        """What every hook context carries; made once per version of the record."""
        record = self.record  # every delta asks: to make them anew would be a tenth of its cost
        if self._facts is None or self._facts[0] is not record:
            self._facts = record, facts_of(record, self.parts.agent_ref, self.signal)
        return self._facts[1]

    def event_fields(self) -> dict[str, Any]:
        """What every event about this turn says."""
        return {"agent": self.record.agent_id, "request_id": self.record.request_id}

    def begun_step(self) -> tuple[ModelMessage, ...]:
        """What the model had said in a step that was cut: it is asked to go on from there."""
        if not self.past.step_open:
            return ()
        paused = self.paused is not None
        return step_messages(self.reply.last_step(), with_provider_calls=paused)

    @property
    def steps_used(self) -> int:
        """How many of its steps it has used up; a provider that paused was asked once more."""
        return self.step_number + self.past.pauses.count

    @property
    def paused(self) -> Mapping[str, Any] | None:
        """What to send along to a provider that has paused in the open step; None if none has."""
        return self.past.pauses.options if self.past.step_open else None

    @property
    def kept(self) -> ResponseKept | None:
        """An answer of the step that runs which the provider keeps, if it can be taken up."""
        kept = self.log.kept
        if not isinstance(kept, ResponseKept) or kept.token is None:
            return None
        return kept if kept.step == self.step_number else None

    def steered(self) -> bool:
        """Whether a steering input waits for this turn to make room (DESIGN §8.8)."""
        if self.parts.recording is not None:
            return self.parts.recording.steered(self.step_number)
        return self.parts.line.steering_waits()

    def note(self, kind: str, body: str, blobs: tuple[Blob, ...] = ()) -> None:
        """Write an event into the journal, with the next commit."""
        if not self.lost:
            self.log.append_event(kind, body, blobs)
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

    async def emit(self, chunk: Chunk, kept: ResponseKept | None = None) -> None:
        """Send one chunk: hooks see it, it joins the message and the log; the commit tells the
        clients. `kept` says how far the provider's answer has come with it.
        """
        if self.lost:
            return
        for transform in self.settings.transforms:
            with contained("transforms"):
                transformed = transform(chunk)
            if transformed is None:
                return
            chunk = transformed
        if self.parts.hooks.registry.hooks("on_chunk"):
            await self.show(chunk)
        self.record_chunk(chunk)
        if kept is not None:
            self.log.kept = kept
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
            chunk=cast("StreamChunk", read_only_copy(chunk)),
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
        self.reply.fold.apply(chunk)
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
