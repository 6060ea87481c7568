"""UI messages as a model reads them (spec/02 §10.5, §10.9-10.12)."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.messages.helpers import (
    assistant,
    call,
    fold_chunks,
    message,
    settled_call,
    text,
    user,
)
from tests.unit.messages.strategies import legal_streams
from thinkwell.messages.apply_result import apply_approval, apply_tool_result
from thinkwell.messages.convert import (
    CONTINUE_TEXT,
    DENIED_TEXT,
    close_with_user,
    to_model_messages,
)
from thinkwell.messages.model_messages import (
    AssistantMessage,
    FileContent,
    ReasoningContent,
    TextContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
)
from thinkwell.messages.repair import repair_transcript

STATES = ["input-streaming", "input-available", "approval-requested"]
STEP = {"type": "step-start"}
PNG = {"type": "file", "mediaType": "image/png", "url": "data:x", "filename": "x.png"}
CALL = ToolCallContent("c1", "search", {"q": 1})


def result(kind, value):
    return ToolMessage((ToolResultContent("c1", "search", kind, value),))


class TestUserAndSystem:
    def test_a_user_says_texts_and_files(self):
        content = (TextContent("look"), FileContent("data:x", "image/png", "x.png"))
        said = user(text("look"), PNG, {"type": "data-x", "data": 1}, text(""))
        assert to_model_messages(said) == (UserMessage(content),)

    def test_10_5_a_stored_note_is_sent_as_the_user(self):
        note = message("system", text("It "), text("failed."))
        assert to_model_messages(note) == (UserMessage((TextContent("It failed."),)),)

    @pytest.mark.parametrize("role", ["user", "system", "assistant"])
    def test_a_message_that_says_nothing_is_left_out(self, role):
        empty = message(role, STEP, text(""), {"type": "data-x", "data": 1})
        assert to_model_messages(empty) == ()


class TestAssistant:
    def test_10_9_each_step_is_a_block_with_its_results(self):
        answer = assistant(STEP, text("Wait."), settled_call("found"), STEP, text("Done."))
        assert to_model_messages(answer) == (
            AssistantMessage((TextContent("Wait."), CALL)),
            result("text", "found"),
            AssistantMessage((TextContent("Done."),)),
        )

    def test_reasoning_goes_back_only_with_what_the_provider_signed(self):
        signed = {"type": "reasoning", "text": "hm", "providerMetadata": {"m": {"s": 1}}}
        answer = assistant({"type": "reasoning", "text": "plain"}, signed, PNG)
        content = (
            ReasoningContent("hm", {"m": {"s": 1}}),
            FileContent("data:x", "image/png", "x.png"),
        )
        assert to_model_messages(answer) == (AssistantMessage(content),)

    def test_10_9_sources_and_data_are_left_out(self):
        source = {"type": "source-url", "sourceId": "s", "url": "https://x"}
        assert to_model_messages(assistant(source, {"type": "data-x", "data": 1})) == ()

    def test_metadata_and_odd_inputs_of_a_call(self):
        part = settled_call(input='{"q": 1}', callProviderMetadata={"m": {}})
        expected = ToolCallContent("c1", "search", {"q": 1}, {"m": {}})
        assert to_model_messages(assistant(part))[0] == AssistantMessage((expected,))


class TestOutcomes:
    @pytest.mark.parametrize(
        ("part", "kind", "value"),
        [
            (settled_call("found"), "text", "found"),
            (settled_call({"n": 1}), "json", {"n": 1}),
            (settled_call(None), "json", None),
            (call("output-error", errorText="broke"), "error-text", "broke"),
            (call("output-denied"), "execution-denied", DENIED_TEXT),
            (call("output-denied", approval={"reason": "no!"}), "execution-denied", "no!"),
            (
                call("approval-responded", approval={"approved": False}),
                "execution-denied",
                DENIED_TEXT,
            ),
            (call("result", result=[1]), "json", [1]),
        ],
    )
    def test_what_came_of_a_call(self, part, kind, value):
        assert to_model_messages(assistant(part)) == (
            AssistantMessage((CALL,)),
            result(kind, value),
        )

    @pytest.mark.parametrize(
        "part",
        [
            call("input-streaming"),
            call("input-available"),
            call("approval-requested"),
            call("approval-responded", approval={"approved": True}),
            settled_call("early", preliminary=True),
        ],
    )
    def test_10_10_an_incomplete_call_is_left_out(self, part):
        answer = assistant(text("hm"), part)
        assert to_model_messages(answer) == (AssistantMessage((TextContent("hm"),)),)

    def test_a_step_with_answered_and_waiting_calls_shows_only_the_answered_ones(self):
        answer = assistant(settled_call("found"), call("input-available", "c2"))
        assert to_model_messages(answer) == (AssistantMessage((CALL,)), result("text", "found"))

    def test_7_9_the_model_reads_why_a_person_refused(self):
        asked = assistant(call("approval-requested", approval={"id": "ap"}))
        denied = apply_approval(asked, "c1", approved=False, reason="too risky").message
        assert to_model_messages(denied)[1] == result("execution-denied", "too risky")


class TestClosing:
    """10.12: a request never ends with the assistant."""

    def test_the_user_asks_to_go_on(self):
        messages = (AssistantMessage((TextContent("and so"),)),)
        assert close_with_user(messages) == (*messages, UserMessage((TextContent(CONTINUE_TEXT),)))

    @pytest.mark.parametrize(
        "messages", [(), (UserMessage((TextContent("hi"),)),), (result("text", "x"),)]
    )
    def test_others_come_back_as_they_are(self, messages):
        assert close_with_user(messages) is messages


def check_pairs(messages):
    for answer, following in pairwise((*messages, None)):
        if isinstance(answer, AssistantMessage):
            asked = [c.tool_call_id for c in answer.content if isinstance(c, ToolCallContent)]
            told = following.content if isinstance(following, ToolMessage) else ()
            assert asked == [item.tool_call_id for item in told]


@given(legal_streams)
def test_every_call_is_followed_by_its_outcome(stream):
    check_pairs(to_model_messages(fold_chunks(stream, "m")))


@given(st.lists(st.sampled_from(STATES)), st.sets(st.integers(0, 9)), st.booleans())
def test_so_it_is_whatever_was_answered_and_repaired(states, answered, approved):
    message = assistant(*(call(state, f"c{n}") for n, state in enumerate(states)))
    for number in answered:
        message = apply_approval(message, f"c{number}", approved=approved).message
        message = apply_tool_result(message, f"c{number + 1}", output=number).message
    check_pairs(to_model_messages(message))
    repaired = repair_transcript([message], waiting={"c0"}).messages[0]
    check_pairs(to_model_messages(repaired))
