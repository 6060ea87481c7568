"""Joining a continuation: spec/01 §10.2.1-2, §10.3.3, §10.4.8, §11.8-11.10, cases 52-53."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.wire.client import Frame, Tab, kind_of, kinds
from tests.wire.room import LOCATE, Chat, Room, room
from thinkwell.testing import call, pause, text


async def asked(r: Room, *tabs: Tab) -> None:
    """The first tab asks; the turn ends with a call of the browser; every tab has read it."""
    await tabs[0].ask("where am I?", clientTools=[LOCATE])
    for tab in tabs:
        await tab.stream()


async def replayed(tab: Tab, request: str) -> list[Frame]:
    """Take an offer and read on to the end of the replay."""
    first = len(tab.heard)
    await tab.ack(request)
    await tab.until(lambda f: f.get("replayComplete") or (f.get("done") and f["id"] == request))
    return tab.heard[first:]


class Slow(Chat, name="chat"):
    """A continuation waits for `go`, or for its stop, before it says anything."""

    expose_errors = True
    waits: asyncio.Event
    go: asyncio.Event
    fails = False

    async def before_turn(self, ctx: Any) -> None:
        if ctx.continuation:
            ctx.abort_signal.add_listener(lambda _: self.go.set())
            self.waits.set()
            await self.go.wait()
            if self.fails:
                raise RuntimeError("no way on")


def slow(**settings: Any) -> type[Any]:
    """Each test has events of its own."""

    class Mine(Slow, name="chat"):
        waits = asyncio.Event()
        go = asyncio.Event()
        fails = bool(settings.get("fails"))

    return Mine


class TestOneThatWaits:
    async def test_10_2_2_its_asker_is_told_to_wait_and_then_offered_it(self):
        cls = slow()
        async with room([call("locate")], "Paris", cls=cls) as r:
            asker, other = await r.tabs()
            await asked(r, asker, other)
            await asker.result()
            await cls.waits.wait()
            await asker.expect("message_updated")
            pending = await asker.probe("p")
            assert kind_of(pending) == "stream_pending"
            await other.expect("message_updated")
            assert (await other.probe("p"))["reason"] == "idle"  # D8: harmless, it is told live
            cls.go.set()
            offer = await asker.expect("stream_resuming", id=pending["id"])
            assert "probeId" not in offer
            await other.until("use_chat_response", id=pending["id"], done=True)
            assert other.of(pending["id"]).text == "Paris"

    async def test_10_2_2_one_without_an_owner_is_anybodys(self):
        cls = slow()
        async with room([call("locate")], "Paris", cls=cls) as r:
            asker, other = await r.tabs()
            await asked(r, asker, other)
            await asker.result()
            await cls.waits.wait()
            await other.expect("message_updated")
            await asker.close()
            again = await r.tab("new")
            assert kinds(again.greeting)[0] == "stream_pending"
            pending = await other.probe("p")
            assert kind_of(pending) == "stream_pending"
            cls.go.set()
            await other.expect("stream_resuming", id=pending["id"])
            await again.expect("stream_resuming", id=pending["id"])

    async def test_11_10_its_asker_is_released_when_it_cannot_run(self):
        cls = slow(fails=True)
        async with room([call("locate")], cls=cls) as r:
            asker, other = await r.tabs()
            await asked(r, asker, other)
            await asker.result()
            await cls.waits.wait()
            cls.go.set()
            await asker.until("stream_resume_none")
            assert asker.heard[-1] == {"type": "cf_agent_stream_resume_none"}
            end = await other.until("use_chat_response", done=True)
            assert (end["error"], end["body"], end["continuation"]) == (True, "no way on", True)

    async def test_case_62_a_clear_releases_its_asker_without_a_reason(self):
        cls = slow()
        async with room([call("locate")], cls=cls) as r:
            asker, other = await r.tabs()
            await asked(r, asker, other)
            await asker.result()
            await cls.waits.wait()
            await asker.expect("message_updated")
            await other.clear()
            await asker.until("stream_resume_none")
            assert asker.heard[-1] == {"type": "cf_agent_stream_resume_none"}
            await asker.until("chat_clear")
            assert await r.messages() == []
            assert (await asker.probe())["reason"] == "idle"
            assert len(r.model.requests) == 1


class TestAStreamThatRuns:
    async def test_10_2_1_a_belongs_to_its_asker_while_that_is_connected(self):
        """Case 53."""
        gate = pause()
        async with room([call("locate")], [text("w1 "), gate, text("w2")]) as r:
            asker, other = await r.tabs()
            await asker.ask("where?", clientTools=[LOCATE])
            await asker.stream()
            await other.stream()
            await asker.result()
            owned = await other.until("use_chat_response", continuation=True)
            assert (await other.part(owned["id"])).text == "w1 "
            assert await other.probe("p") == {
                "type": "cf_agent_stream_resume_none",
                "reason": "continuation-owned",
                "probeId": "p",
            }
            await asker.close()
            offer = await other.probe("p2")
            assert (kind_of(offer), offer["id"]) == ("stream_resuming", owned["id"])
            frames = await replayed(other, offer["id"])
            assert all(f["continuation"] for f in frames)
            gate.open()
            assert (await other.stream(offer["id"])).text == "w2"

    async def test_10_4_8_a_replayed_continuation_says_that_it_is_one(self):
        """★ D5: the reference forgets it. Also after the end."""
        async with room([call("locate")], "Paris") as r:
            asker = await r.tab("R")
            await asker.ask("where?", clientTools=[LOCATE])
            await asker.stream()
            await asker.result()
            offer = await asker.until("stream_resuming")
            frames = await replayed(asker, offer["id"])
            if frames[-1].get("replayComplete"):
                await asker.stream(offer["id"])
            await replayed(asker, offer["id"])
            told = asker.of(offer["id"]).frames
            assert all(frame["continuation"] for frame in told)
            assert told[-1]["replay"]
