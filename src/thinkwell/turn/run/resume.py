"""Going on after a crash (DESIGN §8.3, spec/04 §6).

The journal of the interrupted attempt is read back and folded; what it says decides where to go on:

- a `finish` chunk: everything was said; settle, no model call (C10)
- the last step has ended: begin the next one, or end, as the step says (C9)
- the last step is open and its model call had ended: end the step
- the last step is open and asked for tools: settle those calls, then begin the next one (C5–C8)
- the last step is open with text only: ask the model to go on in the same step (C4)
- nothing: run from the start, in the same journal (C2, C3)

`read_position` is pure; `restore` does the reading, `interruption_of` says what the budget has to
know; `turn/run/recovery.py` asks it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, cast

import msgspec

from thinkwell.core import json
from thinkwell.journal.boots import was_unplanned
from thinkwell.journal.budget import Interruption, progress_of, tool_place, work_of
from thinkwell.journal.events import ModelPaused, ResponseKept, encode_event, kind_of
from thinkwell.journal.ledger import read_ledger
from thinkwell.journal.reading import StoredJournal, live_journal, read_journal
from thinkwell.journal.turn_log import KEPT, TurnLog
from thinkwell.messages.chunks import Chunk
from thinkwell.messages.message import Part, tool_name, tool_parts
from thinkwell.models.base import Finish
from thinkwell.turn.end.ending import Completed
from thinkwell.turn.run.growth import OutsideAnswer, Pauses
from thinkwell.turn.run.pending_call import is_dynamic
from thinkwell.turn.run.running import RunningTurn
from thinkwell.turn.run.step_result import (
    finish_from_json,
    has_result,
    step_blocks,
    step_result,
    stop_reason_of,
)


class Position(msgspec.Struct, frozen=True):
    """Where a journal stopped."""

    started: bool
    steps_begun: int
    step_open: bool
    finish_reason: str | None


def read_position(chunks: Iterable[Chunk]) -> Position:
    """Where the stream stopped."""
    started, begun, step_open, finish = False, 0, False, None
    for chunk in chunks:
        match chunk["type"]:
            case "start":
                started = True
            case "start-step":
                begun, step_open = begun + 1, True
            case "finish-step":
                step_open = False
            case "finish":
                finish = str(chunk.get("finishReason", "stop"))
            case _:
                pass
    return Position(started, begun, step_open, finish)


async def restore(turn: RunningTurn) -> Completed | None:
    """Read the journal back into `turn`. Returns the end when everything was said already."""
    stored = await _read_left(turn)
    chunks = [cast("Chunk", json.loads(body)) for body in stored.bodies]
    events = [event for event in stored.events if event.kind != KEPT]
    turn.log = TurnLog(turn.parts.owner, turn.record.request_id, stored.bodies, events)
    turn.past.ledger = await read_ledger(turn.parts.store, turn.record)
    for event in stored.in_order():
        if event.kind in ("chunk", "hidden"):
            turn.reply.fold.apply(event.body)
        elif event.kind == "answer":
            turn.take_answer(msgspec.convert(event.body, OutsideAnswer))
    _count_progress(turn, chunks)
    position = read_position(chunks)
    turn.started = position.started
    turn.past.step_open = position.step_open
    ended = position.steps_begun - (1 if position.step_open else 0)
    turn.step_number = max(ended, 0)
    _restore_steps(turn, stored, ended)
    turn.past.pauses = _read_pauses(turn)
    if position.step_open and turn.past.finish is CUT and (kept := stored.of_kind(KEPT)):
        turn.log.kept = turn.log.kept_written = msgspec.convert(kept[-1], ResponseKept)
    if position.finish_reason is None:
        return None
    asked = bool(turn.steps and turn.steps[-1].tool_calls)  # and was not let go on
    output = stored.of_kind("output")
    reason = stop_reason_of(position.finish_reason, capped=asked)
    return Completed(reason, output[-1]["value"] if output else None)


async def _read_left(turn: RunningTurn) -> StoredJournal:
    """The journal that an earlier life of the process has left."""
    record = turn.record
    if record.journal_start is None:
        return StoredJournal((), ())
    parts = turn.parts
    if record.incident.boots[-1:] == (parts.boot,):  # this process wrote it, wherever that is
        return await read_journal(parts.store, record)
    rows = await parts.left_rows.take(record.agent_id, record.request_id, record.journal_start)
    return live_journal(record, rows)


async def interruption_of(turn: RunningTurn) -> Interruption:
    """What ended the attempt before this one, and what that had come to."""
    parts, last = turn.parts, turn.record.incident.boots[-1:]
    died = bool(last) and last[0] != parts.boot and await was_unplanned(parts.store, last[0])
    running: list[str] = []
    settled: set[str] = set()
    for part in tool_parts(turn.reply.fold.message):
        place = tool_place(tool_name(part), part["toolCallId"])
        claimed = turn.past.ledger.get(part["toolCallId"])
        if has_result(part):
            settled.add(place)
        elif claimed is not None and not claimed.settled:
            running.append(place)
    return Interruption(
        cause="death" if died else "stop",
        progress=turn.past.progress,
        milestones=turn.past.milestones,
        said=has_begun(turn),
        running=running,
        settled=frozenset(settled),
    )


def has_begun(turn: RunningTurn) -> bool:
    """Whether this turn has said anything that its next attempt goes on with."""
    return bool(turn.reply.own_parts())


def _count_progress(turn: RunningTurn, chunks: Sequence[Chunk]) -> None:
    settled_calls = sum(row.settled for row in turn.past.ledger.values())
    turn.past.progress = progress_of(chunks, settled_calls)
    turn.past.milestones = work_of(chunks)


def _restore_steps(turn: RunningTurn, stored: StoredJournal, ended: int) -> None:
    finishes = {
        cast("int", body["stepNumber"]): finish_from_json(body) for body in stored.of_kind("model")
    }
    blocks = step_blocks(turn.reply.fold.message["parts"])[turn.reply.earlier_steps :]
    for number, block in enumerate(blocks[:ended]):
        finish = finishes.get(number, CUT)
        turn.steps.append(step_result(number, block, finish, partial(_is_dynamic, turn)))
        turn.note_spent(finish)
    turn.past.finish = finishes.get(ended, CUT)


def _is_dynamic(turn: RunningTurn, part: Part) -> bool:
    """As far as the parts and what is at hand tell: no code of the agent may run before the budget
    is judged, so `get_tools` and the features are not asked.
    """
    name = tool_name(part)
    unknown = part["type"] == "dynamic-tool" or part.get("providerExecuted") is True
    own = turn.parts.own_tools.get(name)
    return is_dynamic(turn.parts, turn.record, name, own, unknown=unknown)


CUT = Finish(reason="other", raw_reason="interrupted")
"""Stands for the end of a model call that a crash cut off."""


def open_tool_calls(turn: RunningTurn) -> list[dict[str, Any]]:
    """Tool parts of the interrupted step, in the model's order."""
    block = turn.reply.last_step()
    return [part for part in block if "toolCallId" in part]


