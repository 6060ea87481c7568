"""A debounced turn waits for its time, whatever happens to the clock on the wall."""

from __future__ import annotations

import pytest

from thinkwell.journal.tail import Ended, Started
from thinkwell.journal.turns import TurnRecord
from thinkwell.turn.handle import TurnHandle


class Clock:
    def __init__(self) -> None:
        self.wall = 1_000_000.0
        self.steady = 50.0

    def now(self) -> float:
        return self.wall

    def monotonic(self) -> float:
        return self.steady


def handle(not_before: float | None) -> TurnHandle:
    return TurnHandle(
        TurnRecord(
            agent_id="a/x",
            request_id="q1",
            trigger="ws-chat",
            status="accepted",
            generation=0,
            not_before=not_before,
        )
    )


async def test_a_turn_that_is_not_debounced_does_not_wait():
    assert handle(None).pause(Clock()) == 0.0


@pytest.mark.parametrize("jump", [-3600.0, 3600.0])
async def test_a_clock_that_is_set_neither_delays_nor_hurries_it(jump: float):
    clock = Clock()
    waiting = handle(clock.wall + 2.0)
    assert waiting.pause(clock) == pytest.approx(2.0)
    clock.wall += jump
    clock.steady += 1.5
    assert waiting.pause(clock) == pytest.approx(0.5)
    clock.steady += 1.0
    assert waiting.pause(clock) < 0


async def test_who_waits_for_the_end_alone_hears_it_once():
    """A turn that is released because the app stops may end after all."""
    turn, calls = handle(None), list[str]()
    turn.at_end(lambda: calls.append("early"))
    turn.tell(Started(turn.record, 0))
    assert calls == []
    turn.release(RuntimeError("the app stops"))
    await turn.end(Ended(turn.record))
    turn.at_end(lambda: calls.append("late"))
    assert calls == ["early", "late"]
