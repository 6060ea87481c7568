"""Tool calls under their chunks (F5-F12, F22)."""

import pytest

from tests.unit.messages.helpers import ASKED, assistant, call, chunk, fold, parts_of, tool_chunk
from thinkwell.messages.fold import OpenPart

START = tool_chunk("input-start")
INPUT = tool_chunk("input-available", input={"q": 1})
ANSWER = chunk("tool-approval-response", approvalId="ap")


def delta(piece):
    return chunk("tool-input-delta", toolCallId="c1", inputTextDelta=piece)


class TestInput:
    def test_f5_a_start_opens_a_static_part_with_its_name(self):
        assert parts_of(START) == [
            {
                "type": "tool-search",
                "toolCallId": "c1",
                "toolName": "search",
                "state": "input-streaming",
            }
        ]

    def test_f5_a_dynamic_call_is_a_dynamic_part(self):
        part = parts_of(START | {"dynamic": True}, INPUT | {"dynamic": True})[0]
        assert (part["type"], part["toolName"]) == ("dynamic-tool", "search")

    def test_f5_a_second_start_is_ignored(self):
        assert parts_of(START, INPUT, START) == [call("input-available")]

    def test_f6_deltas_are_collected_but_not_shown(self):
        folding = fold(START, delta('{"q"'), delta(": 1"))
        assert "input" not in folding.message["parts"][0]
        assert folding.open_parts() == [OpenPart("tool-input", "c1", '{"q": 1', "search")]

    def test_f6_deltas_after_the_input_are_ignored(self):
        folding = fold(START, INPUT, delta("late"))
        assert (folding.message["parts"], folding.open_parts()) == ([call("input-available")], [])

    def test_f7_an_input_needs_no_start(self):
        assert parts_of(INPUT) == [call("input-available")]

    @pytest.mark.parametrize(("given", "kept"), [('{"q": 2}', {"q": 2}), ("[1]", {}), (None, {})])
    def test_f7_the_input_becomes_an_object(self, given, kept):
        assert parts_of(INPUT | {"input": given})[0]["input"] == kept

    def test_f7_a_repeated_input_changes_nothing(self):
        output = tool_chunk("output-available", output=1)
        assert parts_of(INPUT, output, INPUT | {"input": {"q": 2}})[0]["input"] == {"q": 1}

    def test_f7_what_describes_the_call_is_kept(self):
        more = {"title": "Search", "providerExecuted": True, "toolMetadata": {"k": 1}}
        part = parts_of(INPUT | more | {"providerMetadata": {"m": {}}})[0]
        assert part == call("input-available") | more | {"callProviderMetadata": {"m": {}}}

    def test_f7_a_repaired_call_gets_its_new_name(self):
        part = parts_of(START, INPUT | {"toolName": "find"})[0]
        assert (part["type"], part["toolName"]) == ("tool-find", "find")

    def test_f8_bad_input_is_an_error_that_keeps_what_came(self):
        bad = tool_chunk("input-error", input="{oops", errorText="no JSON")
        assert parts_of(START, bad) == [call("output-error", input="{oops", errorText="no JSON")]

    def test_f8_a_settled_call_ignores_it(self):
        bad = tool_chunk("input-error", input={}, errorText="no")
        assert parts_of(INPUT, tool_chunk("output-available", output=1), bad)[0]["output"] == 1


class TestApproval:
    def test_f9_the_call_waits_with_what_is_asked(self):
        more = {"isAutomatic": True, "signature": "s", "approvalDescriptor": {"t": 1}}
        approval = {"id": "ap", "isAutomatic": True, "signature": "s", "descriptor": {"t": 1}}
        part = parts_of(INPUT, ASKED[1] | more)[0]
        assert part == call("approval-requested", approval=approval)

    def test_f9_an_unknown_call_stores_nothing(self):
        assert parts_of(ASKED[1]) == []

    def test_f9_without_input_the_collected_text_is_taken_until_the_input_comes(self):
        folding = fold(START, delta('{"q": 7}'), ASKED[1])
        assert folding.message["parts"][0]["input"] == {"q": 7}
        folding.apply(INPUT)
        assert folding.message["parts"][0] == call("approval-requested", approval={"id": "ap"})

    def test_f9_a_real_input_is_not_replaced(self):
        assert parts_of(*ASKED, INPUT | {"input": {"q": 2}})[0]["input"] == {"q": 1}

    def test_f9_half_an_input_is_none(self):
        folding = fold(START, delta('{"q": '), ASKED[1])
        assert "input" not in folding.message["parts"][0]
        assert folding.awaits_input("c1")

    @pytest.mark.parametrize("approved", [True, False])
    def test_f10_the_answer_is_kept(self, approved):
        part = parts_of(*ASKED, ANSWER | {"approved": approved, "reason": "r"})[0]
        approval = {"id": "ap", "approved": approved, "reason": "r"}
        assert part == call("approval-responded", approval=approval)

    def test_f10_an_answer_to_nothing_does_nothing(self):
        assert parts_of(ANSWER | {"approved": True}) == []
        assert parts_of(*ASKED, ANSWER)[0]["state"] == "approval-requested"

    def test_an_answered_call_is_not_asked_again(self):
        part = parts_of(*ASKED, ANSWER | {"approved": True}, ASKED[1])[0]
        assert part["state"] == "approval-responded"

    def test_f12_a_denial_never_flips_an_allowed_call(self):
        allowed = (*ASKED, ANSWER | {"approved": True}, tool_chunk("output-denied"))
        assert parts_of(*allowed)[0]["state"] == "approval-responded"

    def test_f12_a_denial_follows_the_answer_no(self):
        refused = (*ASKED, ANSWER | {"approved": False}, tool_chunk("output-denied"))
        assert parts_of(*refused)[0]["state"] == "output-denied"


