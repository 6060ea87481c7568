"""After a crash or a stall: spec/01 cases 48-49, 66, 72 and §10.6, §12.

DESIGN §8.3 replaces what the cases say about ids: a turn that is taken up again keeps its request
id, its message and its journal. So a client that comes back is offered the old id, gets what it
knows and then the rest, and there is one end, which never says `recovering`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.crash.evidence import stored_messages
from tests.crash.plan import read_plan
from tests.crash.process import Server, World, until
from tests.wire.client import Stream, Tab, browser, kind_of
from tests.wire.room import Chat, part_of, room, text_of, with_settings
from thinkwell.messages.message import UIMessage
from thinkwell.testing import call, error, pause, text

TALKER, CAREFUL = "talker/one", "careful/one"
HELD = "first|say:4,hold:b,say:4,hold:c,say:2"
IN_TOOL = "tool|say:2,pure;say:3"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(tmp_path)
    yield world
    await world.end()


async def seen_before_the_crash(world: World, agent: str, question: str, last: str) -> Stream:
    """Ask, read on until the answer's chunks hold `last`, and kill the server. What was seen."""
    server = await world.start()
    async with browser(server.url) as the_browser:
        tab = await the_browser.tab(f"/agents/{agent}", "R")
        await tab.ask(question)
        await tab.until(lambda _: last in tab.of("q1").text + "".join(tab.of("q1").bodies))
        await server.kill()
    return tab.of("q1")


async def join(tab: Tab, request: str) -> None:
    """Take the offer, which may have come with the greeting, and read the replay."""
    if not any(kind_of(f) == "stream_resuming" for f in tab.greeting):
        await tab.until("stream_resuming", id=request)
    await tab.ack(request)
    await tab.until("use_chat_response", id=request, replayComplete=True)


def _hints(tab: Tab) -> list[bool]:
    """What it was told about the recovery of `q1`."""
    told = [frame for frame in tab.heard if kind_of(frame) == "chat_recovering"]
    assert {frame["id"] for frame in told} <= {"q1"}
    return [frame["recovering"] for frame in told]


@pytest.mark.crash
class TestACrash:
    async def test_case_48_72_the_turn_goes_on_under_its_own_id(self, world: World):
        world.hold("b")
        seen = await seen_before_the_crash(world, TALKER, HELD, "first.0.3")
        server = await self._goes_on_to_c(world)
        async with browser(server.url) as the_browser:
            tab = await the_browser.tab(f"/agents/{TALKER}", "R")
            await join(tab, "q1")
            world.release("c")
            await tab.until("use_chat_response", id="q1", done=True)
            stream = tab.of("q1")
            assert stream.bodies[: len(seen.bodies)] == seen.bodies
            assert stream.text == read_plan(HELD).text
            assert stream.chunk_kinds.count("start") == 1
            assert (stream.end["messageIds"], stream.end["outcome"]) == (["u-q1"], "completed")
            await self._second_ack(tab, stream)
        _, answer = stored_messages(world, TALKER)
        assert answer["id"] == seen.chunks[0]["messageId"]
        assert text_of(answer) == read_plan(HELD).text

    async def _goes_on_to_c(self, world: World) -> Server:
        """The server again: the answer goes on to its next stop, where a tab can join it."""
        world.hold("c")
        world.release("b")
        return await world.start()

    async def _second_ack(self, tab: Tab, stream: Stream) -> None:
        """Served from what is stored."""
        first = len(tab.heard)
        await tab.ack("q1")
        await tab.until("use_chat_response", id="q1", done=True, replay=True)
        assert Stream(tab.heard[first:]).bodies == stream.bodies

    async def test_case_49_a_continuation_goes_on_as_one_and_keeps_the_result(self, world: World):
        question = "asks|say:2,once;say:3,hold:b,say:3,hold:c,say:1"
        world.hold("b")
        server = await world.start()
        seen = await self._continuation_cut(server, world, question)
        server = await self._goes_on_to_c(world)
        async with browser(server.url) as the_browser:
            tab = await the_browser.tab(f"/agents/{CAREFUL}", "O")
            await join(tab, seen)
            world.release("c")
            await until(lambda: text_of(self._answer(world)) == read_plan(question).text, "the end")
            assert all(frame["continuation"] for frame in tab.of(seen).frames)
        (part,) = [p for p in self._answer(world)["parts"] if "toolCallId" in p]
        assert part["output"] == "did asks.0.0"
        assert len(world.effects("asks.0.0")) == 1

    async def _continuation_cut(self, server: Server, world: World, question: str) -> str:
        """Allow the call and kill the server in the middle of the continuation; its id."""
        async with browser(server.url) as the_browser:
            asker = await the_browser.tab(f"/agents/{CAREFUL}", "R")
            other = await the_browser.tab(f"/agents/{CAREFUL}", "O")
            await asker.ask(question)
            await asker.stream()
            (part,) = [p for p in self._answer(world)["parts"] if "toolCallId" in p]
            await asker.decide(part["toolCallId"], approved=True)
            told = await other.until("use_chat_response", continuation=True)
            await other.until(lambda _: "asks.1.2" in other.of(told["id"]).text)
            await server.kill()
        return told["id"]

    def _answer(self, world: World) -> UIMessage:
        return stored_messages(world, CAREFUL)[-1]

    async def test_case_66_clients_know_that_the_turn_is_being_recovered(self, world: World):
        world.hold("hold-tool")
        await seen_before_the_crash(world, TALKER, IN_TOOL, "tool-input-available")
        server = await world.start()
        async with browser(server.url) as the_browser:
            tab = await the_browser.tab(f"/agents/{TALKER}", "R")
            await join(tab, "q1")
            told = {"type": "cf_agent_chat_recovering", "recovering": True, "id": "q1"}
            assert await tab.hear() == told
            await tab.nothing_more()
            world.release("hold-tool")
            await tab.expect("chat_recovering", recovering=False)
            await tab.until("use_chat_response", id="q1", done=True)
            assert tab.of("q1").text == read_plan(IN_TOOL).text
            assert kind_of(tab.heard[-2]) == "chat_messages"
            await tab.nothing_more()

    async def test_case_66_it_is_taken_back_from_whoever_has_asked_for_the_stream_again(
        self, world: World
    ):
        """The hooks do: offered when they connect, they join, and then they probe for a stream."""
        world.hold("hold-tool")
        world.hold("end")
        question = "tool|say:2,pure;say:3,hold:end,say:1"
        await seen_before_the_crash(world, TALKER, question, "tool-input-available")
        server = await world.start()
        async with browser(server.url) as the_browser:
            tab = await the_browser.tab(f"/agents/{TALKER}", "R")
            other = await the_browser.tab(f"/agents/{TALKER}", "O")
            for each in tab, other:
                await join(each, "q1")
                await each.expect("chat_recovering", recovering=True)
            assert kind_of(await tab.probe()) == "stream_resuming"
            world.release("hold-tool")
            await other.until("chat_recovering", recovering=False)
            await tab.nothing_more()
            await tab.ack("q1")
            await tab.until("use_chat_response", id="q1", replayComplete=True)
            await tab.expect("chat_recovering", recovering=False)
            world.release("end")
            await tab.until("use_chat_response", id="q1", done=True)
            assert _hints(tab)[-1] is False

    async def test_12_1_it_is_taken_back_from_whoever_comes_back_after_the_end(self, world: World):
        """Its line broke while it knew: nothing else tells stock clients that this is over."""
        world.hold("hold-tool")
        await seen_before_the_crash(world, TALKER, IN_TOOL, "tool-input-available")
        server = await world.start()
        async with browser(server.url) as the_browser:
            tab = await the_browser.tab(f"/agents/{TALKER}", "R")
            await join(tab, "q1")
            await tab.expect("chat_recovering", recovering=True)
            await tab.close()
            world.release("hold-tool")
            answer = read_plan(IN_TOOL).text
            await until(lambda: text_of(stored_messages(world, TALKER)[-1]) == answer, "the answer")
            back = await the_browser.tab(f"/agents/{TALKER}", "R")
            await back.before_now()
            assert _hints(back)[-1:] == [False]
        await server.kill()
        server = await world.start()
        async with browser(server.url) as the_browser:
            later = await the_browser.tab(f"/agents/{TALKER}", "R")
            assert _hints(later) == [False]


