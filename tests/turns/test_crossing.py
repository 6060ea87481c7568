"""What is under way when something else happens: nobody ends with another list than the store."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from tests.turns.support import Client, loosely, running
from thinkwell import Think, rpc
from thinkwell.testing import pause, text


class Talker(Think):
    initial_state = 0

    def should_connection_be_readonly(self, connection: Any, request: Any) -> bool:
        return "look" in request.query

    def authorize(self, action: Any, principal: Any, subject: Any) -> bool:
        return True

    async def on_chat_response(self, ctx: Any) -> None:
        if ctx.principal is None and ctx.trigger == "ws-chat":
            await self.set_state(self.state + 1)

    @rpc
    async def slow(self) -> int:
        async with asyncio.timeout(0):
            await self.set_state(7)
        return self.state


def user(name: str) -> dict[str, Any]:
    return {"id": name, "role": "user", "parts": [{"type": "text", "text": name}]}


def transcripts_before_start(client: Client, request_id: str) -> int:
    """How many transcripts came between the turn before and this turn's first chunk."""
    names = [(f["type"], f.get("id")) for f in client.frames]
    start = names.index(("cf_agent_use_chat_response", request_id))
    before = [i for i, f in enumerate(client.frames[:start]) if f.get("done")]
    between = client.frames[(before[-1] if before else 0) : start]
    return sum(f["type"] == "cf_agent_chat_messages" for f in between)


async def test_a_question_that_crossed_a_transcript_is_shown_in_its_place_first():
    """The client sent it while it had not seen the end of the turn before."""
    async with running(Talker, ["a1"], ["a2"]) as stage:
        client = await stage.connect()
        await client.ask("u1", "q1")
        await client.until_end("q1")
        growing = {
            "id": (await stage.answer())["id"],
            "role": "assistant",
            "parts": [{"type": "text", "text": "a", "state": "streaming"}],
        }
        await client.request("q2", messages=[user("u-q1"), growing, user("u2")])
        await client.until_end("q2")
        assert transcripts_before_start(client, "q2") == 1


async def test_a_question_after_the_transcript_needs_none():
    async with running(Talker, ["a1"], ["a2"]) as stage:
        client = await stage.connect()
        await client.ask("u1", "q1")
        await client.until_end("q1")
        await client.request("q2", messages=[*await stage.messages(), user("u2")])
        await client.until_end("q2")
        assert transcripts_before_start(client, "q2") == 0


async def test_a_list_from_before_a_clear_does_not_bring_the_conversation_back():
    async with running(Talker, ["a1"], ["a2"]) as stage:
        client, other = await stage.connect("one"), await stage.connect("two")
        await client.ask("u1", "q1")
        await client.until_end("q1")
        old = client.transcript()
        await other.send(type="cf_agent_chat_clear")
        await client.request("q2", messages=[*old, user("u2")])
        await client.until_end("q2")
        assert [m["role"] for m in await stage.messages()] == ["user", "assistant"]


async def test_whoever_asks_is_not_offered_its_own_stream():
    """spec/01 §10.7: a tab that waits for one turn and asks for another just gets its chunks."""
    gate = pause()
    async with running(Talker, [text("a1"), gate], ["a2"]) as stage:
        first = await stage.connect("first")
        await first.ask("u1", "q1")
        await gate.reached()
        tab = await stage.connect("tab")
        await tab.ask("u2", "q2")
        await tab.send(type="cf_agent_stream_resume_ack", id="q1")
        await tab.send(type="cf_agent_stream_resume_request", probeId="p")
        gate.open()
        await tab.until_end("q2")
        offers = [f["id"] for f in tab.frames if f["type"] == "cf_agent_stream_resuming"]
        assert set(offers) == {"q1"}


async def test_2_6_the_end_hooks_of_a_readonly_turn_cannot_change_the_state():
    async with running(Talker, ["a1"], ["a2"]) as stage:
        looking = await stage.connect("looks", look="1")
        await looking.ask("u1", "q1")
        await looking.until_end("q1")
        writing = await stage.connect("writes")
        await writing.ask("u2", "q2")
        await writing.until(lambda f: f["type"] == "cf_agent_state" and f["state"] == 1)
        assert stage.agent.state == 1


async def test_a_state_whose_writer_gave_up_is_shown_if_it_was_stored():
    async with running(Talker) as stage:
        client = await stage.connect()
        await client.send(type="rpc", id="r", method="slow", args=[])
        await client.until(lambda f: f.get("id") == "r")
        parts = loosely(stage.agent)._turns.parts
        row = await parts.store.fetch_one("agent_row", {"id": parts.owner.agent_id})
        assert stage.agent.state == json.loads(row["state"])


async def test_a_question_asked_again_unchanged_gets_another_answer_in_the_place_of_the_first():
    async with running(Talker, ["a1"], ["a2"]) as stage:
        client = await stage.connect()
        await client.request("q1", messages=[user("u1")])
        await client.until_end("q1")
        await client.request("q2", messages=[user("u1")])
        await client.until_end("q2")
        assert [m["role"] for m in await stage.messages()] == ["user", "assistant"]
        assert len(await stage.agent.branches.below("u1")) == 2
