"""Client text → frames (spec/01 §3.1, §3.3)."""

from __future__ import annotations

import json
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.wire.helpers import decode_frame
from thinkwell.core.json import dumps
from thinkwell.wire.frames import (
    BadChatRequest,
    ChatCancel,
    ChatClear,
    ChatRequest,
    ClientMessages,
    ClientToolResult,
    NotProtocol,
    ResumeAck,
    ResumeRequest,
    RpcCall,
    StateUpdate,
    ToolApproval,
)

USER = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "hi"}]}


def chat(body: object, **changes: object) -> str:
    text = body if isinstance(body, str) else json.dumps(body)
    frame = {
        "type": "cf_agent_use_chat_request",
        "id": "r1",
        "init": {"method": "POST", "body": text},
    }
    return json.dumps({**frame, **changes})


class TestChatRequest:
    def test_carries_messages_trigger_tools_and_every_other_key_as_body(self):
        body = {"messages": [USER], "trigger": "regenerate-message", "clientTools": [], "mood": 1}
        assert decode_frame(chat(body)) == ChatRequest(
            id="r1",
            messages=[USER],
            trigger="regenerate-message",
            client_tools=[],
            body={"mood": 1},
        )

    def test_without_client_tools_keeps_the_stored_ones(self):
        frame = decode_frame(chat({"messages": []}))
        assert isinstance(frame, ChatRequest)
        assert frame.client_tools is None

    @pytest.mark.parametrize("trigger", ["submit-message", "anything", None, 7])
    def test_any_other_trigger_counts_as_submit(self, trigger: object):
        frame = decode_frame(chat({"messages": [], "trigger": trigger}))
        assert isinstance(frame, ChatRequest)
        assert frame.trigger == "submit-message"

    @pytest.mark.parametrize("body", ["", "{", "[]", "null", '{"messages":{}}', "{}", "[" * 5000])
    def test_a_body_that_cannot_run_is_answered_because_the_client_waits(self, body: str):
        frame = decode_frame(chat(body))
        assert isinstance(frame, BadChatRequest)
        assert frame.id == "r1"
        assert frame.reason

    def test_a_missing_init_is_answered(self):
        assert decode_frame(chat({}, init=None)) == BadChatRequest(
            "r1", "A chat request needs an `init` object."
        )

    def test_another_method_than_post_is_ignored(self):
        frame = decode_frame(chat({}, init={"method": "GET", "body": '{"messages":[]}'}))
        assert isinstance(frame, BadChatRequest)
        assert frame.id is None

    def test_without_a_string_id_nobody_can_be_answered(self):
        frame = decode_frame(chat({"messages": []}, id=7))
        assert isinstance(frame, BadChatRequest)
        assert frame.id is None

    def test_half_an_emoji_does_not_lose_the_message(self):
        frame = decode_frame(chat({"messages": [], "note": "a\ud83d"}))
        assert isinstance(frame, ChatRequest)
        assert frame.body == {"note": "a\ufffd"}

    @pytest.mark.parametrize("depth", [300, 700, 880, 950, 5000, 200_000])
    def test_whatever_is_accepted_can_be_encoded_again_on_a_deeper_stack(self, depth: int):
        frame = decode_frame(chat('{"messages":[' + "[" * depth + "]" * depth + "]}"))
        if isinstance(frame, BadChatRequest):
            assert frame == BadChatRequest(
                "r1", "The body of the chat request is nested too deeply."
            )
        else:
            assert isinstance(frame, ChatRequest)
            dumps(reduce(lambda value, _: [value], range(100), frame.messages))


