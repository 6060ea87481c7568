"""Whatever a client sends, its connection stays usable: spec/01 case 14 and §3.3, row by row."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.wire.client import Tab
from tests.wire.room import LOCATE, Chat, part_of, room
from thinkwell import Agent, Connection, rpc
from thinkwell.messages.message import user_message
from thinkwell.testing import call, pause, text

APPS_OWN = [
    "not json",
    "",
    "null",
    "1",
    "[]",
    '"text"',
    "{}",
    '{"type":"x"}',
    '{"type":null}',
    '{"type":["rpc"]}',
    '{"type":"cf_agent_state"}',
    '{"type":"rpc","id":"1"}',
    '{"type":"rpc","id":1,"method":"m","args":[]}',
    '{"type":"rpc","id":"1","method":7,"args":[]}',
    '{"type":"rpc","id":"1","method":"m","args":{}}',
    b"\x00\xff binary",
]


class Listening(Chat, name="chat"):
    """Gives back what reaches the app."""

    @rpc
    async def ping(self) -> str:
        return "pong"

    def on_client_message(self, connection: Connection, data: str | bytes) -> None:
        connection.send({"got": data if isinstance(data, str) else data.hex()})


async def works(tab: Tab) -> None:
    """The connection is open, silent, and serves the next call."""
    (answer,) = await tab.call("ping")
    assert answer["result"] == "pong"


async def deliver(tab: Tab, data: str | bytes) -> None:
    if isinstance(data, bytes):
        await tab.socket.send_bytes(data)
    else:
        await tab.say(data)


@pytest.mark.parametrize("data", APPS_OWN)
async def test_case_14_what_is_no_frame_is_handed_to_the_app(data: str | bytes):
    async with room(cls=Listening) as r:
        tab = await r.tab()
        await deliver(tab, data)
        assert await tab.hear() == {"got": data if isinstance(data, str) else data.hex()}
        await works(tab)


async def test_case_14_without_a_handler_there_is_no_reply():
    class Deaf(Chat, name="chat"):
        @rpc
        async def ping(self) -> str:
            return "pong"

    async with room(cls=Deaf) as r:
        tab = await r.tab()
        for data in APPS_OWN:
            await deliver(tab, data)
        await works(tab)
        await tab.nothing_more()


async def test_3_3_a_handler_that_raises_closes_nothing():
    failed: asyncio.Queue[str] = asyncio.Queue()

    class Raising(Chat, name="chat"):
        @rpc
        async def ping(self) -> str:
            return "pong"

        def on_client_message(self, connection: Connection, data: str | bytes) -> None:
            raise RuntimeError("no idea")

        def on_error(self, error: Exception, connection: Connection | None) -> None:
            failed.put_nowait(str(error))

    async with room(cls=Raising) as r:
        tab = await r.tab()
        await tab.say("hello?")
        async with asyncio.timeout(30):
            assert await failed.get() == "no idea"
        await works(tab)


async def test_3_3_chat_frames_reach_the_app_of_an_agent_that_does_not_chat():
    class Plain(Agent):
        def on_client_message(self, connection: Connection, data: str | bytes) -> None:
            connection.send({"got": json.loads(data)["type"]})

    async with room(cls=Plain) as r:
        tab = await r.tab()
        await tab.clear()
        assert await tab.hear() == {"got": "cf_agent_chat_clear"}


@pytest.mark.parametrize("method", ["GET", "post", None, 1])
async def test_3_3_a_chat_request_that_is_no_post_is_ignored(method: Any):
    async with room(cls=Listening) as r:
        tab = await r.tab()
        init = {"method": method, "body": '{"messages":[]}'}
        await tab.send(type="cf_agent_use_chat_request", id="q1", init=init)
        await works(tab)
        assert await r.messages() == []


@pytest.mark.parametrize(
    "message",
    [
        1,
        None,
        {},
        {"id": "", "role": "user", "parts": []},
        {"id": "u", "role": "wizard", "parts": []},
        {"id": "u", "role": "user", "parts": "text"},
    ],
)
async def test_3_3_a_message_that_cannot_be_read_is_refused_with_a_reason(message: Any):
    async with room(cls=Listening) as r:
        tab = await r.tab()
        await tab.request("q1", [message])
        end = await tab.expect("use_chat_response", id="q1", done=True, error=True)
        assert end["body"]
        await works(tab)
        assert await r.messages() == []


async def test_3_3_a_chat_request_cannot_pass_for_the_retry_of_another_turn():
    """Else a client could keep operators from seeing, or retrying, a turn that was parked."""
    async with room(cls=Listening) as r:
        tab = await r.tab()
        await tab.request("q1:retry", [user_message("u", "hi")])
        end = await tab.expect("use_chat_response", id="q1:retry", done=True, error=True)
        assert "cannot end with ':retry'" in end["body"]
        await works(tab)
        assert await r.messages() == []


async def test_3_3_a_chat_request_without_an_id_is_not_answered():
    async with room(cls=Listening) as r:
        tab = await r.tab()
        init = {"method": "POST", "body": "nonsense"}
        await tab.send(type="cf_agent_use_chat_request", init=init)
        await works(tab)


@pytest.mark.parametrize(
    "frame",
    [
        {"type": "cf_agent_chat_request_cancel", "id": "unknown"},
        {"type": "cf_agent_tool_result", "toolCallId": "unknown", "output": 1},
        {"type": "cf_agent_tool_approval", "toolCallId": "unknown", "approved": True},
        {"type": "cf_agent_chat_messages", "messages": [{"id": "x"}]},
    ],
)
async def test_3_3_frames_about_nothing_known_do_nothing(frame: dict[str, Any]):
    async with room(cls=Listening) as r:
        tab, other = await r.tabs()
        await tab.send(**frame)
        await works(tab)
        await other.nothing_more()
        assert await r.messages() == []


@pytest.mark.parametrize("identifier", [None, 1, {"a": 1}])
async def test_3_3_an_ack_without_a_string_id_is_ignored(identifier: Any):
    gate = pause()
    async with room([text("w1 "), gate], cls=Listening) as r:
        asker = await r.tab("R")
        await asker.ask("hi")
        await asker.part()
        other = await r.tab("O")
        await other.send(type="cf_agent_stream_resume_ack", id=identifier)
        frames = await other.before_now()
        assert [f for f in frames if "got" not in f] == []
        gate.open()
        await asker.stream()


@pytest.mark.parametrize("probe", [None, 1, ["p"]])
async def test_3_3_a_probe_id_that_is_no_text_counts_as_absent(probe: Any):
    async with room() as r:
        tab = await r.tab()
        await tab.send(type="cf_agent_stream_resume_request", probeId=probe)
        assert await tab.hear() == {"type": "cf_agent_stream_resume_none", "reason": "idle"}


async def test_3_3_an_answer_to_a_settled_call_is_silent():
    async with room([call("locate")], cls=Listening) as r:
        tab, other = await r.tabs()
        await tab.ask("where?", clientTools=[LOCATE])
        await tab.stream()
        await other.stream()
        await tab.result(output=1, autoContinue=False)
        await tab.expect("message_updated")
        await other.expect("message_updated")
        await tab.result(output=2, autoContinue=False)
        await tab.decide(approved=True, autoContinue=False)
        await works(tab)
        await other.nothing_more()
        assert part_of((await r.messages())[-1])["output"] == 1


async def test_half_an_emoji_and_deep_nesting_do_no_harm():
    async with room("Hello", cls=Listening) as r:
        tab = await r.tab()
        await tab.say('{"type":"x","a":' + "[" * 100_000 + "]" * 100_000 + "}")
        await tab.hear()
        await works(tab)
        body = '{"messages":[{"id":"u","role":"user","parts":[{"type":"text","text":"\\ud83d"}]}]}'
        init = {"method": "POST", "body": body}
        await tab.send(type="cf_agent_use_chat_request", id="q1", init=init)
        assert (await tab.stream()).text == "Hello"