class TestAStall:
    async def test_case_66_is_told_once_although_it_happens_twice(self):
        gates = pause(), pause()
        cls = with_settings(Chat, chat_stream_stall_timeout=1.0)
        async with room([text("a"), gates[0]], [gates[1]], [text("b")], cls=cls) as r:
            tab, other = await r.tabs()
            await tab.ask("hi")
            for watcher in (tab, other):
                await watcher.until("use_chat_response", id="q1", done=True)
                assert _hints(watcher) == [True, False]
                assert watcher.of("q1").end["outcome"] == "completed"
            assert len(r.model.requests) == 3


class TestARestart:
    async def test_10_5_2_an_error_is_still_told(self, tmp_path: Path):
        cls = with_settings(Chat, expose_errors=True, max_retries=0)
        broken = [text("a"), error(RuntimeError("broke"))]
        async with room(broken, cls=cls, store=tmp_path / "x.db") as r:
            tab = await r.tab()
            await tab.ask("hi")
            live = await tab.stream()
        async with room(cls=cls, store=tmp_path / "x.db") as r:
            tab = await r.tab()
            offer = await tab.probe()
            assert (kind_of(offer), offer["id"]) == ("stream_resuming", "q1")
            await tab.ack("q1")
            again = await tab.stream()
            assert again.bodies == live.bodies
            assert (again.end["body"], again.end["error"]) == ("broke", True)

    async def test_10_4_4_a_completed_stream_is_still_served(self, tmp_path: Path):
        async with room("Hello", store=tmp_path / "x.db") as r:
            tab = await r.tab()
            await tab.ask("hi")
            live = await tab.stream()
        async with room(store=tmp_path / "x.db") as r:
            tab = await r.tab()
            assert (await tab.probe())["reason"] == "idle"
            await tab.ack("q1")
            again = await tab.stream()
            assert again.bodies == live.bodies
            assert again.end["replay"]

    async def test_7_11_a_call_that_waits_for_a_person_is_still_waiting(self, tmp_path: Path):
        step = [call("destroy", {"target": "x"})]
        async with room(step, store=tmp_path / "x.db") as r:
            tab = await r.tab()
            await tab.ask("go")
            await tab.stream()
        async with room("gone", store=tmp_path / "x.db") as r:
            tab, other = await r.tabs()
            assert part_of(tab.greeting[0]["messages"][-1])["state"] == "approval-requested"
            await tab.decide(approved=True)
            await other.until("use_chat_response", continuation=True, done=True)
            assert part_of((await r.messages())[-1])["output"] == "destroyed x"
