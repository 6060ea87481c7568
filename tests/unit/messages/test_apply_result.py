"""Answers from clients and people, applied to the calls that wait (spec/01 §11.3-11.5)."""

import copy
import json
from pathlib import Path

import pytest

from tests.unit.messages.helpers import assistant, call, fold, settled_call, text, tool_chunk, user
from tests.unit.wire.helpers import decode_frame
from thinkwell.messages.apply_result import (
    CLIENT_ERROR_TEXT,
    apply_approval,
    apply_tool_result,
    find_call,
)
from thinkwell.wire.frames import ClientToolResult, ToolApproval

TRACES = Path(__file__).parents[2] / "wire" / "traces"
CLOSED = [
    settled_call("first"),
    call("output-error", errorText="first"),
    call("output-denied"),
    call("input-streaming"),
]


class TestResult:
    def test_11_3_an_output_settles_an_open_call(self):
        message = assistant(text("hm"), call("input-available"))
        applied = apply_tool_result(message, "c1", output={"n": 1})
        settled = call("output-available", output={"n": 1}, preliminary=False)
        assert applied.message == assistant(text("hm"), settled)
        assert (applied.changed, applied.part) == (True, settled)

    def test_null_is_an_output(self):
        applied = apply_tool_result(assistant(call("input-available")), "c1", output=None)
        assert applied.part == call("output-available", output=None, preliminary=False)

    @pytest.mark.parametrize(
        ("given", "kept"), [("no!", "no!"), (None, CLIENT_ERROR_TEXT), ("", CLIENT_ERROR_TEXT)]
    )
    def test_case_57_an_error_has_a_default_text(self, given, kept):
        applied = apply_tool_result(assistant(call("input-available")), "c1", error_text=given)
        assert applied.part == call("output-error", errorText=kept)

    @pytest.mark.parametrize("part", CLOSED)
    def test_11_5_the_first_outcome_stays(self, part):
        message = assistant(part)
        applied = apply_tool_result(message, "c1", output="second")
        assert applied.message is message
        assert (applied.changed, applied.part) == (False, None)

    @pytest.mark.parametrize("state", ["approval-requested", "approval-responded"])
    def test_8_12_nobody_gives_the_result_of_a_call_that_waits_for_leave(self, state):
        message = assistant(call(state, approval={"id": "ap"}))
        assert apply_tool_result(message, "c1", output=1).message is message

    def test_an_unknown_call_changes_nothing(self):
        message = assistant(call("input-available"))
        assert not apply_tool_result(message, "other", output=1).changed

    def test_the_message_handed_in_is_not_changed(self):
        message = assistant(call("input-available"))
        before = copy.deepcopy(message)
        apply_tool_result(message, "c1", output=1)
        assert message == before

    @pytest.mark.parametrize("given", [{}, {"output": 1, "error_text": "x"}])
    def test_either_an_output_or_an_error_is_given(self, given):
        with pytest.raises(ValueError, match="either output= or error_text="):
            apply_tool_result(assistant(call("input-available")), "c1", **given)


class TestApproval:
    ASKED = call("approval-requested", approval={"id": "ap", "descriptor": {"risk": 1}})

    def test_11_4_a_yes_lets_the_call_wait_to_run(self):
        applied = apply_approval(assistant(self.ASKED), "c1", approved=True)
        approval = {"id": "ap", "descriptor": {"risk": 1}, "approved": True}
        assert applied.part == call("approval-responded", approval=approval)
        assert applied.changed

    def test_case_59_a_no_settles_it_with_the_reason(self):
        applied = apply_approval(assistant(self.ASKED), "c1", approved=False, reason="too risky")
        assert applied.part is not None
        assert applied.part["state"] == "output-denied"
        assert applied.part["approval"]["reason"] == "too risky"

    def test_an_approval_without_an_id_is_named_by_its_call(self):
        applied = apply_approval(assistant(call("approval-requested")), "c1", approved=True)
        expected = call("approval-responded", approval={"id": "c1", "approved": True})
        assert applied.part == expected

    @pytest.mark.parametrize("approved", [True, False])
    def test_8_12_a_call_nobody_asked_about_takes_no_decision(self, approved):
        message = assistant(call("input-available"))
        assert apply_approval(message, "c1", approved=approved).message is message

    @pytest.mark.parametrize("part", [*CLOSED, call("approval-responded")])
    def test_an_answer_that_comes_too_late_changes_nothing(self, part):
        message = assistant(part)
        assert apply_approval(message, "c1", approved=False).message is message


class TestFindCall:
    def test_the_newest_message_with_that_call_wins(self):
        older, newer = assistant(settled_call(), id="a1"), assistant(call("input-available"))
        found = find_call([older, newer, user(text("hm"))], "c1")
        assert found is not None
        assert found.message is newer
        assert found.part is newer["parts"][0]

    def test_unknown_calls_and_parts_of_a_user_are_not_found(self):
        assert find_call([user(call("input-available")), assistant(text("x"))], "c1") is None


class TestWhileTheStreamRuns:
    """Case 56: the answer comes before the turn has ended."""

    def test_the_answer_joins_the_growing_message(self):
        growing = fold(tool_chunk("input-available", input={"q": 1}))
        applied = apply_tool_result(growing.message, "c1", output=1)
        assert applied.part is not None
        growing.replace_call(applied.part)
        growing.apply(tool_chunk("input-available", "c2", input={}))
        assert growing.message["parts"][0] == applied.part
        assert len(growing.message["parts"]) == 2

    def test_a_later_output_chunk_is_about_the_same_part(self):
        growing = fold(tool_chunk("input-available", input={"q": 1}))
        growing.replace_call(call("approval-responded", approval={"approved": True}))
        growing.apply(tool_chunk("output-available", output=2))
        assert growing.message["parts"] == [settled_call(2, approval={"approved": True})]

    def test_a_call_the_message_does_not_have_is_left_out(self):
        growing = fold()
        growing.replace_call(settled_call())
        assert growing.message["parts"] == []


def recorded(name):
    """The client's answer in a recording, the transcript before it, and what it turned into."""
    frames = [e["json"] for e in json.loads((TRACES / f"{name}.json").read_text())["frames"][1:]]
    kinds = [frame["type"].removeprefix("cf_agent_") for frame in frames]
    at = next(i for i, kind in enumerate(kinds) if kind in ("tool_result", "tool_approval"))
    before = next(f for f in reversed(frames[:at]) if f["type"] == "cf_agent_chat_messages")
    after = next(f for f in frames[at:] if f["type"] == "cf_agent_message_updated")
    return before["messages"], decode_frame(json.dumps(frames[at])), after["message"]


@pytest.mark.parametrize(
    "name", ["08-client-tool", "08b-client-tool-error", "09a-approve", "09b-deny"]
)
def test_an_answer_does_to_the_message_what_it_did_in_the_reference(name):
    stored, frame, updated = recorded(name)
    assert isinstance(frame, ClientToolResult | ToolApproval)
    found = find_call(stored, frame.tool_call_id)
    assert found is not None
    if isinstance(frame, ToolApproval):
        applied = apply_approval(found.message, frame.tool_call_id, approved=frame.approved)
    elif frame.state == "output-error":
        applied = apply_tool_result(found.message, frame.tool_call_id, error_text=frame.error_text)
    else:
        applied = apply_tool_result(found.message, frame.tool_call_id, output=frame.output)
    assert applied.message == updated
