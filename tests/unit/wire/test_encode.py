"""Frames the server sends, compared with what the reference sent (spec/01 §3.2, §3.4)."""

from __future__ import annotations

import json

from thinkwell.wire import encode


def test_identity_says_that_state_follows_only_when_it_does():
    assert json.loads(encode.identity("n", "ref-agent", state_follows=True)) == {
        "type": "cf_agent_identity",
        "name": "n",
        "agent": "ref-agent",
        "stateFollows": True,
    }
    assert "stateFollows" not in json.loads(encode.identity("n", "a", state_follows=False))


def test_null_is_a_state():
    assert json.loads(encode.state(None)) == {"type": "cf_agent_state", "state": None}


def test_an_agent_without_mcp_servers_sends_the_empty_form():
    assert json.loads(encode.mcp_servers()) == {
        "type": "cf_agent_mcp_servers",
        "mcp": {"prompts": [], "resources": [], "servers": {}, "tools": []},
    }


def test_the_transcript_joins_messages_that_were_encoded_before():
    messages = [b'{"id":"1"}', b'{"id":"2"}']
    frame = json.loads(str(encode.chat_messages((), messages, connect=True)))
    assert frame == {
        "type": "cf_agent_chat_messages",
        "messages": [{"id": "1"}, {"id": "2"}],
        "connect": True,
    }
    assert "connect" not in json.loads(str(encode.chat_messages((), [])))


def test_a_long_transcript_is_a_text_in_pieces():
    frame = encode.chat_messages([b'{"id":"1"},', b'{"id":"2"},'], [b'{"id":"3"}'])
    assert isinstance(frame, encode.LongText)
    assert len(frame) == len(str(frame))
    assert [message["id"] for message in json.loads(str(frame))["messages"]] == ["1", "2", "3"]


def test_the_end_of_a_list_names_the_message_before_it():
    assert json.loads(encode.chat_tail("m1", [b'{"id":"m2"}'])) == {
        "type": "cf_agent_chat_messages",
        "after": "m1",
        "messages": [{"id": "m2"}],
    }
    assert json.loads(encode.chat_tail(None, []))["after"] is None


def test_a_changed_message_goes_out_whole():
    assert json.loads(encode.message_updated('{"id":"1","parts":[]}')) == {
        "type": "cf_agent_message_updated",
        "message": {"id": "1", "parts": []},
    }


class TestChunks:
    def test_the_body_is_a_string_with_the_chunk_inside(self):
        frame = encode.chunk_frame_maker('r"1', continuation=False)('{"type":"start"}', 4)
        assert json.loads(frame) == {
            "type": "cf_agent_use_chat_response",
            "id": 'r"1',
            "body": '{"type":"start"}',
            "done": False,
            "seq": 4,
        }

    def test_a_continuation_says_so_on_every_chunk(self):
        live = json.loads(encode.chunk_frame_maker("r", continuation=True)("{}", 0))
        again = json.loads(encode.replay_chunk("r", "{}", 0, continuation=True))
        assert again == {**live, "replay": True}
        assert live["continuation"] is True

    def test_the_end_of_a_replay_is_marked(self):
        assert json.loads(encode.replay_complete("r", continuation=False)) == {
            "type": "cf_agent_use_chat_response",
            "id": "r",
            "body": "",
            "done": False,
            "replay": True,
            "replayComplete": True,
        }


class TestEnds:
    def test_done_names_the_messages_and_the_outcome(self):
        frame = encode.done("r", message_ids=["m"], outcome="aborted", continuation=False)
        assert json.loads(frame) == {
            "type": "cf_agent_use_chat_response",
            "id": "r",
            "body": "",
            "done": True,
            "outcome": "aborted",
            "messageIds": ["m"],
        }

    def test_a_turn_that_no_client_asked_for_names_no_messages(self):
        end = encode.done("r", message_ids=(), outcome="completed", continuation=True)
        error = encode.error_done("r", "no", message_ids=(), continuation=False)
        assert json.loads(end) == {
            "type": "cf_agent_use_chat_response",
            "id": "r",
            "body": "",
            "done": True,
            "continuation": True,
            "outcome": "completed",
        }
        assert "messageIds" not in json.loads(error)

    def test_an_error_is_one_frame_with_its_text(self):
        frame = json.loads(encode.error_done("r", "no", message_ids=[], continuation=False))
        assert frame["error"] is True
        assert (frame["body"], frame["done"], frame["outcome"]) == ("no", True, "error")

    def test_a_replayed_end_says_so(self):
        frame = encode.done(
            "r", message_ids=[], outcome="completed", continuation=False, replay=True
        )
        assert json.loads(frame)["replay"] is True


class TestHandshake:
    def test_optional_fields_are_left_out(self):
        assert json.loads(encode.stream_resume_none()) == {"type": "cf_agent_stream_resume_none"}
        assert json.loads(encode.stream_pending()) == {"type": "cf_agent_stream_pending"}
        assert json.loads(encode.stream_resuming("r")) == {
            "type": "cf_agent_stream_resuming",
            "id": "r",
        }

    def test_the_probe_is_echoed(self):
        assert json.loads(encode.stream_resume_none("idle", "p")) == {
            "type": "cf_agent_stream_resume_none",
            "reason": "idle",
            "probeId": "p",
        }


def test_rpc_answers():
    result = {"type": "rpc", "id": "1", "success": True, "result": None, "done": True}
    assert json.loads(encode.rpc_result("1", None)) == result
    failure = {"type": "rpc", "id": "1", "success": False, "error": "no"}
    assert json.loads(encode.rpc_error("1", "no")) == failure


def test_recovering_sends_its_flag_even_when_false():
    assert json.loads(encode.chat_recovering(False, "r")) == {
        "type": "cf_agent_chat_recovering",
        "recovering": False,
        "id": "r",
    }
