"""One model call: the events of the provider become chunks of the reply.

Contract: exactly one terminal event ends a stream; `Finish` makes a `Reply`, `Failure` becomes an
exception here and nowhere else. Text that a crash left open goes on under its old id if the model
begins with text, so that clients see one paragraph; anything else closes it first.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any, assert_never, cast

import msgspec

from thinkwell.core.errors import ModelError, StoreError
from thinkwell.core.ids import new_id
from thinkwell.core.user_code import contained
from thinkwell.journal.budget import MODEL
from thinkwell.journal.crash_points import crash_here, crash_is_armed
from thinkwell.journal.events import ResponseKept
from thinkwell.messages.chunks import Chunk
from thinkwell.models.base import (
    Bookmark,
    Failure,
    FilePart,
    Finish,
    ModelEvent,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    SourceDocument,
    SourceUrl,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputStart,
    ToolResult,
)
from thinkwell.turn.end.ending import StageError, ends_turn
from thinkwell.turn.run.call_chunks import emit_call, input_start, provider_call, provider_result
from thinkwell.turn.run.interrupt import interruptible
from thinkwell.turn.run.journal_events import note_request
from thinkwell.turn.run.kept_answer import keep_answer, kept_answer, take_up
from thinkwell.turn.run.model_wait import through_gate
from thinkwell.turn.run.pending_call import (
    PendingCall,
    is_same_call,
    read_call,
    unanswered_calls,
    unfinished_calls,
)
from thinkwell.turn.run.places import UNMARKED, at
from thinkwell.turn.run.running import RunningTurn
from thinkwell.turn.run.step import Step
from thinkwell.turn.run.step_result import has_result
from thinkwell.turn.run.watch import Watch

log = logging.getLogger("thinkwell.turn")

MAX_STREAM = 64 * 1024 * 1024
"""Characters of the chunks of one reply. It then ends with `length`: whole, told and stored, and
well below what a row holds (`MAX_REPLY_BYTES`).
"""


class ModelReply(msgspec.Struct, frozen=True):
    """What a model call came to."""

    finish: Finish
    calls: Sequence[PendingCall]
    final_answer: str | None = None
    """The input of the hidden answer tool, as JSON text."""


async def call_model(turn: RunningTurn, step: Step) -> ModelReply:
    """Run the call, sending chunks as they come."""
    reader = _Reader(turn, step)
    stream: AsyncIterator[ModelEvent] | None = None
    if turn.kept is not None:
        reader.calls, stream = await take_up(turn, step)
    if stream is None:
        note_request(turn, step.number, step.model, step.request)
    try:
        async with at(turn, MODEL) if turn.places else UNMARKED:
            crash_here("c3")
            with interruptible(turn.signal), contained(f"model {step.model.model_id!r}"):
                await _read(turn, step, reader, stream)
    except StoreError:
        raise
    except Exception as error:
        turn.signal.throw_if_aborted()  # what fails after a stop is the stop (spec/02 §12.13)
        raise ends_turn(error) or StageError("stream", error) from error
    turn.signal.throw_if_aborted()
    if reader.finish is None:
        raise StageError("stream", ModelError("The model's stream ended without saying why."))
    await close_open_text(turn)
    calls = reader.calls
    if reader.called or stream is not None or turn.past.pauses.count:
        calls = [*calls, *unfinished_calls(turn, calls)]
        if reader.finish.paused is None or calls:
            calls += unanswered_calls(turn)
    return ModelReply(reader.finish, calls, reader.final_answer)


async def close_open_text(turn: RunningTurn) -> None:
    """End a text that a crash left open and the model did not go on with."""
    if turn.past.open_text is not None:
        part_id, turn.past.open_text = turn.past.open_text, None
        await turn.emit({"type": "text-end", "id": part_id})


async def _read(
    turn: RunningTurn, step: Step, reader: _Reader, taken_up: AsyncIterator[ModelEvent] | None
) -> None:
    watch, gate = Watch(turn.settings), turn.parts.gate
    if gate is None or taken_up is not None:  # what is kept was let through when it was asked for
        stream = taken_up or step.model.stream(step.request, turn.signal)
        await _read_stream(turn, reader, watch, stream)
        return
    with through_gate(turn, step, watch, gate) as stream:
        await _read_stream(turn, reader, watch, stream)


async def _read_stream(
    turn: RunningTurn, reader: _Reader, watch: Watch, stream: AsyncIterator[ModelEvent]
) -> None:
    async with watch, aclosing(cast("Any", stream)):
        async for event in stream:
            if turn.signal.aborted:  # the model ignored the cancel: nobody hears it any more
                turn.signal.throw_if_aborted()
            watch.came()  # what we do with it is not the model's silence
            await reader.take(event)
            if reader.finish is None and turn.log.size + turn.reply.earlier_bytes > MAX_STREAM:
                await _cut(turn)
                reader.finish = Finish(reason="length", raw_reason="size")
            if reader.finish is not None:
                return
            watch.heard()


async def _cut(turn: RunningTurn) -> None:
    """Close what the model was saying: the reply ends here."""
    log.warning("an answer has reached the size limit", extra={"action": "turn:size"})
    for part in turn.reply.fold.open_parts():
        if part.kind in ("text", "reasoning"):
            await turn.emit({"type": f"{part.kind}-end", "id": part.id})


class _Reader:
    """Turns events into chunks, one at a time."""

    def __init__(self, turn: RunningTurn, step: Step) -> None:
        self._turn = turn
        self._step = step
        self._resumed: tuple[str, str] | None = None  # (the model's id, the open part's id)
        self.calls: list[PendingCall] = []
        self.called = False
        """Whether the model has begun any call, of whatever kind."""
        self.final_answer: str | None = None
        self._hidden_call: str | None = None
        self.finish: Finish | None = None
        self._crashes = crash_is_armed("c4") or crash_is_armed("c5")
        self._kept: ResponseKept | None = None
        kept = turn.kept
        if kept is not None:
            # The place is stored with a chunk that may have closed the text meanwhile.
            open_texts = {part.id for part in turn.reply.fold.open_parts() if part.kind == "text"}
            self._resumed = kept.renamed
            turn.past.open_text = kept.goes_on if kept.goes_on in open_texts else None

    async def take(self, event: ModelEvent) -> None:
        """One event of the stream."""
        if type(event) is TextDelta:
            part_id = event.id
            if self._resumed is not None and part_id == self._resumed[0]:
                part_id = self._resumed[1]
            if event.delta:
                chunk = {"type": "text-delta", "id": part_id, "delta": event.delta}
                await self._turn.emit(chunk, self._kept)
        elif isinstance(event, Bookmark):
            await self._take_kept(event)
            return
        elif isinstance(event, Finish | Failure):
            self._end(event)
        elif isinstance(event, TextStart) and self._turn.past.open_text is not None:
            self._resumed = (event.id, self._turn.past.open_text)
            self._turn.past.open_text = None
        elif not self._is_final_answer(event):
            await close_open_text(self._turn)
            told = self._unrepeated(event)
            if told is not None:
                await self._emit(told)
        if self._crashes:
            await self._crash_after(event)

    def _end(self, event: Finish | Failure) -> None:
        if isinstance(event, Failure):
            raise StageError("stream", event.error)
        self.finish = event
        log = self._turn.log
        if log.kept is not None:
            log.kept = log.kept_written = None

    async def _take_kept(self, bookmark: Bookmark) -> None:
        """The provider keeps the answer: what is shown is stored with the place to go on from.

        The place moves with a chunk and not before: what reaches nobody (the hidden answer) is
        read once more.
        """
        kept = kept_answer(self._turn, self._step, bookmark.token, self._resumed)
        if bookmark.event is None:
            await keep_answer(self._turn, self._step, kept)
            return
        self._kept = kept
        try:
            await self.take(bookmark.event)
        finally:
            self._kept = None

    def _is_final_answer(self, event: ModelEvent) -> bool:
        """The hidden answer tool reaches nobody: its input is the turn's output (spec/02 §8.3)."""
        name = self._step.answer_tool
        if name is None or not isinstance(event, ToolInputStart | ToolInputDelta | ToolCall):
            return False
        if isinstance(event, ToolInputDelta):
            return event.tool_call_id == self._hidden_call
        if event.tool_name != name:
            return False
        self._hidden_call = event.tool_call_id
        if isinstance(event, ToolCall):
            self.final_answer = event.input
        return True

    def _unrepeated(self, event: ModelEvent) -> ModelEvent | None:
        """Some providers use the id of a finished call again (F18).

        For the same call, when a reply is continued: it says nothing new. For another one: it
        gets an id of its own, and its input is told whole.
        """
        if not isinstance(event, ToolInputStart | ToolInputDelta | ToolCall):
            return event
        known = self._turn.reply.fold.tool_call(event.tool_call_id)
        if known is None or not has_result(known):
            return event
        if not isinstance(event, ToolCall):
            return None
        continues = self._turn.record.continuation and not self._turn.steps
        if continues and is_same_call(known, event.tool_name, event.input):
            return None
        return msgspec.structs.replace(event, tool_call_id=new_id())

    async def _emit(self, event: ModelEvent) -> None:
        if isinstance(event, ToolCall):
            self.called = True
            if event.provider_executed:
                await self._turn.emit(provider_call(event), self._kept)
                return
            call = await read_call(self._turn, self._step, event)
            self.calls.append(await emit_call(self._turn, call, self._kept))
            return
        if isinstance(event, ToolInputStart):
            self.called = True
            await self._turn.emit(input_start(self._turn, self._step, event), self._kept)
            return
        chunk = _chunk(event)
        if self._resumed is not None and chunk.get("id") == self._resumed[0]:
            chunk["id"] = self._resumed[1]
        await self._turn.emit(chunk, self._kept)

    async def _crash_after(self, event: ModelEvent) -> None:
        if isinstance(event, TextDelta | ReasoningDelta | ToolInputDelta):
            await self._turn.parts.commits.flush()
            crash_here("c5" if isinstance(event, ToolInputDelta) else "c4")


