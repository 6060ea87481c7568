"""JSON from clients: bounded before it is parsed, read in pieces (DESIGN §8.12, §9)."""

from __future__ import annotations

import gc
import json as stdlib_json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.wire.helpers import decode_frame, finish
from thinkwell.core import json
from thinkwell.core.tasks import in_pieces
from thinkwell.wire import client_json
from thinkwell.wire.client_json import (
    LAST,
    MAX_ELEMENTS,
    MAX_FIELDS,
    MAX_OBJECTS,
    MAX_SAID,
    NOT_READ,
    SHORT,
    TooLargeError,
    parse_body,
    parse_in_pieces,
)
from thinkwell.wire.decode import decode_in_pieces
from thinkwell.wire.frames import (
    BadCall,
    BadChatRequest,
    BadState,
    ChatRequest,
    ClientToolResult,
    NotProtocol,
)


def message(number: int, role: str = "assistant", text: str = "x" * 600):
    part = {"type": "text", "text": text, "state": "done"}
    return {"id": f"m{number}", "role": role, "parts": [part], "metadata": {"n": number}}


def frame(body: str) -> str:
    init = {"method": "POST", "body": body}
    return json.dumps({"type": "cf_agent_use_chat_request", "id": "q1", "init": init})


def pieces(work) -> int:
    count = 0
    while True:
        try:
            next(work)
        except StopIteration:
            return count
        count += 1


class TestALongConversation:
    LIST = [message(n, "assistant" if n % 2 else "user") for n in range(3_000)]

    def test_the_users_own_messages_are_whole(self):
        body = finish(parse_body(json.dumps({"messages": self.LIST, "trigger": "submit-message"})))
        assert body["messages"][::2] == self.LIST[::2]
        assert body["trigger"] == "submit-message"

    def test_of_others_only_what_names_them_becomes_objects(self):
        (_, second, *_), *_ = finish(parse_body(json.dumps({"messages": self.LIST}))).values()
        states = [{"type": "text", "state": "done"}]
        assert second == {"id": "m1", "role": "assistant", "parts": states}

    def test_the_last_one_is_whole_it_may_bring_answers(self):
        assert (
            finish(parse_body(json.dumps({"messages": self.LIST})))["messages"][-1]
            == (self.LIST[-1])
        )

    def test_others_go_first_in_between(self):
        assert pieces(decode_in_pieces(frame(json.dumps({"messages": self.LIST})))) > 5

    def test_what_is_stored_costs_no_objects_except_at_the_end(self):
        stored = {entry["id"] for entry in self.LIST[:-1]}
        sent = finish(parse_body(json.dumps({"messages": self.LIST}), stored))["messages"]
        assert [entry["id"] for entry in sent] == [entry["id"] for entry in self.LIST]
        assert all(entry["parts"] is NOT_READ for entry in sent[:-LAST])
        assert all(entry["parts"] is not NOT_READ for entry in sent[-LAST:])
        if sys.version_info < (3, 14):  # there the collector knows of every dict
            assert not any(map(gc.is_tracked, sent[:-LAST]))

    def test_only_a_new_message_has_to_be_simple(self):
        said = message(1, "user") | {"metadata": {"x": [0] * MAX_SAID}}
        text = json.dumps({"messages": [said]})
        with pytest.raises(TooLargeError):
            finish(parse_body(text, {"another"}))
        assert finish(parse_body(text, {"m1"})) == finish(parse_body(text)) == {"messages": [said]}

    def test_what_it_comes_after_is_read(self):
        long = json.loads(frame(json.dumps({"messages": self.LIST}))) | {"after": "m0"}
        request = decode_frame(json.dumps(long))
        assert isinstance(request, ChatRequest)
        assert request.after == "m0"

    def test_one_huge_answer_at_the_end_is_read_in_pieces_too(self):
        huge = frame(json.dumps({"messages": [message(1, text="x" * 2_000_000)]}))
        assert pieces(decode_in_pieces(huge)) > 8

    @given(st.lists(st.sampled_from([",", '"', "\\", "ä", "漢", "😀", "\n", "\\u0041", "x"])))
    def test_wherever_it_is_cut_the_text_stays_the_same(self, letters):
        note = "".join(letters) * 3 + "," + "".join(reversed(letters))
        body = json.dumps({"messages": [], "note": note, "more": "y" * SHORT})
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(client_json, "PIECE", 3)
            for ascii_only in (True, False):
                sent = stdlib_json.loads(frame(body))
                request = decode_frame(stdlib_json.dumps(sent, ensure_ascii=ascii_only))
                assert isinstance(request, ChatRequest)
                assert request.body["note"] == note

    async def test_it_is_the_same_frame_at_once_and_in_pieces(self):
        text = frame(json.dumps({"messages": self.LIST, "note": "hm"}))
        assert await in_pieces(decode_in_pieces(text)) == decode_frame(text)

    def test_an_answer_full_of_commas_is_no_reason_to_refuse(self):
        table = message(1, text="1,2,3," * 500_000)
        request = decode_frame(frame(json.dumps({"messages": [table, message(2, "user")]})))
        assert isinstance(request, ChatRequest)
        assert [m["id"] for m in request.messages] == ["m1", "m2"]

    def test_a_pasted_table_is_no_reason_to_refuse(self):
        table = message(1, "user", "1,2,3," * 200_000)
        assert finish(parse_body(json.dumps({"messages": [table]}))) == {"messages": [table]}


