"""Results for the calls that the end of a turn leaves without one.

`on_chunk` hears of them like of any chunk, but the turn has ended: the hook can neither change that
nor keep it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from thinkwell.core.errors import AbortTurn, FailTurn
from thinkwell.core.tasks import UNWIND, LeftBehindError, StoppedError, run_apart
from thinkwell.core.turn_events import HookLeftBehind
from thinkwell.hooks.dispatch import HookFailedError
from thinkwell.messages.chunks import Chunk, tool_error
from thinkwell.messages.message import is_tool_part
from thinkwell.messages.waiting import approved_calls
from thinkwell.turn.end.ending import Aborted, Ending, Parked
from thinkwell.turn.run.running import RunningTurn
from thinkwell.turn.run.step_result import has_result

log = logging.getLogger("thinkwell.turn")


async def settle_leftovers(turn: RunningTurn, ending: Ending) -> None:
    """No stored reply keeps a call without a result (spec/02 §7.10)."""
    if turn.log.failure is not None:
        return
    begun = [part for part in approved_calls(turn.reply.fold.message) if "preliminary" in part]
    left = [p for p in (*begun, *turn.reply.own_parts()) if is_tool_part(p) and not has_result(p)]
    if not left:
        return
    chunks = [_leftover(turn, ending, part["toolCallId"]) for part in left]
    if not isinstance(ending, Parked):
        await _show_leftovers(turn, chunks)
    for chunk in chunks:
        turn.record_chunk(chunk)
    turn.parts.commits.note(turn.log)


def _leftover(turn: RunningTurn, ending: Ending, call_id: str) -> Chunk:
    started = call_id in turn.calls.claimed or call_id in turn.past.ledger
    return tool_error(call_id, _leftover_text(ending, started=started))


def _leftover_text(ending: Ending, *, started: bool) -> str:
    if isinstance(ending, Parked):
        return "The process died while the turn ran. It is not known whether this call finished."
    if started:
        ended = "Stopped" if isinstance(ending, Aborted) else "The turn failed"
        return f"{ended} while it ran. It is not known whether this call finished."
    return (
        "Stopped before it ran."
        if isinstance(ending, Aborted)
        else "The turn failed before it ran."
    )


async def _show_leftovers(turn: RunningTurn, chunks: Sequence[Chunk]) -> None:
    """Tell `on_chunk`, in a task of its own: the hook may be what the turn was stopped for."""
    parts, grace = turn.parts, max(turn.settings.limits.grace, UNWIND)
    try:
        with turn.signal.future() as stop:
            await run_apart(
                _show(turn, chunks),
                name="on_chunk",
                stop=stop,
                limit=turn.settings.limits.hook,
                grace=grace,
                owner=parts.tasks,
            )
    except StoppedError:
        log.warning("on_chunk took too long at the end of a turn", extra={"action": "settle"})
    except LeftBehindError as left:
        parts.tasks.keep(left.task)
        parts.bus.emit(HookLeftBehind, **turn.event_fields(), hook="on_chunk")


async def _show(turn: RunningTurn, chunks: Sequence[Chunk]) -> None:
    for chunk in chunks:
        try:
            await turn.show(chunk)
        except (AbortTurn, FailTurn, HookFailedError) as late:  # the turn has its ending
            log.debug("a hook ended a turn that has ended: %r", late, extra={"action": "settle"})