def _chunk(event: ModelEvent) -> Chunk:
    match event:
        case TextStart() | TextEnd() | ReasoningStart() | ReasoningEnd():
            return _with_metadata({"type": _BOUNDARIES[type(event)], "id": event.id}, event)
        case TextDelta():
            return {"type": "text-delta", "id": event.id, "delta": event.delta}
        case ReasoningDelta():
            return {"type": "reasoning-delta", "id": event.id, "delta": event.delta}
        case ToolResult():
            return provider_result(event)
        case ToolInputDelta():
            return {
                "type": "tool-input-delta",
                "toolCallId": event.tool_call_id,
                "inputTextDelta": event.delta,
            }
        case FilePart():
            return {"type": "file", "url": event.url, "mediaType": event.media_type}
        case SourceUrl():
            source = {"type": "source-url", "sourceId": event.source_id, "url": event.url}
            return source if event.title is None else {**source, "title": event.title}
        case SourceDocument():
            document = {
                "type": "source-document",
                "sourceId": event.source_id,
                "mediaType": event.media_type,
                "title": event.title,
            }
            return document if event.filename is None else {**document, "filename": event.filename}
        case ToolInputStart() | ToolCall() | Bookmark() | Finish() | Failure():
            raise TypeError(f"{type(event).__name__} has no chunk of its own")
        case _:
            assert_never(event)


_BOUNDARIES: dict[type, str] = {
    TextStart: "text-start",
    TextEnd: "text-end",
    ReasoningStart: "reasoning-start",
    ReasoningEnd: "reasoning-end",
}


def _with_metadata(
    chunk: Chunk, event: TextStart | TextEnd | ReasoningStart | ReasoningEnd
) -> Chunk:
    if event.provider_metadata is not None:
        chunk["providerMetadata"] = event.provider_metadata
    return chunk