BODIES = {
    "objects": '{"messages":[' + ",".join(["{}"] * (MAX_OBJECTS + 1)) + "]}",
    "elements beside": '{"messages":[],"x":[' + "0," * MAX_ELEMENTS + "0]}",
    "elements of a message": json.dumps(
        {"messages": [{"id": "u", "role": "user", "parts": [[]] * MAX_ELEMENTS}]}
    ),
    "fields": json.dumps({"messages": [], "x": "x" * MAX_FIELDS}),
    "one message": json.dumps({"messages": [message(1, "user", "x" * MAX_FIELDS)]}),
}


class TestRefusedBeforeItIsParsed:
    @pytest.mark.parametrize("kind", BODIES)
    def test_its_sender_is_told(self, kind):
        refused = decode_frame(frame(BODIES[kind]))
        assert isinstance(refused, BadChatRequest)
        assert refused.id == "q1"
        assert refused.reason.startswith("The chat request is too large: ")

    @pytest.mark.parametrize("kind", BODIES)
    def test_nothing_of_it_becomes_objects(self, kind, monkeypatch):
        decoded: list[int] = []
        monkeypatch.setattr(client_json, "_any", _Spy(decoded))
        with pytest.raises(TooLargeError):
            finish(parse_body(BODIES[kind]))
        assert sum(decoded) < 1_000

    def test_a_state_or_a_call_or_a_result_is_answered_as_what_it_is(self):
        many = "[" + "0," * MAX_ELEMENTS + "0]"
        state = decode_frame('{"type":"cf_agent_state","state":' + many + "}")
        call = decode_frame('{"type":"rpc","id":"c1","method":"m","args":' + many + "}")
        result = decode_frame(
            '{"type":"cf_agent_tool_result","toolCallId":"t1","output":' + many + "}"
        )
        assert isinstance(state, BadState)
        assert isinstance(call, BadCall)
        assert call.id == "c1"
        assert isinstance(result, ClientToolResult)
        assert (result.tool_call_id, result.state) == ("t1", "output-error")
        assert "too large" in (result.error_text or "")

    def test_anything_else_is_the_apps_own(self):
        text = '{"type":"mine","id":"c1","x":[' + "0," * MAX_ELEMENTS + "0]}"
        assert decode_frame(text) == NotProtocol(text)

    @pytest.mark.parametrize("entry", ["[]", "1", "null", '"x"'])
    def test_a_million_things_that_are_no_messages(self, entry):
        text = frame('{"messages":[' + ",".join([entry] * 1_000_000) + "]}")
        request = decode_frame(text)
        assert isinstance(request, ChatRequest)
        assert request.messages == [None]  # whoever checks the list refuses it

    def test_deep_nesting(self):
        refused = decode_frame(frame('{"messages":' + "[" * 1_000_000))
        assert isinstance(refused, BadChatRequest)
        assert refused.reason == "The body of the chat request is nested too deeply."


class _Spy:
    def __init__(self, decoded: list[int]) -> None:
        self._decoded = decoded

    def decode(self, data: bytes):
        self._decoded.append(len(data))
        return json.loads(data)


ESCAPES = ["a", "\\\\", '\\"', "\\n", "\\ud83d", "\\uDE00", "\\ud83d\\ude00", "\\u00e9", "é"]


class TestLoneSurrogates:
    @given(st.lists(st.sampled_from(ESCAPES), max_size=12).map("".join))
    def test_they_are_replaced_and_pairs_stay(self, inner):
        text = f'{{"a":"{inner}"}}'
        expected = json.to_jsonable(stdlib_json.loads(text))
        assert finish(parse_in_pieces(text)) == expected

    def test_in_a_long_conversation(self):
        long = json.dumps({"messages": [message(n) for n in range(200)]})
        text = long[:-2] + ',{"id":"u","role":"user","parts":[{"type":"text","text":"\\ud83d!"}]}]}'
        body = finish(parse_body(text))
        assert body["messages"][-1]["parts"][0]["text"] == "\ufffd!"
