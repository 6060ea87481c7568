"""What clients may see of a stored message (spec/02 AC91)."""

from __future__ import annotations

from typing import Any

from thinkwell.core import json
from thinkwell.messages.message import UIMessage, visible_message, visible_text


def message(*parts: dict[str, Any]) -> UIMessage:
    return {"id": "m", "role": "assistant", "parts": list(parts)}


SAID = {"type": "text", "text": '"hidden":true'}
HIDDEN = {"type": "reasoning", "text": "hm", "hidden": True}


def test_ac91_a_hidden_part_is_left_out_and_the_stored_message_keeps_it():
    stored = message(HIDDEN, SAID)
    assert visible_message(stored) == message(SAID)
    assert stored["parts"] == [HIDDEN, SAID]


def test_a_message_with_nothing_hidden_comes_back_as_it_is():
    stored = message(SAID)
    assert visible_message(stored) is stored


def test_an_encoded_message_loses_the_same_parts():
    assert json.loads(visible_text(json.dumps(message(HIDDEN, SAID)))) == message(SAID)


def test_words_that_look_like_the_mark_change_nothing():
    encoded = json.dumps(message(SAID))
    assert json.loads(visible_text(encoded)) == message(SAID)
