"""`GET chat/{id}/stream`: joining a turn that runs (spec/01 §14.5, case 69)."""

from __future__ import annotations

import pytest

from tests.http.support import frames_until, talking
from thinkwell.messages.message import text_of
from thinkwell.testing import call, pause, text


async def test_with_nothing_running_there_is_nothing_to_join():
    """Case 69"""
    async with talking("one") as client:
        assert await client.resume() is None
        await client.say("hi")
        assert await client.resume() is None


async def test_it_begins_at_the_start_and_goes_on_live():
    """Case 69"""
    gate = pause()
    async with talking([text("one "), gate, text("two")]) as client:
        first = await client.send("hi")
        await first.until("text-end")
        joined = await client.resume()
        assert joined is not None
        await joined.until("text-end")
        assert joined.chunks == first.chunks
        gate.open()
        assert await joined.read() == await first.read()
        assert joined.message() == (await client.stored())[1]


async def test_a_turn_that_waits_in_line_can_be_joined():
    gate = pause()
    async with talking([gate, text("one")]) as client:
        async with await client.send("hi"):
            await gate.reached()
        joined = await client.resume()
        gate.open()
        assert joined is not None
        await joined.read()
        assert joined.text() == "one"


async def test_a_turn_of_a_socket_can_be_joined():
    """14.8"""
    gate = pause()
    async with talking([text("one "), gate, text("two")]) as client:
        tab = await client.socket()
        message = {"id": "u", "role": "user", "parts": [{"type": "text", "text": "hi"}]}
        init = {"method": "POST", "body": _json({"messages": [message]})}
        await tab.send_json({"type": "cf_agent_use_chat_request", "id": "q", "init": init})
        await gate.reached()
        joined = await client.resume()
        gate.open()
        assert joined is not None
        await joined.read()
        assert joined.text() == "one two"
        await frames_until(tab, "cf_agent_use_chat_response", done=True)


async def test_a_stop_ends_it_for_everybody():
    gate = pause()
    async with talking([text("one "), gate]) as client:
        first = await client.send("hi")
        await gate.reached()
        joined = await client.resume()
        assert joined is not None
        await client.post("chat/stop")
        assert (await joined.read())[-1] == (await first.read())[-1] == {"type": "abort"}


async def test_a_clear_ends_it():
    """8.3"""
    gate = pause()
    async with talking([text("one "), gate]) as client:
        tab = await client.socket()
        await frames_until(tab, "cf_agent_identity")
        stream = await client.send("hi")
        await gate.reached()
        await tab.send_json({"type": "cf_agent_chat_clear"})
        await stream.read()
        assert await client.stored() == []
        assert await client.resume() is None


async def test_tools_are_joined_too():
    gate = pause()
    async with talking([call("add", {"a": 1, "b": 2})], [gate, text("three")]) as client:
        async with await client.send("1+2?"):
            await gate.reached()
        joined = await client.resume()
        gate.open()
        assert joined is not None
        await joined.read()
        assert joined.message() == (await client.stored())[1]
        assert text_of(joined.message()) == "three"


@pytest.mark.parametrize("path", ["chat/a%2Fb/stream", "chat/a/b/stream", "chat/stop/stream"])
async def test_whatever_the_chat_is_called(path: str):
    """14.5: encoded or raw"""
    async with talking() as client:
        assert (await client.get(path)).status == 204


async def test_asking_only_for_the_headers():
    gate = pause()
    async with talking([gate, text("one")]) as client:
        first = await client.send("hi")
        await gate.reached()
        answer = await client.session.head(f"{client.url}/chat/c/stream")
        assert (answer.status, answer.content_type) == (200, "text/event-stream")
        gate.open()
        await first.read()


def _json(value: object) -> str:
    import json

    return json.dumps(value)
