"""What a model sees of older messages (spec/02 §10.6, spec/03 §14)."""

import copy

import pytest

from tests.unit.messages.helpers import assistant, settled_call, text, user
from thinkwell.messages.convert import count_older, truncate_message


@pytest.mark.parametrize(("total", "older"), [(0, 0), (4, 0), (7, 0), (8, 4), (11, 4), (12, 8)])
def test_the_border_moves_in_steps_of_four(total, older):
    assert count_older(total) == older


def test_how_many_are_recent_can_be_set():
    assert [count_older(8, keep_recent) for keep_recent in (0, 4, 5)] == [8, 4, 0]


def test_old_texts_keep_their_beginning_and_say_how_long_they_were():
    old = truncate_message(user(text("a" * 10_000 + "b")))
    assert old["parts"][0]["text"] == "a" * 10_000 + "... [truncated 10001 chars]"


def test_old_outputs_are_shortened():
    old = truncate_message(assistant(settled_call({"log": "x" * 9000, "code": 0})))
    assert old["parts"][0]["output"]["code"] == 0
    assert len(old["parts"][0]["output"]["log"]) < 500


def test_limits_can_be_set():
    short = truncate_message(user(text("x" * 20_000)), max_text_chars=3)
    assert short["parts"][0]["text"] == "xxx... [truncated 20000 chars]"


def test_a_short_message_comes_back_as_it_is():
    message = user(text("a" * 10_000))
    assert truncate_message(message) is message


def test_the_input_is_never_changed():
    message = assistant(text("x" * 20_000), settled_call("x" * 900))
    before = copy.deepcopy(message)
    truncate_message(message)
    assert message == before
