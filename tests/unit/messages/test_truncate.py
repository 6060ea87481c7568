"""What a model sees of older messages (spec/02 §10.6, spec/03 §14)."""

import copy

import pytest

from tests.unit.messages.helpers import assistant, settled_call, text, user
from thinkwell.messages.truncate import count_older, truncate_message, truncate_older_messages


def history(count, content="x" * 20_000):
    return [user(text(content), id=f"m{n}") for n in range(count)]


def shortened(messages):
    return [len(message["parts"][0]["text"]) < 20_000 for message in messages]


@pytest.mark.parametrize(("total", "older"), [(0, 0), (4, 0), (7, 0), (8, 4), (11, 4), (12, 8)])
def test_the_border_moves_in_steps_of_four(total, older):
    assert count_older(total) == older
    assert sum(shortened(truncate_older_messages(history(total)))) == older


def test_a_window_is_cut_where_the_whole_path_would_be():
    path = history(23)
    whole = truncate_older_messages(path)
    for first in range(23):
        assert truncate_older_messages(path[first:], first_index=first) == whole[first:]


def test_old_texts_keep_their_beginning_and_say_how_long_they_were():
    old = truncate_message(user(text("a" * 10_000 + "b")))
    assert old["parts"][0]["text"] == "a" * 10_000 + "... [truncated 10001 chars]"


def test_old_outputs_are_shortened():
    old = truncate_message(assistant(settled_call({"log": "x" * 9000, "code": 0})))
    assert old["parts"][0]["output"]["code"] == 0
    assert len(old["parts"][0]["output"]["log"]) < 500


def test_limits_can_be_set():
    short = truncate_older_messages(history(8), keep_recent=0, max_text_chars=3)
    assert short[7]["parts"][0]["text"] == "xxx... [truncated 20000 chars]"


@pytest.mark.parametrize("count", [3, 30])
def test_nothing_to_do_gives_the_same_list(count):
    messages = history(count, "short")
    assert truncate_older_messages(messages) is messages


def test_the_input_is_never_changed():
    messages = [*history(8), assistant(settled_call("x" * 900))]
    before = copy.deepcopy(messages)
    truncate_older_messages(messages)
    assert messages == before
