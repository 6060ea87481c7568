"""What the loop writes into the journal beside chunks: one function per event.

Each takes its place behind the chunks so far and waits for the next commit. Writing down what a
turn does must never be what fails it: what JSON cannot hold is left out, and the event says so.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, cast

from thinkwell.core import json
from thinkwell.journal.events import (
    CallClaimed,
    CallSettled,
    HookDecided,
    JournalBody,
    ModelAsked,
    ModelFailed,
    StoredPath,
    encode_event,
    kind_of,
)
from thinkwell.journal.ledger import Claim
from thinkwell.models.base import Model, ModelRequest
from thinkwell.session.rows import StoredMessage
from thinkwell.turn.run.running import RunningTurn

log = logging.getLogger("thinkwell.turn")

MOST_NOTED = 16 * 1024 * 1024
"""Characters of events in one turn: its journal must fit into a row when it ends."""
_ELSEWHERE = frozenset(
    {"system", "messages", "tools", "output", "runtime_context", "headers", "error", "reason"}
)
"""Fields of a hook's answer that are in the request or the result, or are no data: only their names
are kept. What becomes a result is not repeated here, because later hooks may hide it.
"""


def path_of(window: Sequence[StoredMessage], older: int) -> StoredPath:
    """How the journal names the messages that were read for a request."""
    return StoredPath(
        leaf=window[-1].id,
        first=window[0].id,
        count=len(window),
        older=max(older, 0),
        versions={place: m.version for place, m in enumerate(window) if m.version != 1},
    )


def note_request(turn: RunningTurn, step: int, model: Model, request: ModelRequest) -> None:
    """A model is about to be called."""
    now, event = turn.parts.clock.now(), None
    try:
        event, bodies = turn.requests.asked(request, model, step, now)
        body = encode_event(event)
        if turn.log.noted + len(body) > MOST_NOTED:
            raise ValueError("The requests of this turn hold too much that is stored nowhere else.")
        turn.note(kind_of(event), body, bodies)
    except (TypeError, ValueError) as error:  # a hook gave a message with an object in it
        log.warning("a model request cannot be written down: %s", error)
        if event is not None:
            turn.requests.take_back(event.given)
        left = ModelAsked(
            step=step,
            provider=model.provider,
            model=model.model_id,
            at=now,
            history=None if event is None else event.history,  # later requests refer to it
            incomplete=json.error_text(error),
        )
        _note(turn, left)


def note_failure(turn: RunningTurn, step: int, error: BaseException) -> None:
    """A model call failed."""
    now = turn.parts.clock.now()
    _note(turn, ModelFailed(step=step, error=json.error_text(error), at=now))


def note_claim(turn: RunningTurn, claim: Claim) -> None:
    """A tool is about to run."""
    event = CallClaimed(
        call_id=claim.call_id,
        tool_name=claim.tool_name,
        step=claim.step,
        effect=claim.effect,
        key=claim.idempotency_key,
        at=turn.parts.clock.now(),
    )
    _note(turn, event)


def note_result(turn: RunningTurn, call_id: str, outcome: str, took_ms: float) -> None:
    """A call has its result."""
    _note(turn, CallSettled(call_id=call_id, outcome=outcome, took_ms=round(took_ms, 3)))


def note_decision(
    turn: RunningTurn,
    event: str,
    hook: str,
    said: Mapping[str, Any],
    *,
    call_id: str | None = None,
) -> None:
    """A hook has answered."""
    plain = {name: _plain(name, value) for name, value in said.items()}
    _note(turn, HookDecided(event=event, hook=hook, said=plain, call_id=call_id))


def _note(turn: RunningTurn, event: JournalBody) -> None:
    turn.note(kind_of(event), encode_event(event))


def _plain(name: str, value: Any) -> Any:
    if name in _ELSEWHERE:
        return True
    if isinstance(value, Model):
        return f"{value.provider}:{value.model_id}"
    if isinstance(value, BaseException):
        return json.error_text(value)
    try:
        return json.to_jsonable(dict(cast("Any", value)) if isinstance(value, Mapping) else value)
    except ValueError:  # a function, a condition, an object of the app
        return True
