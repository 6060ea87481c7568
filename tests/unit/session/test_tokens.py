"""The guess at tokens (spec/03 §7)."""

import pytest

from tests.unit.messages.helpers import assistant, call, settled_call, text
from thinkwell.session.draft import (
    estimate_message_tokens,
    estimate_string_tokens,
)


@pytest.mark.parametrize(
    ("content", "tokens"),
    [
        ("", 0),
        ("a", 2),
        ("abcdefghi", 3),
        ("user likes coffee", 5),
        ("word " * 50, 65),
        ("    ", 1),
    ],
)
def test_a_string_is_a_quarter_of_its_length_or_its_words(content, tokens):
    assert estimate_string_tokens(content) == tokens


@pytest.mark.parametrize(
    ("part", "tokens"),
    [
        (text("abcdefgh"), 2),
        ({"type": "reasoning", "text": "abcdefgh"}, 2),
        (call("input-available", input={"q": 1}), 2),
        (settled_call("abcdefgh"), 4),
        (settled_call(None), 2),
        ({"type": "tool-x", "input": "abcdefgh", "result": [1, 2]}, 4),
        ({"type": "data-x", "text": "abcdefgh"}, 2),
        ({"type": "data-x", "data": "abcdefgh"}, 0),
        ({"type": "step-start"}, 0),
    ],
)
def test_a_part_counts_what_a_model_reads(part, tokens):
    assert estimate_message_tokens(assistant(part)) == 4 + tokens