def reopen(turn: RunningTurn) -> None:
    """The model stalled: the step it was in is open, and the next attempt goes on with it."""
    chunks: list[Chunk] = [json.loads(body) for body in turn.log.bodies]
    _count_progress(turn, chunks)
    position = read_position(chunks)
    turn.past.step_open = position.step_open
    turn.past.finish = None
    turn.past.pauses = _read_pauses(turn)


def note_pause(turn: RunningTurn, finish: Finish) -> None:
    """The provider paused: the step stays open, and the next call goes on in it."""
    event = ModelPaused(
        step=turn.step_number,
        at=turn.parts.clock.now(),
        reason=finish.raw_reason,
        usage=finish.usage,
        options=finish.paused or {},
        response_id=finish.response_id,
    )
    turn.note(kind_of(event), encode_event(event))
    turn.past.step_open = True
    turn.past.pauses = _after(turn.past.pauses, event)


def _after(pauses: Pauses, event: ModelPaused) -> Pauses:
    return Pauses(pauses.count + 1, pauses.usage + event.usage, event.options)


def _read_pauses(turn: RunningTurn) -> Pauses:
    """How often the provider has paused, as the journal says, and whether it waits to go on."""
    pauses, said = Pauses(), len(turn.log.bodies)
    for event in turn.log.events:
        if event.kind == "pause":
            paused = msgspec.json.decode(event.body, type=ModelPaused)
            earlier = paused.step != turn.step_number
            pauses = Pauses(pauses.count + 1) if earlier else _after(pauses, paused)
            said = event.seq
        elif event.kind == "hidden":
            said = -1
    if pauses.options is not None and said != len(turn.log.bodies):  # the call after it was cut
        pauses = msgspec.structs.replace(pauses, options=None)
    return pauses


async def close_open_parts(turn: RunningTurn) -> None:
    """Reasoning is closed; a text that is the step's last part stays open, so that it can go on."""
    parts = turn.reply.fold.message["parts"]
    open_parts = turn.reply.fold.open_parts()
    for part in open_parts:
        if part.kind == "text" and parts[-1].get("type") == "text" and part is open_parts[-1]:
            turn.past.open_text = part.id
        elif part.kind in ("text", "reasoning"):
            await turn.emit({"type": f"{part.kind}-end", "id": part.id})
