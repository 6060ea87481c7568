"""Which chunks are legal (spec/01 §9.1)."""

import pytest
from hypothesis import given

from tests.unit.messages.strategies import legal_streams
from thinkwell.messages.chunks import (
    CHUNK_KINDS,
    check_chunk,
    tool_error,
    tool_output,
)


@given(legal_streams)
def test_every_generated_chunk_is_legal(stream):
    assert [problem for chunk in stream if (problem := check_chunk(chunk))] == []


def test_the_table_has_every_kind_of_9_1():
    assert len(CHUNK_KINDS) == 28


@pytest.mark.parametrize(
    "chunk",
    [
        tool_output("c", None),
        tool_output("c", 1, preliminary=True),
        tool_error("c", "broke"),
    ],
)
def test_constructors_give_legal_chunks(chunk):
    assert check_chunk(chunk) is None


@pytest.mark.parametrize(
    ("chunk", "reason"),
    [
        ({}, "a chunk needs a string `type`"),
        ({"type": "unheard-of"}, "there is no chunk of type 'unheard-of'"),
        ({"type": "data-", "data": 1}, "there is no chunk of type 'data-'"),
        ({"type": "text-delta", "id": "t"}, "text-delta needs `delta`"),
        ({"type": "text-start", "id": 1}, "`id` of text-start must be a string"),
        (
            {"type": "start", "messageId": None},
            "`messageId` of start is null; leave it out instead",
        ),
        ({"type": "start-step", "extra": 1}, "start-step has no field `extra`"),
        ({"type": "custom", "kind": "x"}, '`kind` of custom must be a string like "provider.type"'),
        (
            {"type": "text-end", "id": "t", "providerMetadata": {"mock": 1}},
            "`providerMetadata` of text-end must be an object of objects, one per provider",
        ),
        (
            {"type": "finish", "finishReason": "bored"},
            "`finishReason` of finish must be one of "
            "content-filter, error, length, other, stop, tool-calls",
        ),
        (
            {"type": "tool-output-available", "toolCallId": "c"},
            "tool-output-available needs `output`",
        ),
        (
            {"type": "data-x", "data": None, "transient": 1},
            "`transient` of data-x must be a boolean",
        ),
        (
            {"type": "message-metadata", "messageMetadata": []},
            "`messageMetadata` of message-metadata must be an object",
        ),
    ],
)
def test_an_illegal_chunk_is_told_why(chunk, reason):
    assert check_chunk(chunk) == reason


def test_null_is_a_value_only_where_any_value_is():
    assert check_chunk({"type": "data-x", "data": None}) is None
    assert check_chunk({"type": "tool-output-available", "toolCallId": "c", "output": None}) is None
