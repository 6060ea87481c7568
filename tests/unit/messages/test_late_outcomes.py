"""Outcomes of calls that live in an earlier message (F13)."""

from tests.unit.messages.helpers import (
    assistant,
    call,
    chunk,
    parts_of,
    settled_call,
    text,
    tool_chunk,
)

OUTPUT = tool_chunk("output-available", output=[1])


def settled(part, item):
    return parts_of(item, onto=assistant(text("x"), part), continuation=True)[1]


def test_an_output_settles_the_stored_part():
    expected = call("output-available", output=[1], preliminary=False)
    assert settled(call("input-available"), OUTPUT) == expected


def test_an_error_has_a_default_text():
    part = settled(call("input-available"), tool_chunk("output-error"))
    assert part == call("output-error", errorText="Tool execution failed")


def test_a_denial_settles_a_call_nobody_allowed():
    part = settled(call("approval-requested", approval={"id": "ap"}), tool_chunk("output-denied"))
    assert part["state"] == "output-denied"


def test_a_denial_leaves_an_allowed_call_alone():
    allowed = call("approval-responded", approval={"id": "ap", "approved": True})
    assert settled(allowed, tool_chunk("output-denied")) == allowed


def test_the_first_outcome_stays():
    assert settled(settled_call("first"), OUTPUT) == settled_call("first")


def test_a_preliminary_output_is_not_an_outcome_yet():
    assert settled(settled_call("early", preliminary=True), OUTPUT)["output"] == [1]


def test_other_calls_and_other_chunks_change_nothing():
    waiting = call("input-available")
    assert settled(waiting, OUTPUT | {"toolCallId": "other"}) == waiting
    assert settled(waiting, chunk("text-start", id="t")) == waiting
