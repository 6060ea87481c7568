"""A continuation goes on in the stored message (DESIGN §8.2, F13, F20, F21)."""

import pytest

from tests.unit.messages.helpers import (
    assistant,
    call,
    chunk,
    fold,
    parts_of,
    settled_call,
    text,
    tool_chunk,
)
from thinkwell.messages.apply_result import apply_tool_result
from thinkwell.messages.chunks import opened_call
from thinkwell.messages.convert import to_model_messages
from thinkwell.messages.model_messages import AssistantMessage, ToolMessage

STEP = {"type": "step-start"}
OUTPUT = tool_chunk("output-available", output="done")
GOING_ON = [
    chunk("start"),
    chunk("start-step"),
    chunk("text-start", id="t"),
    chunk("text-delta", id="t", delta="Paris"),
    chunk("text-end", id="t"),
    chunk("finish-step"),
    chunk("finish", finishReason="stop"),
]
APPROVED = call("approval-responded", approval={"id": "ap", "approved": True})
FINAL = settled_call("done", preliminary=False, approval={"id": "ap", "approved": True})


class TestOneMessage:
    def test_an_answered_message_keeps_its_id_and_gets_more_parts(self):
        stored = assistant(STEP, text("Locating", state="done"), call("input-available"))
        answered = apply_tool_result(stored, "c1", output="here").message
        after = fold(*GOING_ON, onto=answered, continuation=True).message
        assert after["id"] == "a1"
        assert after["parts"] == [*answered["parts"], STEP, text("Paris", state="done")]

    def test_a_start_with_another_id_changes_nothing(self):
        after = fold(chunk("start", messageId="x"), onto=assistant(STEP), continuation=True)
        assert after.message == assistant(STEP)

    def test_the_stored_message_is_not_changed(self):
        stored = assistant(STEP, APPROVED)
        fold(OUTPUT, *GOING_ON, onto=stored, continuation=True)
        assert stored == assistant(STEP, APPROVED)

    def test_a_reset_step_drops_only_what_the_continuation_began(self):
        said = [chunk("text-start", id="t"), chunk("text-delta", id="t", delta="oops")]
        chunks = [OUTPUT, chunk("start-step"), *said, chunk("reset-step")]
        assert parts_of(*chunks, onto=assistant(STEP, APPROVED), continuation=True) == [
            STEP,
            FINAL,
            STEP,
        ]

    def test_the_model_reads_the_answered_step_and_then_the_new_one(self):
        answered = fold(OUTPUT, *GOING_ON, onto=assistant(STEP, APPROVED), continuation=True)
        kinds = [type(item) for item in to_model_messages(answered.message)]
        assert kinds == [AssistantMessage, ToolMessage, AssistantMessage]


class TestEarlierCalls:
    """F13: what was approved runs in the continuation and settles the stored part."""

    def test_the_first_outcome_stays(self):
        late = tool_chunk("output-error", errorText="late")
        stored = assistant(settled_call("first"))
        assert parts_of(late, onto=stored, continuation=True) == [settled_call("first")]

    def test_preliminary_outputs_come_before_the_outcome(self):
        early = tool_chunk("output-available", output="half", preliminary=True)
        growing = fold(early, onto=assistant(APPROVED), continuation=True)
        assert growing.message["parts"][0]["preliminary"] is True
        growing.apply(OUTPUT)
        assert growing.message["parts"] == [FINAL]

    def test_a_denial_cannot_take_back_what_was_allowed(self):
        denial = tool_chunk("output-denied")
        assert parts_of(denial, onto=assistant(APPROVED), continuation=True) == [APPROVED]

    def test_calls_of_the_continuation_itself_settle_as_ever(self):
        opening = tool_chunk("input-available", "c2", input={"q": 1})
        outcome = tool_chunk("output-available", "c2", output="done")
        parts = parts_of(opening, outcome, onto=assistant(APPROVED), continuation=True)
        assert parts == [APPROVED, settled_call("done", "c2")]


class TestOpening:
    """F20: clients that read the stream from its start know only the calls it opened."""

    @pytest.mark.parametrize(
        "item",
        [
            OUTPUT,
            tool_chunk("output-error", errorText="x"),
            tool_chunk("output-denied"),
            tool_chunk("approval-request", approvalId="ap"),
            {"type": "tool-input-delta", "toolCallId": "c1", "inputTextDelta": "{"},
        ],
    )
    def test_a_chunk_about_an_earlier_call_opens_none(self, item):
        assert opened_call(item) is None

    @pytest.mark.parametrize("kind", ["input-start", "input-available", "input-error"])
    def test_an_input_opens_its_call(self, kind):
        opening = tool_chunk(kind, input={}, errorText="x")
        assert opened_call(opening) == "c1"

    @pytest.mark.parametrize("item", [*GOING_ON, {}, {"type": "tool-input-start"}])
    def test_chunks_without_a_call_open_none(self, item):
        assert opened_call(item) is None
