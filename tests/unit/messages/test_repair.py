"""Transcripts a model will accept (spec/01 §7.10, spec/02 §10.3, spec/03 §11)."""

import copy

import pytest

from tests.unit.messages.helpers import assistant, call, settled_call, text, user
from thinkwell.messages.repair import (
    INTERRUPTED_TEXT,
    NOT_ALLOWED_TEXT,
    NOT_ANSWERED_TEXT,
    is_intact,
    repair_interrupted_tool_part,
    repair_transcript,
)

DEAD = [
    ("input-streaming", INTERRUPTED_TEXT),
    ("input-available", INTERRUPTED_TEXT),
    ("approval-requested", NOT_ALLOWED_TEXT),
]


@pytest.mark.parametrize(("state", "said"), DEAD)
def test_a_dead_call_becomes_an_error(state, said):
    result = repair_transcript([user(text("hi")), assistant(call(state))])
    assert result.messages[1]["parts"] == [call("output-error", errorText=said)]
    assert (result.changed_ids, result.removed_tool_calls) == (("a1",), 1)
    assert result.tool_call_ids == ("c1",)


def test_an_approved_call_still_waits_to_run():
    messages = [assistant(call("approval-responded", approval={"approved": True}))]
    assert repair_transcript(messages).messages is messages


@pytest.mark.parametrize("part", [settled_call(), call("output-error", errorText="mine")])
def test_settled_calls_keep_their_own_outcome(part):
    messages = [assistant(part)]
    assert repair_transcript(messages).messages is messages


@pytest.mark.parametrize(("given", "kept"), [('{"a": 1}', {"a": 1}), ("oops", {}), (None, {})])
def test_inputs_become_objects(given, kept):
    result = repair_transcript([assistant(settled_call(input=given))])
    assert result.messages[0]["parts"] == [settled_call(input=kept)]
    assert (result.normalized_inputs, result.removed_tool_calls) == (1, 0)


def test_a_dead_call_without_input_gets_an_empty_one():
    part = {"type": "tool-x", "toolCallId": "c", "state": "input-streaming"}
    assert repair_transcript([assistant(part)]).messages[0]["parts"][0]["input"] == {}


def test_a_call_settled_elsewhere_gets_no_second_outcome():
    messages = [assistant(call("input-available")), assistant(settled_call(), id="a2")]
    assert repair_transcript(messages).messages is messages


def test_the_application_decides_what_a_dead_call_becomes():
    question = text("Which city?")
    result = repair_transcript([assistant(call("input-available"))], lambda part: question)
    assert result.messages[0]["parts"] == [question]


def test_the_application_may_leave_a_call_alone():
    messages = [assistant(call("input-available"))]
    assert repair_transcript(messages, lambda part: part).messages is messages


class TestWaitingCalls:
    """10.4: a continuation leaves alone what still gets an answer; a new user turn does not."""

    WAITING = call("approval-requested", "c2", input="{")

    def test_they_stay_open_beside_dead_ones(self):
        messages = [assistant(call("input-available"), self.WAITING)]
        result = repair_transcript(messages, waiting={"c2"})
        assert [part["state"] for part in result.messages[0]["parts"]] == [
            "output-error",
            "approval-requested",
        ]
        assert result.removed_tool_calls == 1

    def test_alone_they_change_nothing(self):
        messages = [assistant(call("input-available", "c2"))]
        assert repair_transcript(messages, waiting=("c2",)).messages is messages

    def test_their_inputs_become_objects_all_the_same(self):
        result = repair_transcript([assistant(self.WAITING)], waiting=("c2",))
        assert result.messages[0]["parts"] == [{**self.WAITING, "input": {}}]

    def test_a_new_user_turn_settles_them(self):
        result = repair_transcript([assistant(self.WAITING), user(text("next"))])
        assert result.messages[0]["parts"][0]["errorText"] == NOT_ALLOWED_TEXT


def test_twice_equals_once():
    once = repair_transcript([assistant(call("input-available", input="{"))]).messages
    assert repair_transcript(once).messages is once


def test_inputs_are_not_changed_and_other_messages_keep_their_identity():
    messages = [assistant(text("fine"), id="a0"), assistant(call("input-available"))]
    before = copy.deepcopy(messages)
    result = repair_transcript(messages)
    assert messages == before
    assert result.messages[0] is messages[0]


def test_nothing_to_do_counts_nothing():
    result = repair_transcript([user(text("hi"))])
    assert (result.removed_tool_calls, result.normalized_inputs) == (0, 0)


@pytest.mark.parametrize(
    ("state", "names", "said"),
    [
        ("input-available", ["search"], NOT_ANSWERED_TEXT),
        ("input-available", ["other"], INTERRUPTED_TEXT),
        ("input-streaming", ["search"], INTERRUPTED_TEXT),
        ("approval-requested", ["search"], NOT_ALLOWED_TEXT),
    ],
)
def test_only_a_whole_call_of_a_clients_tool_was_not_answered(state, names, said):
    assert repair_interrupted_tool_part(call(state), names)["errorText"] == said


def test_a_message_is_intact_if_nothing_in_it_is_dead():
    assert is_intact(assistant(settled_call()))
    assert not is_intact(assistant(call("input-available")))
