"""Messages that are too large for a row (spec/01 §7.7, spec/03 §11)."""

import copy

import pytest

from tests.unit.messages.helpers import assistant, call, settled_call, text, user
from thinkwell.core import json
from thinkwell.core.errors import MessageTooLargeError
from thinkwell.messages.limits import MAX_ROW_BYTES, enforce_row_size_limit


def size(message):
    return len(json.dump_bytes(message))


def test_what_fits_comes_back_as_it_is():
    message = assistant(settled_call("x" * 50_000))
    assert enforce_row_size_limit(message) is message


@pytest.mark.parametrize("part", [text("word " * 1_800_000), settled_call("x" * 2_000_000)])
def test_an_answer_is_kept_whole_far_beyond_what_a_model_reads(part):
    """Nothing a client saw is lost."""
    message = assistant(part)
    assert enforce_row_size_limit(message) is message


def test_bytes_count_and_not_characters():
    """Acceptance case 67, with the limit that only questions have now."""
    message = assistant(settled_call("一" * 700_000))
    stored = enforce_row_size_limit(message, MAX_ROW_BYTES)
    assert size(stored) <= 1_800_000
    assert stored.get("metadata") == {"compactedToolOutputs": ["c1"]}


def test_long_texts_go_oldest_first_until_it_fits():
    message = assistant(text("a" * 3000), text("b" * 3000), text("short"), metadata={"mine": 1})
    stored = enforce_row_size_limit(message, 4500)
    start = "[Text truncated for storage (3000 chars). First 500 chars: "
    assert stored["parts"][0]["text"] == start + "a" * 500 + "...]"
    assert stored["parts"][1:] == message["parts"][1:]
    assert stored.get("metadata") == {"mine": 1, "compactedTextParts": [0]}


def test_outputs_go_before_texts():
    message = assistant(text("a" * 3000), settled_call("x" * 3000))
    stored = enforce_row_size_limit(message, 5000)
    assert stored["parts"][0] is message["parts"][0]
    assert len(stored["parts"][1]["output"]) == 1000


@pytest.mark.parametrize(
    "part",
    [
        call("input-available", input={"file": "x" * 9000}),
        call("output-error", errorText="x" * 9000),
        {"type": "reasoning", "text": "x" * 9000, "providerMetadata": {"m": {"signature": "s"}}},
    ],
)
def test_then_inputs_error_texts_and_reasoning(part):
    stored = enforce_row_size_limit(assistant(part), 3000)
    assert size(stored) <= 3000
    assert stored["parts"][0]["type"] == part["type"]


def test_cut_reasoning_loses_its_signature():
    part = {"type": "reasoning", "text": "x" * 9000, "providerMetadata": {"m": {}}}
    assert "providerMetadata" not in enforce_row_size_limit(assistant(part), 3000)["parts"][0]


def test_a_message_that_cannot_shrink_is_refused():
    """Acceptance case 69."""
    file = {"type": "file", "mediaType": "image/png", "url": "data:" + "A" * 2_500_000}
    with pytest.raises(MessageTooLargeError, match=r"'u1' has 25\d+ bytes"):
        enforce_row_size_limit(user(file))


def test_a_question_is_refused_and_never_shortened():
    with pytest.raises(MessageTooLargeError, match="Long texts fit in pieces"):
        enforce_row_size_limit(user(text("a" * 2_000_000)))


def test_the_input_is_never_changed():
    message = assistant(text("a" * 3000), settled_call({"list": ["x" * 3000]}))
    before = copy.deepcopy(message)
    enforce_row_size_limit(message, 2000)
    assert message == before
