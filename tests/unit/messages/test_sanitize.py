"""What a message loses before it is stored (spec/01 §7.6, spec/03 §11)."""

import copy

import pytest
from hypothesis import given

from tests.unit.messages.helpers import assistant, call, fold_chunks, settled_call, text, user
from tests.unit.messages.strategies import legal_streams
from thinkwell.messages.sanitize import sanitize_message, strip_reserved_metadata

OPENAI = {"itemId": "rs_1", "reasoningEncryptedContent": "…"}


def cleaned(part, **options):
    return sanitize_message(assistant(part), **options)["parts"]


class TestProviderMetadata:
    @pytest.mark.parametrize("field", ["providerMetadata", "callProviderMetadata"])
    def test_openai_items_go_and_the_rest_stays(self, field):
        part = text("x", **{field: {"openai": {**OPENAI, "kept": 1}, "other": {"a": 1}}})
        assert cleaned(part) == [text("x", **{field: {"openai": {"kept": 1}, "other": {"a": 1}}})]

    def test_emptied_objects_go_too(self):
        assert cleaned(text("x", providerMetadata={"openai": OPENAI})) == [text("x")]

    def test_they_stay_on_request(self):
        part = text("x", providerMetadata={"openai": OPENAI})
        assert cleaned(part, keep_openai_items=True) == [part]


class TestReasoning:
    def test_blank_reasoning_goes(self):
        assert cleaned({"type": "reasoning", "text": " \n"}) == []

    def test_blank_reasoning_with_only_openai_ids_goes(self):
        assert (
            cleaned({"type": "reasoning", "text": "", "providerMetadata": {"openai": OPENAI}}) == []
        )

    def test_redacted_thinking_stays(self):
        redacted = {"anthropic": {"redactedData": "…"}}
        part = {"type": "reasoning", "text": "", "providerMetadata": redacted}
        assert cleaned(part) == [part]


class TestToolInput:
    @pytest.mark.parametrize(("given", "kept"), [('{"a": 1}', {"a": 1}), ("{oops", {}), ([1], {})])
    def test_an_input_becomes_an_object(self, given, kept):
        assert cleaned(call("output-error", input=given))[0]["input"] == kept

    def test_an_input_that_has_not_come_is_not_made_up(self):
        part = {"type": "tool-x", "toolCallId": "c", "state": "input-streaming"}
        assert cleaned(part) == [part]


class TestProviderExecuted:
    def test_long_strings_are_cut_with_a_note_of_their_length(self):
        part = settled_call({"page": ["x" * 10_000, "short"]}, providerExecuted=True)
        [cut] = cleaned(part)
        page, short = cut["output"]["page"]
        assert (len(page), short) == (500, "short")
        assert page.endswith("… [truncated, original length: 10000]")
        assert cleaned(cut) == [cut]

    def test_encrypted_values_stay_whole(self):
        part = settled_call({"encryptedContent": ["x" * 999]}, providerExecuted=True)
        assert cleaned(part)[0] is part

    @pytest.mark.parametrize("name", ["web_search", "web_fetch"])
    def test_some_tools_are_replayed_whole(self, name):
        part = call("output-available", name=name, output="x" * 999, providerExecuted=True)
        assert cleaned(part)[0] is part

    def test_our_own_tools_keep_their_output(self):
        part = settled_call("x" * 10_000)
        assert cleaned(part)[0] is part


class TestReservedMetadata:
    def test_a_client_cannot_set_what_the_server_writes(self):
        message = user(text("x"), metadata={"channel": "web", "turnMetadata": {}, "mine": 1})
        assert strip_reserved_metadata(message) == user(text("x"), metadata={"mine": 1})

    def test_emptied_metadata_goes(self):
        message = user(text("x"), metadata={"channel": "web"})
        assert strip_reserved_metadata(message) == user(text("x"))

    @pytest.mark.parametrize("fields", [{}, {"metadata": {}}, {"metadata": {"mine": 1}}])
    def test_others_come_back_as_they_are(self, fields):
        message = user(text("x"), **fields)
        assert strip_reserved_metadata(message) is message


@given(legal_streams)
def test_twice_equals_once_and_the_input_stays(stream):
    message = fold_chunks(stream, "m")
    before = copy.deepcopy(message)
    once = sanitize_message(message)
    assert sanitize_message(once) is once
    assert message == before
