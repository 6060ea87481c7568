"""What a message waits for, and the barrier before a continuation (spec/01 §11.7-11.14)."""

import pytest

from tests.unit.messages.helpers import assistant, call, settled_call, text, user
from thinkwell.messages.apply_result import apply_approval, apply_tool_result
from thinkwell.messages.waiting import (
    approved_calls,
    decide_continuation,
    has_pending_interaction,
    is_half_answered,
    open_interactions,
)

CLIENT = {"locate"}
ASKED = call("approval-requested", "c1", approval={"id": "ap"})
LOCATE = call("input-available", "c2", name="locate")
SERVER = call("input-available", "c3")
ALLOWED = call("approval-responded", "c4", approval={"id": "ap", "approved": True})
DENIED = call("output-denied", "c5", approval={"id": "ap", "approved": False})


class TestOpenInteractions:
    def test_approvals_and_client_tools_wait_in_order(self):
        message = assistant(text("hm"), LOCATE, ALLOWED, settled_call(), ASKED)
        assert open_interactions(message, CLIENT) == [LOCATE, ASKED]

    def test_3_9_a_server_tool_waits_for_nobody(self):
        assert open_interactions(assistant(SERVER), CLIENT) == []

    def test_a_dynamic_client_tool_is_found_by_its_name(self):
        dynamic = {**LOCATE, "type": "dynamic-tool"}
        assert open_interactions(assistant(dynamic), CLIENT) == [dynamic]

    def test_only_the_assistant_asks(self):
        assert open_interactions(user(ASKED), CLIENT) == []


class TestPendingInteraction:
    def test_any_message_counts(self):
        assert has_pending_interaction([assistant(ASKED), user(text("x"))], CLIENT)

    @pytest.mark.parametrize("part", [SERVER, ALLOWED, DENIED, settled_call(), text("x")])
    def test_11_14_nothing_else_is_an_interaction(self, part):
        assert not has_pending_interaction([user(text("hi")), assistant(part)], CLIENT)


class TestHalfAnswered:
    @pytest.mark.parametrize("answered", [settled_call(), DENIED, ALLOWED])
    @pytest.mark.parametrize("unanswered", [ASKED, LOCATE])
    def test_11_8_an_answered_call_beside_an_unanswered_one(self, answered, unanswered):
        assert is_half_answered(assistant(answered, unanswered))
        assert is_half_answered(assistant(unanswered, answered), CLIENT)

    @pytest.mark.parametrize(
        "parts", [(), (LOCATE, ASKED), (settled_call(), DENIED, ALLOWED), (text("x"), SERVER)]
    )
    def test_all_or_nothing_is_not_half(self, parts):
        assert not is_half_answered(assistant(*parts))

    def test_a_dead_call_of_the_server_holds_nobody_up(self):
        message = assistant(settled_call(), SERVER)
        assert is_half_answered(message)
        assert not is_half_answered(message, CLIENT)


def test_11_12_what_was_allowed_and_has_not_run_is_work_for_the_continuation():
    refused = call("approval-responded", "c6", approval={"id": "ap", "approved": False})
    message = assistant(ASKED, ALLOWED, DENIED, refused, settled_call(approval={"approved": True}))
    assert approved_calls(message) == [ALLOWED]


class TestDecision:
    @pytest.mark.parametrize(
        ("armed", "streaming", "half_answered", "decision"),
        [
            (True, False, False, "run"),
            (True, True, False, "wait"),
            (True, False, True, "wait"),
            (True, True, True, "wait"),
            (False, False, False, "nothing"),
            (False, True, True, "nothing"),
        ],
    )
    def test_11_7_the_barrier(self, armed, streaming, half_answered, decision):
        decided = decide_continuation(armed=armed, streaming=streaming, half_answered=half_answered)
        assert decided == decision

    def test_case_54_parallel_calls_make_one_continuation(self):
        first, second = call("input-available", "t1"), call("input-available", "t2")
        one = apply_tool_result(assistant(first, second), "t1", output=1)
        assert decide(one.message, armed=True) == "wait"
        both = apply_tool_result(one.message, "t2", output=2)
        assert decide(both.message, armed=True) == "run"

    def test_case_55_an_error_completes_the_batch_but_starts_none_by_itself(self):
        first, second = call("input-available", "t1"), call("input-available", "t2")
        one = apply_tool_result(assistant(first, second), "t1", error_text=None)
        assert decide(one.message, armed=False) == "nothing"
        both = apply_tool_result(one.message, "t2", output=2)
        assert decide(both.message, armed=True) == "run"

    def test_a_denial_and_an_approval_are_answers_alike(self):
        asked = [call("approval-requested", call_id) for call_id in ("t1", "t2")]
        one = apply_approval(assistant(*asked), "t1", approved=False)
        assert decide(one.message, armed=True) == "wait"
        both = apply_approval(one.message, "t2", approved=True)
        assert decide(both.message, armed=True) == "run"


def decide(message, *, armed):
    return decide_continuation(
        armed=armed, streaming=False, half_answered=is_half_answered(message)
    )
