"""A model call that waits for a free slot: everybody who looks can see it (models/gate.py).

The bus, the journal and the clients hear when the wait begins and how it ends. No time limit of the
call runs meanwhile. A turn that waits when its process dies has done nothing that could have killed
it, and is not counted as if it had (`journal/budget.py`); it is found and waits again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager

from thinkwell.core.turn_events import ModelAdmitted, ModelWaiting
from thinkwell.journal.budget import WAITING
from thinkwell.journal.events import JournalBody, WaitBegun, WaitOver, encode_event, kind_of
from thinkwell.models.base import ModelEvent
from thinkwell.models.gate import ModelGate, ModelWait, current_caller, open_stream
from thinkwell.turn.run.places import mark
from thinkwell.turn.run.running import RunningTurn
from thinkwell.turn.run.step import Step
from thinkwell.turn.run.watch import Watch


@contextmanager
def through_gate(
    turn: RunningTurn, step: Step, watch: Watch, gate: ModelGate
) -> Generator[AsyncIterator[ModelEvent]]:
    """The model's stream, once it is this turn's turn."""
    token = current_caller.set(_TurnCaller(turn, step, watch, gate))
    try:
        yield open_stream(step.model, step.request, turn.signal)
    finally:
        current_caller.reset(token)


class _TurnCaller:
    """A turn, as the gate knows it."""

    def __init__(self, turn: RunningTurn, step: Step, watch: Watch, gate: ModelGate) -> None:
        record = turn.record
        asks = record.principal
        self.who = f"agent {record.agent_id}" if asks is None else f"principal {asks.id}"
        self.gate = gate
        self._turn = turn
        self._step = step
        self._watch = watch

    async def waiting(self, wait: ModelWait) -> None:
        """It waits from now on."""
        turn = self._turn
        self._watch.hold()
        self._show(wait.model)
        turn.parts.bus.emit(
            ModelWaiting,
            **turn.event_fields(),
            model=wait.model,
            limit=wait.limit,
            reason=wait.reason,
            ahead=wait.ahead,
        )
        self._note(
            WaitBegun(
                step=self._step.number,
                model=wait.model,
                limit=wait.limit,
                reason=wait.reason,
                at=turn.parts.clock.now(),
            )
        )
        if turn.places is not None:
            await mark(turn, (WAITING,))

    async def admitted(self, wait: ModelWait, seconds: float) -> None:
        """The model is called now."""
        turn = self._turn
        if turn.places is not None:
            await mark(turn, turn.places.now)  # before the call: it may be what kills
        self._show(None)
        milliseconds = round(seconds * 1000, 3)
        turn.parts.bus.emit(
            ModelAdmitted,
            **turn.event_fields(),
            model=wait.model,
            limit=wait.limit,
            waited_ms=milliseconds,
        )
        now = turn.parts.clock.now()
        self._note(WaitOver(step=self._step.number, waited_ms=milliseconds, at=now))
        self._watch.go_on()

    def left(self, wait: ModelWait) -> None:
        """The turn was stopped first, and says so itself."""
        del wait
        self._show(None)

    def _show(self, model: str | None) -> None:
        turn = self._turn
        turn.handle.waits_for_model = model is not None
        turn.parts.line.look_again()
        turn.parts.audience.model_waiting(turn.record.request_id, model)

    def _note(self, event: JournalBody) -> None:
        self._turn.note(kind_of(event), encode_event(event))
