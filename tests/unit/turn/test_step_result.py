"""The parts of an answer by its steps, and whether there is an answer at all."""

from __future__ import annotations

from random import Random

import pytest

from tests.unit.messages.helpers import fold_chunks
from tests.unit.messages.strategies import make_stream
from thinkwell.messages.message import UIMessage, count_steps
from thinkwell.messages.sanitize import sanitize_message
from thinkwell.turn.run.step_result import has_content, last_block, step_blocks


def messages() -> list[UIMessage]:
    return [fold_chunks(make_stream(Random(seed)), "m") for seed in range(200)]


def test_the_last_block_is_the_last_of_all():
    for message in messages():
        if count_steps(message["parts"]):
            assert last_block(message["parts"]) == step_blocks(message["parts"])[-1]


@pytest.mark.parametrize("parts", [[], [{"type": "text", "text": "a"}]])
def test_before_the_first_step_there_is_none(parts: list[dict[str, str]]):
    with pytest.raises(IndexError):
        last_block(parts)


def test_an_answer_has_content_if_anything_but_step_marks_would_be_stored():
    silent: UIMessage = {
        "id": "m",
        "role": "assistant",
        "parts": [{"type": "step-start"}, {"type": "reasoning", "text": " "}],
    }
    for message in (silent, *messages()):
        stored = sanitize_message(message)["parts"]
        kept = any(part.get("type") != "step-start" for part in stored)
        assert has_content(message) is kept
    assert not has_content(silent)
