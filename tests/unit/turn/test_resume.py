"""Where a journal stopped, and whether to go on (DESIGN §8.3, spec/02 §4.2, spec/04 §6)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkwell.models.base import Finish
from thinkwell.turn.run.resume import Position, read_position
from thinkwell.turn.run.step_result import stop_reason_of
from thinkwell.turn.run.steps import Continue, Final, decide_next

START = {"type": "start", "messageId": "m"}
STEP = {"type": "start-step"}
TEXT = {"type": "text-delta", "id": "t", "delta": "x"}
END_STEP = {"type": "finish-step"}
END = {"type": "finish", "finishReason": "stop"}


@pytest.mark.parametrize(
    ("chunks", "position"),
    [
        ([], Position(False, 0, False, None)),
        ([START], Position(True, 0, False, None)),
        ([START, STEP, TEXT], Position(True, 1, True, None)),
        ([START, STEP, TEXT, END_STEP], Position(True, 1, False, None)),
        ([START, STEP, END_STEP, STEP], Position(True, 2, True, None)),
        ([START, STEP, TEXT, END_STEP, END], Position(True, 1, False, "stop")),
        ([START, {"type": "finish"}], Position(True, 0, False, "stop")),
    ],
)
def test_a_position_is_what_the_chunks_say(chunks: list[Any], position: Position):
    assert read_position(chunks) == position


@given(st.lists(st.sampled_from([START, STEP, TEXT, END_STEP]), max_size=20))
def test_steps_begun_are_never_fewer_than_steps_open(chunks: list[Any]):
    position = read_position(chunks)
    assert position.steps_begun >= int(position.step_open)
    assert position.finish_reason is None


class TestDecision:
    @pytest.mark.parametrize("reason", ["stop", "tool-calls", "other"])
    def test_4_2_tools_that_ran_lead_to_another_step(self, reason: Any):
        assert decide_next(Finish(reason=reason), called=True) == Continue()

    @pytest.mark.parametrize(
        ("reason", "stop"),
        [
            ("stop", "end"),
            ("tool-calls", "end"),
            ("length", "length"),
            ("content-filter", "content-filter"),
            ("other", "other"),
        ],
    )
    def test_without_calls_the_finish_reason_is_the_end(self, reason: Any, stop: str):
        following = decide_next(Finish(reason=reason), called=False)
        assert isinstance(following, Final)
        assert following.stop_reason == stop

    @pytest.mark.parametrize("reason", ["length", "content-filter"])
    def test_4_3_a_cut_answer_ends_the_turn_although_it_has_calls(self, reason: Any):
        assert decide_next(Finish(reason=reason), called=True) == Final(reason)

    @pytest.mark.parametrize(
        ("reason", "stop"),
        [("tool-calls", "max_steps"), ("other", "max_steps"), ("length", "length")],
    )
    def test_calls_that_were_not_let_go_on_ended_at_a_cap(self, reason: str, stop: str):
        assert stop_reason_of(reason, capped=True) == stop