class TestOutcome:
    def test_f11_an_output_settles(self):
        output = tool_chunk("output-available", output=[1], providerMetadata={"m": {}})
        expected = call("output-available", output=[1], resultProviderMetadata={"m": {}})
        assert parts_of(INPUT, output) == [expected]

    def test_f11_a_missing_output_is_null(self):
        assert parts_of(INPUT, tool_chunk("output-available"))[0]["output"] is None

    def test_f11_preliminary_outputs_replace_each_other_until_the_last(self):
        early = [tool_chunk("output-available", output=n, preliminary=True) for n in (1, 2)]
        assert parts_of(INPUT, *early)[0] == call("output-available", output=2, preliminary=True)
        last = tool_chunk("output-available", output=3)
        assert parts_of(INPUT, *early, last)[0] == call("output-available", output=3)

    def test_f11_a_late_preliminary_output_does_not_replace_the_last(self):
        late = tool_chunk("output-available", output=1, preliminary=True)
        final = tool_chunk("output-available", output=3)
        assert parts_of(INPUT, final, late) == [call("output-available", output=3)]

    def test_f12_an_error_takes_a_preliminary_output_away(self):
        early = tool_chunk("output-available", output=1, preliminary=True)
        error = tool_chunk("output-error", errorText="broke")
        assert parts_of(INPUT, early, error) == [call("output-error", errorText="broke")]

    def test_f12_an_error_without_text_gets_one(self):
        part = parts_of(INPUT, tool_chunk("output-error"))[0]
        assert part["errorText"] == "Tool execution failed"

    def test_f12_a_settled_call_is_not_denied(self):
        output = tool_chunk("output-available", output=1)
        assert (
            parts_of(INPUT, output, tool_chunk("output-denied"))[0]["state"] == "output-available"
        )

    @pytest.mark.parametrize("kind", ["output-available", "output-error", "output-denied"])
    def test_an_outcome_of_an_unknown_call_does_nothing(self, kind):
        assert parts_of(tool_chunk(kind), {"type": f"tool-{kind}", "toolCallId": []}) == []

    def test_a_stored_call_is_found_in_a_continuation(self):
        waiting = assistant(call("input-available"))
        output = tool_chunk("output-available", output=1)
        assert parts_of(output, onto=waiting, continuation=True)[0]["output"] == 1
        assert waiting["parts"] == [call("input-available")]


@pytest.mark.parametrize("kind", ["input-start", "input-available", "input-error"])
def test_an_input_chunk_without_name_or_id_does_nothing(kind):
    assert parts_of({"type": f"tool-{kind}", "toolCallId": "c"}, {"type": f"tool-{kind}"}) == []


def test_a_call_that_is_settled_has_no_open_input():
    folding = fold(START, delta("{"), tool_chunk("output-error", errorText="cut"))
    assert folding.open_parts() == []


def test_an_unknown_call_awaits_nothing():
    assert not fold(START).awaits_input("other")


def test_a_stored_input_that_was_cut_goes_on_where_it_stopped():
    folding = fold(delta('{"q":'), delta("1}"), onto=assistant(call("input-streaming")))
    assert folding.open_parts() == [OpenPart("tool-input", "c1", '{"q":1}', "search")]


def test_a_stored_tool_part_without_an_id_is_left_alone():
    broken = {"type": "tool-search", "state": "input-available"}
    assert parts_of(tool_chunk("output-available", output=1), onto=assistant(broken)) == [broken]
