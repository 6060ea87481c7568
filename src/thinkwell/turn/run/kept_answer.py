"""Going on with an answer that the provider keeps, instead of paying for a second one.

The journal says with every commit how far such an answer has come (`ResponseKept`). After a crash,
a stall or a lost connection the model gives the rest of it, in the same step: what was shown stays,
and nothing is asked. It was accepted and paid for, so it is used even if the code has changed
since, and with it prompt or tools; the journal says so. Where it cannot be taken up, the turn goes
on after the text that was shown, as with any other model.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from thinkwell.core import json
from thinkwell.core.errors import ModelError
from thinkwell.core.user_code import contained
from thinkwell.journal.crash_points import crash_here, crash_is_armed
from thinkwell.journal.events import ModelResumed, ResponseKept, encode_event, kind_of
from thinkwell.messages.message import tool_name
from thinkwell.models.base import Model, ModelEvent
from thinkwell.models.resumable import ResumableModel
from thinkwell.turn.end.ending import StalledError
from thinkwell.turn.run.assemble import chosen_model
from thinkwell.turn.run.journal_events import note_failure
from thinkwell.turn.run.pending_call import PendingCall
from thinkwell.turn.run.resume import open_tool_calls
from thinkwell.turn.run.running import RunningTurn
from thinkwell.turn.run.shown_tools import shown_in_step
from thinkwell.turn.run.step import Step

log = logging.getLogger("thinkwell.turn")


def keeps(model: Model, kept: ResponseKept) -> bool:
    """Whether this model can give the rest of the answer: any of the same provider can."""
    return isinstance(model, ResumableModel) and model.provider == kept.provider


def kept_answer(
    turn: RunningTurn,
    step: Step,
    token: Mapping[str, Any] | None,
    renamed: tuple[str, str] | None,
) -> ResponseKept:
    """How far the answer has come, and under which id its text goes on."""
    return ResponseKept(
        step=step.number,
        provider=step.model.provider,
        token=token,
        renamed=renamed,
        goes_on=turn.past.open_text,
    )


async def keep_answer(turn: RunningTurn, step: Step, kept: ResponseKept) -> None:
    """The provider has said that it keeps the answer: the next commit says so."""
    turn.log.kept, turn.answering = kept, step.model
    turn.parts.commits.note(turn.log)
    if crash_is_armed("c17"):
        await turn.parts.commits.flush()
        crash_here("c17")


async def take_up(
    turn: RunningTurn, step: Step
) -> tuple[list[PendingCall], AsyncIterator[ModelEvent] | None]:
    """The calls of the answer that are known, and the rest of it.

    Raises `StalledError` if this model cannot give the rest: then it is asked to go on itself.
    """
    kept = turn.kept
    if kept is None or kept.token is None:
        return [], None
    model = step.model
    if not isinstance(model, ResumableModel) or not keeps(model, kept):
        now = f"{model.provider}:{model.model_id}"
        error = ModelError(f"The answer is kept by {kept.provider}, and the model is {now} now.")
        note_failure(turn, step.number, error)
        turn.log.kept = _nothing(kept)
        raise lost(turn, error)
    event = ModelResumed(
        step=step.number,
        provider=model.provider,
        model=model.model_id,
        at=turn.parts.clock.now(),
        token=kept.token,
        changed=tuple(_changed(turn, step)),
    )
    turn.note(kind_of(event), encode_event(event))
    if event.changed:
        log.warning(
            "a kept answer goes on although the %s changed since it was asked for: it is paid for",
            " and the ".join(event.changed),
        )
    return await _known_calls(turn), model.resume(kept.token, step.request, turn.signal)


async def _known_calls(turn: RunningTurn) -> list[PendingCall]:
    """Calls of the open step that are complete and wait to be run when the answer has ended."""
    parts = [
        part
        for part in open_tool_calls(turn)
        if part["state"] != "input-streaming" and part.get("providerExecuted") is not True
    ]
    shown = await shown_in_step(turn) if parts else {}
    return [PendingCall.from_part(part, shown=shown.get(tool_name(part))) for part in parts]


def _changed(turn: RunningTurn, step: Step) -> Iterator[str]:
    """What would be asked otherwise now."""
    asked = [event for event in turn.log.events if event.kind == "request"]
    if not asked:
        return
    before = json.loads(asked[-1].body)
    system, tools = turn.requests.hashes(step.request)
    now = {"system": system, "tools": tools, "model": step.model.model_id}
    names = {"system": "prompt"}
    yield from (names.get(key, key) for key, value in now.items() if before.get(key) != value)


def lost(turn: RunningTurn, error: Exception) -> StalledError:
    """The kept answer cannot be taken up: the model is asked to go on after what was shown."""
    log.warning(
        "a kept answer cannot be taken up, so the model is asked again: %s",
        error,
        extra={"action": "turn:lost_answer", **turn.event_fields()},
    )
    return StalledError(str(error))


def give_up_answer(turn: RunningTurn) -> None:
    """The turn ends without it (a stop, a failure): the provider need not go on."""
    kept = turn.kept
    if kept is not None and kept.token is not None:
        turn.log.kept = _nothing(kept)
        turn.parts.tasks.spawn(_cancel(turn, kept), name="cancel kept answer")


async def _cancel(turn: RunningTurn, kept: ResponseKept) -> None:
    try:
        with contained("cancel"):
            model = turn.answering or await chosen_model(turn)
            if isinstance(model, ResumableModel) and kept.token is not None and keeps(model, kept):
                await model.cancel(kept.token)
    except Exception as error:  # noqa: BLE001 - it ends by itself, later
        log.warning("a kept answer could not be cancelled at its provider: %s", error)


def _nothing(kept: ResponseKept) -> ResponseKept:
    return ResponseKept(step=kept.step, provider=kept.provider)
