"""Chunks as every supported client can read them (spec/01 §14.3), and parts said again."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tests.unit.messages.helpers import fold_chunks
from tests.unit.messages.strategies import make_stream
from thinkwell.core import json
from thinkwell.features.http_chat.rebuild import (
    chunks_of,
    outcomes_unknown_to,
    steps_after,
)
from thinkwell.features.http_chat.sse import events, legal_chunk, told_events
from thinkwell.messages.chunks import check_chunk
from thinkwell.messages.message import UIMessage, count_steps

STEP: dict[str, Any] = {"type": "step-start"}


@pytest.mark.parametrize(
    "chunk",
    [
        {"type": "custom", "kind": "a.b"},
        {"type": "reasoning-file", "url": "u", "mediaType": "m"},
        {"type": "tool-approval-response", "approvalId": "a", "approved": True},
        {"type": "unheard-of"},
        {"type": "data-"},
        {"type": 7},
        {},
        {"type": "text-delta", "id": "t"},
        {"type": "text-delta", "id": "t", "delta": None},
        {"type": "finish", "finishReason": "tired"},
    ],
)
def test_what_a_client_would_refuse_is_left_out(chunk: dict[str, Any]):
    assert legal_chunk(chunk) is None


@pytest.mark.parametrize(
    ("chunk", "told"),
    [
        (
            {
                "type": "tool-approval-request",
                "approvalId": "a",
                "toolCallId": "c",
                "signature": "s",
            },
            {"type": "tool-approval-request", "approvalId": "a", "toolCallId": "c"},
        ),
        (
            {"type": "tool-output-available", "toolCallId": "c", "output": None, "extra": 1},
            {"type": "tool-output-available", "toolCallId": "c", "output": None},
        ),
        (
            {"type": "text-start", "id": "t", "providerMetadata": None},
            {"type": "text-start", "id": "t"},
        ),
        ({"type": "data-x", "data": None, "seq": 1}, {"type": "data-x", "data": None}),
    ],
)
def test_fields_that_not_every_client_knows_are_left_out(
    chunk: dict[str, Any], told: dict[str, Any]
):
    assert legal_chunk(chunk) == told


def test_a_chunk_that_is_fine_is_told_as_it_is():
    chunk = {"type": "text-delta", "id": "t", "delta": "ü\n"}
    assert legal_chunk(chunk) is chunk
    assert events([chunk]) == 'data: {"type":"text-delta","id":"t","delta":"ü\\n"}\n\n'.encode()


def test_whatever_a_turn_says_is_legal():
    for seed in range(100):
        for chunk in make_stream(Random(seed)):
            told = legal_chunk(chunk)
            assert told is None or check_chunk(told) is None


def test_chunks_of_the_journal_are_told_as_if_each_had_been_looked_at():
    """Most of them are recognised as legal by their shape alone, and are not made anew."""
    told = [{"type": "text-delta", "id": "t", "delta": 7}, {"type": "text-end", "id": "t", "x": 1}]
    for seed in range(100):
        told += make_stream(Random(seed))
    assert told_events(json.dumps(chunk) for chunk in told) == events(told)


def test_parts_said_again_make_the_same_parts():
    """Of what clients can be told; approvals that were answered are in their outcome."""
    for seed in range(200):
        message = fold_chunks(make_stream(Random(seed)), "m")
        again = fold_chunks(
            [{"type": "start", "messageId": "m"}, *chunks_of(message["parts"])], "m"
        )
        assert [shape(part) for part in again["parts"]] == [
            shape(part) for part in message["parts"] if part["type"] not in NEVER_TOLD
        ]


def test_a_call_of_the_provider_is_said_again_as_one():
    part = {"type": "tool-web_search", "toolCallId": "s1", "state": "output-available"}
    part |= {"input": {}, "output": 1, "providerExecuted": True}
    document = {"type": "source-document", "sourceId": "d", "mediaType": "text/plain", "title": "t"}
    told = [legal_chunk(chunk) for chunk in chunks_of([part, document])]
    assert told == [
        {
            "type": "tool-input-available",
            "toolCallId": "s1",
            "toolName": "web_search",
            "input": {},
            "providerExecuted": True,
        },
        {
            "type": "tool-output-available",
            "toolCallId": "s1",
            "output": 1,
            "providerExecuted": True,
        },
        document,
    ]


NEVER_TOLD = ("custom", "reasoning-file")


def shape(part: dict[str, Any]) -> dict[str, Any]:
    """What a person sees of a part."""
    seen = {key: part.get(key) for key in ("type", "text", "output", "toolCallId", "url", "data")}
    if part.get("state") in ("output-available", "output-denied"):
        seen["state"] = part["state"]
    return seen


class TestCatchingUp:
    stored: UIMessage = {
        "id": "m",
        "role": "assistant",
        "parts": [
            STEP,
            {"type": "tool-a", "toolCallId": "1", "state": "output-available", "output": 1},
            {"type": "tool-b", "toolCallId": "2", "state": "output-denied"},
            {"type": "tool-c", "toolCallId": "3", "state": "input-available", "input": {}},
            STEP,
            {"type": "text", "text": "so"},
        ],
    }

    def copy(self, **states: Any) -> UIMessage:
        parts = [
            {"type": "tool-a", "toolCallId": call_id.removeprefix("c"), **fields}
            for call_id, fields in states.items()
        ]
        return {"id": "m", "role": "assistant", "parts": [STEP, *parts]}

    def test_only_outcomes_that_the_copy_lacks_or_has_otherwise_are_told(self):
        same = self.copy(c1={"state": "output-available", "output": 1})
        other = self.copy(c1={"state": "output-available", "output": 2})
        assert outcomes_unknown_to(same, self.stored) == []
        assert outcomes_unknown_to(other, self.stored) == [
            {"type": "tool-output-available", "toolCallId": "1", "output": 1}
        ]

    def test_a_denial_is_told_and_an_open_call_is_not(self):
        copy = self.copy(c2={"state": "approval-responded"}, c3={"state": "input-available"})
        assert outcomes_unknown_to(copy, self.stored) == [
            {"type": "tool-output-denied", "toolCallId": "2"}
        ]

    def test_steps_are_counted_from_the_beginning(self):
        parts = self.stored["parts"]
        assert count_steps(parts) == 2
        assert steps_after(parts, 0) == parts
        assert steps_after(parts, 1) == parts[4:]
        assert steps_after(parts, 2) == []
