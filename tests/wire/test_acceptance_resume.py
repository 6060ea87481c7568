"""Joining a stream: spec/01 cases 37-47, 50 and every branch of §10.2 and §10.4.

`R` is the tab that asks, `O` one that comes later.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.wire.client import RESPONSE, Frame, Stream, Tab, kind_of, kinds
from tests.wire.room import Chat, Room, room, with_settings
from thinkwell.testing import Gate, error, pause, text

REPLAYED_END = {"body": "", "done": True, "replay": True}


async def ask_up_to(r: Room, gate: Gate, asker: Tab, request: str = "q1") -> Stream:
    """Ask, and read what is said before the gate: one part of text."""
    await asker.ask("hi", request)
    await gate.reached()
    return await asker.part(request)


async def replayed(tab: Tab, request: str = "q1") -> list[Frame]:
    """Take an offer and read on to the end of the replay: chunks, and the frame that ends it."""
    first = len(tab.heard)
    await tab.ack(request)
    await tab.until(lambda f: f.get("replayComplete") or (f.get("done") and f["id"] == request))
    return [frame for frame in tab.heard[first:] if kind_of(frame) == RESPONSE]


def parts_of(frame: Frame, *keys: str) -> dict[str, Any]:
    return {key: frame[key] for key in keys if key in frame}


class TestIdle:
    async def test_case_37_an_idle_agent_says_so_in_one_frame(self):
        async with room() as r:
            tab = await r.tab()
            assert await tab.probe("p") == {
                "type": "cf_agent_stream_resume_none",
                "reason": "idle",
                "probeId": "p",
            }
            await tab.nothing_more()

    async def test_10_2_a_request_without_a_probe_id_is_answered_without_one(self):
        async with room() as r:
            tab = await r.tab()
            await tab.send(type="cf_agent_stream_resume_request")
            assert await tab.hear() == {"type": "cf_agent_stream_resume_none", "reason": "idle"}

    async def test_case_42_a_completed_stream_is_never_offered(self):
        async with room("Hello") as r:
            asker = await r.tab()
            await asker.ask("hi")
            await asker.stream()
            other = await r.tab()
            assert kinds(other.greeting) == ["chat_messages", "identity", "mcp_servers"]
            assert (await other.probe())["reason"] == "idle"


class TestAStreamThatRuns:
    async def test_case_38_is_offered_replayed_and_followed_without_gap_or_double(self):
        gate = pause()
        async with room([text("w1 ", "w2 "), gate, text("w3")]) as r:
            asker = await r.tab("R")
            live = await ask_up_to(r, gate, asker)
            other = await r.tab("O")
            assert kinds(other.greeting) == ["stream_resuming", "identity", "mcp_servers"]
            assert other.greeting[0] == {"type": "cf_agent_stream_resuming", "id": "q1"}
            assert await other.probe("p") == {
                "type": "cf_agent_stream_resuming",
                "id": "q1",
                "probeId": "p",
            }
            await other.nothing_more()
            *again, complete = await replayed(other)
            assert [f["body"] for f in again] == live.bodies
            assert [f["seq"] for f in again] == list(range(len(live.bodies)))
            assert all(f["replay"] and not f["done"] for f in again)
            assert complete == {
                "type": "cf_agent_use_chat_response",
                "id": "q1",
                "body": "",
                "done": False,
                "replay": True,
                "replayComplete": True,
            }
            await other.nothing_more()
            gate.open()
            rest = await other.stream()
            assert all("replay" not in f for f in rest.frames)
            whole = (await asker.stream()).bodies
            assert other.of("q1").bodies == live.bodies + whole
            assert rest.bodies == whole

    async def test_10_4_6_no_live_chunk_comes_before_the_ack(self):
        gate, later = pause(), pause()
        async with room([text("w1 "), gate, text("w2 "), later, text("w3")]) as r:
            asker = await r.tab("R")
            await ask_up_to(r, gate, asker)
            other = await r.tab("O")
            gate.open()
            await later.reached()
            assert (await asker.part()).text == "w2 "
            await other.nothing_more()
            assert Stream((await replayed(other))[:-1]).text == "w1 w2 "
            later.open()
            assert (await other.stream()).text == "w3"

    @pytest.mark.parametrize("wrong", ["nope", ""])
    async def test_case_39_another_id_is_ignored(self, wrong: str):
        gate = pause()
        async with room([text("w1 "), gate]) as r:
            asker = await r.tab("R")
            await ask_up_to(r, gate, asker)
            other = await r.tab("O")
            await other.ack(wrong)
            await other.nothing_more()
            gate.open()
            await asker.stream()
            await other.expect("chat_messages")
            await other.nothing_more()

    async def test_case_40_each_ack_replays_the_whole_stream(self):
        gate = pause()
        async with room([text("w1 "), gate, text("w2")]) as r:
            asker = await r.tab("R")
            live = await ask_up_to(r, gate, asker)
            other = await r.tab("O")
            for _ in range(2):
                assert [f["body"] for f in (await replayed(other))[:-1]] == live.bodies
            gate.open()
            assert (await other.stream()).text == "w2"

    async def test_case_40_the_asking_tab_may_replay_as_well(self):
        gate = pause()
        async with room([text("w1 "), gate]) as r:
            asker = await r.tab("R")
            live = await ask_up_to(r, gate, asker)
            assert (await asker.probe())["id"] == "q1"
            assert [f["body"] for f in (await replayed(asker))[:-1]] == live.bodies
            gate.open()
            await asker.stream()

    async def test_case_50_a_tab_that_leaves_in_the_middle_starts_again_from_chunk_zero(self):
        gate = pause()
        async with room([text(*["w "] * 200), gate]) as r:
            asker = await r.tab("R")
            live = await ask_up_to(r, gate, asker)
            other = await r.tab("O")
            await other.ack("q1")
            await other.until("use_chat_response", id="q1", seq=0, replay=True)
            await other.close()
            again = await r.tab("O")
            frames = (await replayed(again))[:-1]
            assert [f["seq"] for f in frames] == list(range(len(live.bodies)))
            gate.open()
            assert (await asker.stream()).end["outcome"] == "completed"

    async def test_2_4_i_whoever_takes_the_offer_sees_first_and_once_what_came_before(self):
        """§2.4 has no transcript at all here; but a client puts an answer behind the last message
        it knows, and one that comes back may have missed some.
        """
        gate = pause()
        async with room([text("w1 "), gate]) as r:
            asker = await r.tab("R")
            await ask_up_to(r, gate, asker)
            other = await r.tab("O")
            assert "chat_messages" not in kinds(other.greeting)
            await other.ack("q1")
            await other.expect("chat_messages", connect=True, messages=await r.messages())
            await other.expect("use_chat_response", seq=0, replay=True)
            await other.until("use_chat_response", replayComplete=True)
            await other.ack("q1")
            await other.expect("use_chat_response", seq=0, replay=True)
            await other.until("use_chat_response", replayComplete=True)
            gate.open()
            await other.stream()

    async def test_2_4_i_whoever_does_not_take_it_gets_the_transcript_at_the_end(self):
        gate = pause()
        async with room([text("w1 "), gate]) as r:
            asker = await r.tab("R")
            await ask_up_to(r, gate, asker)
            other = await r.tab("O")
            gate.open()
            await asker.stream()
            await other.expect("chat_messages", messages=await r.messages())


class TestAStreamThatEnded:
    async def test_case_41_an_offer_not_taken_gets_no_end_and_is_replayed_with_one(self):
        """Streams are kept for days, not for ten minutes, so a late ACK is served for longer."""
        gate = pause()
        async with room([text("w1 "), gate]) as r:
            asker = await r.tab("R")
            await ask_up_to(r, gate, asker)
            other = await r.tab("O")
            gate.open()
            await asker.stream()
            await other.expect("chat_messages")
            await other.nothing_more()
            *again, end = await replayed(other)
            assert [f["body"] for f in again] == asker.of("q1").bodies
            assert all(f["replay"] for f in again)
            assert parts_of(end, "body", "done", "replay") == REPLAYED_END
            await other.nothing_more()

    async def test_10_4_4_the_end_of_a_replay_names_messages_and_outcome(self):
        async with room("Hello") as r:
            asker = await r.tab("R")
            await asker.ask("hi")
            await asker.stream()
            end = (await replayed(asker))[-1]
            assert (end["messageIds"], end["outcome"]) == (["u-q1"], "completed")

    async def test_10_4_5_an_unknown_stream_just_ends(self):
        async with room() as r:
            tab = await r.tab()
            await tab.ack("never-was")
            assert await tab.hear() == {
                "type": "cf_agent_use_chat_response",
                "id": "never-was",
                **REPLAYED_END,
            }
            await tab.nothing_more()

    async def test_10_4_2_an_old_stream_gets_its_end_although_another_runs(self):
        """Better than ignoring it: whoever took an offer just too late would wait for ever."""
        gate = pause()
        async with room("one", [text("two"), gate]) as r:
            asker = await r.tab("R")
            await asker.ask("hi", "q1")
            await asker.stream("q1")
            await ask_up_to(r, gate, asker, "q2")
            await asker.ack("q1")
            replayed = await asker.stream("q1")
            assert (replayed.text, replayed.end["replay"]) == ("one", True)
            gate.open()
            await asker.stream("q2")

    async def test_10_4_2_whoever_takes_it_too_late_reads_what_runs_from_its_start_again(self):
        """Clients observe one stream at a time: the replay has taken the place of the other."""
        first, second = pause(), pause()
        async with room([text("one"), first], [text("two"), second]) as r:
            asker = await r.tab("R")
            await ask_up_to(r, first, asker)
            other = await r.tab("O")
            first.open()
            await asker.stream()
            await ask_up_to(r, second, asker, "q2")
            await other.until("use_chat_response", id="q2")
            await other.ack("q1")
            await other.until("stream_resuming", id="q2")
            before = other.of("q2").bodies
            await other.ack("q2")
            second.open()
            again = await other.stream("q2")
            assert (again.bodies[: len(before)], again.text) == (before, "two")

    async def test_10_7_a_tab_that_never_took_its_offer_gets_the_next_stream(self):
        gate = pause()
        async with room([text("one"), gate], "two") as r:
            asker = await r.tab("R")
            await ask_up_to(r, gate, asker)
            other = await r.tab("O")
            gate.open()
            await asker.stream()
            await asker.ask("again", "q2")
            assert (await other.stream("q2")).text == "two"
            assert other.of("q1").frames == []


class TestATurnThatWaits:
    async def test_case_43_parks_the_tab_and_offers_the_stream_when_it_starts(self):
        started, go = asyncio.Event(), asyncio.Event()

        class Slow(Chat, name="chat"):
            async def before_turn(self, ctx: Any) -> None:
                started.set()
                await go.wait()

        async with room("Hello", cls=Slow) as r:
            asker = await r.tab("R")
            await asker.ask("hi")
            await started.wait()
            other = await r.tab("O")
            pending, snapshot = other.greeting[:2]
            assert pending == {"type": "cf_agent_stream_pending", "id": "q1"}
            assert [m["id"] for m in snapshot["messages"]] == ["u-q1"]
            assert snapshot["connect"] is True
            assert await other.probe("p") == {**pending, "probeId": "p"}
            go.set()
            offer = await other.expect("stream_resuming")
            assert offer == {"type": "cf_agent_stream_resuming", "id": "q1"}
            await other.ack("q1")
            await other.until("use_chat_response", id="q1", done=True)
            assert other.of("q1").text == "Hello"
            assert other.of("q1").chunk_kinds.count("start") == 1
            assert "stream_resume_none" not in kinds(other.heard)

    async def test_case_44_the_tab_is_released_when_the_turn_says_nothing(self):
        started, go = asyncio.Event(), asyncio.Event()

        class Refusing(Chat, name="chat"):
            async def before_turn(self, ctx: Any) -> None:
                started.set()
                await go.wait()
                raise RuntimeError("no")

        async with room(cls=Refusing) as r:
            asker = await r.tab("R")
            await asker.ask("hi")
            await started.wait()
            other = await r.tab("O")
            go.set()
            await other.until("stream_resume_none")
            assert other.heard[-1] == {"type": "cf_agent_stream_resume_none"}
            assert "stream_resuming" not in kinds(other.heard)

    async def test_case_45_a_skipped_turn_releases_nobody(self):
        started, go = asyncio.Event(), asyncio.Event()

        class Latest(Chat, name="chat"):
            message_concurrency = "latest"

            async def before_turn(self, ctx: Any) -> None:
                started.set()
                await go.wait()

        async with room("one", "three", cls=Latest) as r:
            asker = await r.tab("R")
            await asker.ask("first", "q1")
            await started.wait()
            await asker.ask("second", "q2")
            await asker.before_now()
            other = await r.tab("O")
            assert other.greeting[0] == {"type": "cf_agent_stream_pending", "id": "q2"}
            await asker.ask("third", "q3")
            assert (await asker.stream("q2")).end["outcome"] == "skipped"
            skipped = await other.before_now()
            assert "stream_resume_none" not in kinds(skipped)
            go.set()
            assert (await other.until("stream_resuming"))["id"] == "q1"
            await other.ack("q1")
            await other.until("use_chat_response", id="q3", done=True)
            assert [other.of("q1").text, other.of("q3").text] == ["one", "three"]
            assert "stream_resume_none" not in kinds(other.heard)

    @pytest.mark.parametrize("policy", ["latest", "merge"])
    async def test_whoever_is_offered_a_stream_hears_that_its_own_question_was_skipped(
        self, policy: str
    ):
        """6.14: that end belongs to another turn than the offer."""
        gate = Gate()
        cls = with_settings(Chat, message_concurrency=policy)
        async with room([text("a"), gate, text("b")], "two", cls=cls) as r:
            asker, waiting, other = await r.tab("A"), await r.tab("R"), await r.tab("O")
            await asker.ask("first", "q1")
            await gate.reached()
            await waiting.ask("second", "q2")
            await waiting.ask_to_resume("p")
            await waiting.until("stream_resuming")
            await other.ask("third", "q3")
            assert (await waiting.until("use_chat_response", id="q2"))["outcome"] == "skipped"
            await waiting.ack("q1")
            gate.open()
            await waiting.until("use_chat_response", id="q3", done=True)


class TestAnError:
    BROKEN = with_settings(Chat, expose_errors=True, max_retries=0)

    async def test_case_46_every_tab_learns_it_until_the_next_question(self):
        broken = [text("a", "b", "c"), error(RuntimeError("the model broke"))]
        async with room(broken, "fine", cls=self.BROKEN) as r:
            asker = await r.tab("R")
            await asker.ask("hi")
            live = await asker.stream()
            for _ in range(2):
                other = await r.tab()
                assert "stream_resuming" not in kinds(other.greeting)
                assert await other.probe("p") == {
                    "type": "cf_agent_stream_resuming",
                    "id": "q1",
                    "probeId": "p",
                }
                *again, end = await replayed(other)
                assert [f["body"] for f in again] == live.bodies
                assert all(f["replay"] for f in again)
                assert (end["body"], end["error"]) == ("the model broke", True)
                assert "replay" not in end
                assert "replayComplete" not in end
                await other.nothing_more()
            await asker.ask("again", "q2")
            await asker.stream("q2")
            assert (await asker.probe())["reason"] == "idle"

    async def test_10_2_3_an_error_does_not_keep_live_frames_from_a_tab(self):
        """It is no running stream: whoever is offered it gets the next turn without an ACK."""
        broken = [text("a"), error(RuntimeError("the model broke"))]
        async with room(broken, "fine", cls=self.BROKEN) as r:
            asker, other = await r.tabs()
            await asker.ask("hi")
            await asker.stream()
            await other.stream()
            assert kind_of(await other.probe()) == "stream_resuming"
            await asker.ask("again", "q2")
            assert (await other.stream("q2")).text == "fine"

    async def test_case_47_an_error_before_any_chunk_is_told_alone(self):
        class Refusing(Chat, name="chat"):
            expose_errors = True

            def before_turn(self, ctx: Any) -> None:
                raise RuntimeError("no")

        async with room(cls=Refusing) as r:
            asker = await r.tab("R")
            await asker.ask("hi")
            await asker.stream()
            other = await r.tab("O")
            assert (await other.probe())["id"] == "q1"
            (end,) = await replayed(other)
            assert (end["body"], end["error"], end["done"]) == ("no", True, True)
            assert "replay" not in end

    async def test_12_3_a_clear_forgets_the_error(self):
        broken = [error(RuntimeError("no"))]
        async with room(broken, cls=self.BROKEN) as r:
            asker = await r.tab("R")
            await asker.ask("hi")
            await asker.stream()
            await asker.clear()
            await asker.expect("chat_messages", messages=[])
            assert (await asker.probe())["reason"] == "idle"