class TestToolResult:
    """C9 (§11.3): only the call's id is needed, everything else has a meaning when absent."""

    def test_carries_everything_the_client_says(self):
        tools = [{"name": "getLocation"}]
        assert decode_frame(
            json.dumps(
                {
                    "type": "cf_agent_tool_result",
                    "toolCallId": "c1",
                    "toolName": "getLocation",
                    "output": {"city": "Paris"},
                    "state": "output-error",
                    "errorText": "no GPS",
                    "autoContinue": True,
                    "clientTools": tools,
                }
            )
        ) == ClientToolResult(
            tool_call_id="c1",
            tool_name="getLocation",
            output={"city": "Paris"},
            state="output-error",
            error_text="no GPS",
            auto_continue=True,
            client_tools=tools,
        )

    @pytest.mark.parametrize(
        "fields",
        [
            {},
            {"output": None, "state": "output-available", "autoContinue": False},
            {"toolName": 7, "state": "odd", "errorText": 7, "autoContinue": 1, "clientTools": {}},
            {"clientTools": []},
        ],
    )
    def test_what_is_missing_or_odd_counts_as_absent(self, fields: dict[str, object]):
        text = json.dumps({"type": "cf_agent_tool_result", "toolCallId": "c1", **fields})
        assert decode_frame(text) == ClientToolResult(tool_call_id="c1")


class TestToolApproval:
    """C10 (§11.4); `reason` is ours (spec/02 §3.12)."""

    @pytest.mark.parametrize("approved", [True, False])
    def test_says_yes_or_no(self, approved: bool):
        text = json.dumps(
            {"type": "cf_agent_tool_approval", "toolCallId": "c1", "approved": approved}
        )
        assert decode_frame(text) == ToolApproval(tool_call_id="c1", approved=approved)

    def test_may_give_a_reason_and_ask_to_go_on(self):
        frame = decode_frame(
            '{"type":"cf_agent_tool_approval","toolCallId":"c1","approved":false,'
            '"autoContinue":true,"reason":"too risky"}'
        )
        assert frame == ToolApproval(
            tool_call_id="c1", approved=False, auto_continue=True, reason="too risky"
        )


class TestOtherFrames:
    @pytest.mark.parametrize(
        ("text", "frame"),
        [
            ('{"type":"cf_agent_chat_request_cancel","id":"r"}', ChatCancel("r")),
            ('{"type":"cf_agent_chat_clear"}', ChatClear()),
            ('{"type":"cf_agent_chat_messages","messages":[1]}', ClientMessages([1])),
            ('{"type":"cf_agent_stream_resume_request","probeId":"p"}', ResumeRequest("p")),
            ('{"type":"cf_agent_stream_resume_request"}', ResumeRequest(None)),
            ('{"type":"cf_agent_stream_resume_request","probeId":3}', ResumeRequest(None)),
            ('{"type":"cf_agent_stream_resume_ack","id":"r"}', ResumeAck("r")),
            ('{"type":"cf_agent_state","state":null}', StateUpdate(None)),
            ('{"type":"rpc","id":"1","method":"m","args":[2],"x":1}', RpcCall("1", "m", [2])),
        ],
    )
    def test_each_has_its_record(self, text: str, frame: object):
        assert decode_frame(text) == frame


class TestEverythingElse:
    @pytest.mark.parametrize(
        "data",
        [
            b'{"type":"cf_agent_chat_clear"}',
            "",
            "hello",
            "null",
            "3",
            "[]",
            '{"type":7}',
            '{"type":["cf_agent_chat_clear"]}',
            '{"type":"unknown"}',
            '{"type":"cf_agent_state"}',
            '{"type":"rpc","id":1,"method":"m","args":[]}',
            '{"type":"rpc","id":"1","method":"m","args":{}}',
            '{"type":"cf_agent_chat_request_cancel"}',
            '{"type":"cf_agent_stream_resume_ack","id":null}',
            '{"type":"cf_agent_chat_messages","messages":{}}',
            '{"type":"cf_agent_tool_result","output":1}',
            '{"type":"cf_agent_tool_result","toolCallId":1,"output":1}',
            '{"type":"cf_agent_tool_approval","toolCallId":"c","approved":"yes"}',
            '{"type":"cf_agent_tool_approval","toolCallId":"c"}',
            '{"type":"cf_agent_tool_approval","approved":true}',
            "[" * 100_000,
            "1e999",
            "9" * 5000,
            "\ud800",
            '{"type":"\ud800"}',
        ],
    )
    def test_goes_to_the_app_as_it_came(self, data: str | bytes):
        assert decode_frame(data) == NotProtocol(data)

    @given(st.text() | st.binary() | st.recursive(st.none() | st.text(), st.lists).map(dumps))
    def test_nothing_ever_raises(self, data: str | bytes):
        decode_frame(data)
