"""What connections are told: streams, ends and the resume handshake (spec/01 §6.14, §10, §18)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from thinkwell.core import json
from thinkwell.core.errors import StoreError
from thinkwell.journal.tail import Chunks, Ended, EndedTurn, Started
from thinkwell.journal.turn_log import Owner, TurnLog
from thinkwell.journal.turns import TurnRecord
from thinkwell.live.live import Live
from thinkwell.live.watchers import Watcher, Watchers
from thinkwell.turn.handle import TurnHandle
from thinkwell.turn.transcript import Transcript
from thinkwell.wire.encode import Frame

CHUNKS = [json.dumps({"type": "text-delta", "id": "t", "delta": str(n)}) for n in range(5)]


class Tab:
    """A connection and the frames it got."""

    def __init__(self, name: str) -> None:
        self.frames: list[dict[str, Any]] = []
        self.watcher = Watcher(name, self)

    def send(self, frames: Sequence[Frame], *, apart: bool = False) -> None:
        self.frames.extend(json.loads(str(frame)) for frame in frames)

    def close(self, code: int, reason: str) -> None:
        raise AssertionError(f"nobody asked for a close: {code} {reason}")

    def take(self) -> list[dict[str, Any]]:
        """What came since the last look."""
        taken, self.frames = self.frames, []
        return taken

    def kinds(self) -> list[str]:
        return [frame["type"].removeprefix("cf_agent_") for frame in self.take()]


class Room:
    """One agent's watchers, its stored messages and its ended turns."""

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.ended: dict[str, EndedTurn] = {}
        self.pause: asyncio.Event | None = None
        self.failure: StoreError | None = None
        self.live = Live(Watchers(), self._transcript, self._find_ended)
        self.handles: dict[str, TurnHandle] = {}

    async def _transcript(self, *, keep: bool = False) -> Transcript:
        if self.pause is not None:
            await self.pause.wait()
        if self.failure is not None:
            raise self.failure
        return Transcript([m.encode() for m in self.messages], "m" if self.messages else None)

    async def _find_ended(self, request_id: str) -> EndedTurn | None:
        return self.ended.get(request_id)

    async def tab(self, name: str) -> Tab:
        tab = Tab(name)
        await self.live.connect(tab.watcher)
        return tab

    def accept(self, request_id: str = "q1", origin: str | None = None) -> TurnRecord:
        handle = self.handles[request_id] = TurnHandle(record(request_id))
        self.live.accepted(handle, origin)
        return handle.record

    def start(self, made: TurnRecord, said: int = 0) -> TurnLog:
        log = TurnLog(Owner("a/x", 1), made.request_id)
        self.handles[made.request_id].begin(log)
        self.say(log, said)
        return log

    def say(self, log: TurnLog, count: int) -> None:
        for body in CHUNKS[len(log.bodies) : len(log.bodies) + count]:
            log.append(body)
            log.advance(len(log.bodies))

    async def end(self, made: TurnRecord, error: str | None = None, status: Any = None) -> None:
        done = msgspec.structs.replace(
            made,
            status=status or ("error" if error else "completed"),
            client_error=error,
        )
        handle = self.handles[made.request_id]
        bodies = handle.chunks()
        self.ended[made.request_id] = (Started(done), Chunks(0, bodies), Ended(done, error))
        await handle.end(Ended(done, error))


def forget(*tabs: Tab) -> None:
    """Drop what tabs were told so far."""
    for tab in tabs:
        tab.take()


def record(request_id: str) -> TurnRecord:
    return TurnRecord(
        agent_id="a/x",
        request_id=request_id,
        trigger="ws-chat",
        status="accepted",
        generation=0,
        message_ids=("u1",),
    )


@pytest.fixture
def room() -> Room:
    return Room()


class TestConnecting:
    async def test_case_18_an_idle_agent_shows_its_transcript(self, room: Room):
        (frame,) = (await room.tab("a")).take()
        assert frame == {"type": "cf_agent_chat_messages", "messages": [], "connect": True}

    async def test_case_38_a_stream_is_offered_and_nothing_else(self, room: Room):
        log = room.start(room.accept(), said=2)
        tab = await room.tab("late")
        assert tab.take() == [{"type": "cf_agent_stream_resuming", "id": "q1"}]
        room.say(log, 1)
        assert tab.take() == []

    async def test_case_43_a_turn_that_waits_parks_the_connection(self, room: Room):
        made = room.accept()
        tab = await room.tab("late")
        assert tab.kinds() == ["stream_pending", "chat_messages"]
        room.live.resume_request(tab.watcher, "p")
        assert tab.take() == [{"type": "cf_agent_stream_pending", "id": "q1", "probeId": "p"}]
        log = room.start(made)
        assert tab.take() == []  # nothing to join before its first chunk
        room.say(log, 1)
        assert tab.take() == [{"type": "cf_agent_stream_resuming", "id": "q1"}]

    async def test_case_44_a_parked_connection_is_released_when_nothing_was_said(self, room: Room):
        made = room.accept()
        tab = await room.tab("late")
        tab.take()
        await room.end(made, status="aborted")
        frames = [f for f in tab.take() if f["type"] != "cf_agent_chat_messages"]
        assert frames == [{"type": "cf_agent_stream_resume_none"}]

    async def test_case_42_an_ended_stream_is_not_offered(self, room: Room):
        made = room.accept()
        room.start(made, said=2)
        await room.end(made)
        tab = await room.tab("late")
        assert tab.kinds() == ["chat_messages"]
        room.live.resume_request(tab.watcher, "p")
        assert tab.take() == [
            {"type": "cf_agent_stream_resume_none", "reason": "idle", "probeId": "p"}
        ]

    async def test_1_3_1_a_new_connection_with_a_known_id_replaces_the_old(self, room: Room):
        old, new = await room.tab("same"), await room.tab("same")
        room.live.watchers.remove(old.watcher)
        forget(old, new)
        room.start(room.accept(), said=1)
        assert (len(old.take()), len(new.take())) == (0, 1)


class TestStreaming:
    async def test_case_19_everybody_gets_numbered_chunks_and_one_end(self, room: Room):
        asker, other = await room.tab("asker"), await room.tab("other")
        forget(asker, other)
        made = room.accept(origin="asker")
        room.start(made, said=3)
        await room.end(made)
        for tab in (asker, other):
            *chunks, transcript, end = tab.take()
            assert [frame["seq"] for frame in chunks] == [0, 1, 2]
            assert [frame["body"] for frame in chunks] == CHUNKS[:3]
            assert transcript["type"] == "cf_agent_chat_messages"
            assert (end["done"], end["body"], end["outcome"]) == (True, "", "completed")
            assert end["messageIds"] == ["u1"]

    async def test_case_22_a_stopped_turn_ends_without_an_error(self, room: Room):
        tab = await room.tab("a")
        made = room.accept(origin="a")
        room.start(made, said=1)
        await room.end(made, status="aborted")
        end = tab.take()[-1]
        assert (end["outcome"], "error" in end) == ("aborted", False)

    async def test_case_23_24_an_error_is_told_to_everybody_even_before_any_chunk(self, room: Room):
        asker, other = await room.tab("asker"), await room.tab("other")
        made = room.accept(origin="asker")
        room.start(made)
        await room.end(made, error="boom")
        for tab in (asker, other):
            end = tab.take()[-1]
            assert (end["done"], end["error"], end["body"]) == (True, True, "boom")

    async def test_6_14_an_end_without_chunks_is_told_to_the_asker_only(self, room: Room):
        asker, other = await room.tab("asker"), await room.tab("other")
        forget(asker, other)
        made = room.accept(origin="asker")
        room.start(made)
        await room.end(made)
        assert "use_chat_response" in asker.kinds()
        assert "use_chat_response" not in other.kinds()

    async def test_6_14_one_that_connects_while_the_turn_ends_hears_no_end(self, room: Room):
        first = await room.tab("first")
        made = room.accept(origin="first")
        room.start(made, said=2)
        room.pause = pause = asyncio.Event()
        ending = asyncio.ensure_future(room.end(made))
        await asyncio.sleep(0)
        room.pause = None
        late = await room.tab("late")
        pause.set()
        await ending
        assert "use_chat_response" in first.kinds()
        assert "use_chat_response" not in late.kinds()

    async def test_a_transcript_that_cannot_be_read_does_not_keep_the_end_from_clients(
        self, room: Room
    ):
        tab = await room.tab("a")
        made = room.accept(origin="a")
        room.start(made, said=1)
        room.failure = StoreError("gone")
        await room.end(made)
        assert tab.take()[-1]["done"] is True

    async def test_after_a_crash_connected_tabs_are_offered_what_they_missed(self, room: Room):
        tab = await room.tab("a")
        tab.take()
        log = TurnLog(Owner("a/x", 1), "q1", CHUNKS[:2])
        room.handles[room.accept().request_id].begin(log)
        assert tab.take() == [{"type": "cf_agent_stream_resuming", "id": "q1"}]


class TestResuming:
    async def test_case_37_an_idle_agent_has_nothing_to_resume(self, room: Room):
        tab = await room.tab("a")
        tab.take()
        room.live.resume_request(tab.watcher, "p")
        assert tab.take() == [
            {"type": "cf_agent_stream_resume_none", "reason": "idle", "probeId": "p"}
        ]

    async def test_case_38_replay_then_live_without_gap_or_double(self, room: Room):
        early = await room.tab("early")
        early.take()
        log = room.start(room.accept(), said=3)
        late = await room.tab("late")
        late.take()
        room.live.resume_request(late.watcher, "p")
        assert late.take() == [{"type": "cf_agent_stream_resuming", "id": "q1", "probeId": "p"}]
        await room.live.resume(late.watcher, "q1")
        room.say(log, 2)
        (transcript, *replayed), live = late.take(), early.take()
        assert (transcript["type"], transcript["connect"]) == ("cf_agent_chat_messages", True)
        marks = [(f.get("replay", False), f.get("replayComplete", False)) for f in replayed]
        assert marks == [*[(True, False)] * 3, (True, True), *[(False, False)] * 2]
        chunks = [f for f in replayed if f["body"]]
        assert [(f["seq"], f["body"]) for f in chunks] == [(f["seq"], f["body"]) for f in live]

    async def test_case_39_a_wrong_id_is_ignored(self, room: Room):
        room.start(room.accept(), said=1)
        tab = await room.tab("a")
        tab.take()
        await room.live.resume(tab.watcher, "other")
        assert tab.take() == []

    async def test_case_40_each_ack_replays_the_whole_buffer(self, room: Room):
        room.start(room.accept(), said=2)
        tab = await room.tab("a")
        tab.take()
        for _ in range(2):
            await room.live.resume(tab.watcher, "q1")
            assert [f["seq"] for f in tab.take() if "seq" in f] == [0, 1]

    async def test_case_41_an_offer_taken_after_the_end_is_replayed_with_its_end(self, room: Room):
        made = room.accept()
        room.start(made, said=2)
        tab = await room.tab("a")
        tab.take()
        await room.end(made)
        assert "use_chat_response" not in tab.kinds()
        await room.live.resume(tab.watcher, "q1")
        *chunks, end = tab.take()
        assert [(f["seq"], f["replay"]) for f in chunks] == [(0, True), (1, True)]
        assert (end["done"], end["replay"]) == (True, True)

    async def test_case_41_a_stream_that_is_no_longer_kept_just_ends(self, room: Room):
        tab = await room.tab("a")
        tab.take()
        await room.live.resume(tab.watcher, "forgotten")
        (end,) = tab.take()
        assert (end["id"], end["done"], end["replay"]) == ("forgotten", True, True)

    async def test_10_7_a_tab_that_never_took_an_offer_gets_the_next_stream(self, room: Room):
        first = room.accept("q1")
        room.start(first, said=1)
        tab = await room.tab("a")
        await room.end(first)
        tab.take()
        room.start(room.accept("q2"), said=1)
        assert [f["id"] for f in tab.take()] == ["q2"]


class TestTerminalRecord:
    async def test_case_46_an_error_is_offered_to_every_tab_until_the_next_turn(self, room: Room):
        made = room.accept()
        room.start(made, said=3)
        await room.end(made, error="boom")
        for name in ("a", "b"):
            tab = await room.tab(name)
            assert tab.kinds() == ["chat_messages"]
            room.live.resume_request(tab.watcher, "p")
            assert tab.take() == [{"type": "cf_agent_stream_resuming", "id": "q1", "probeId": "p"}]
            await room.live.resume(tab.watcher, "q1")
            *chunks, end = tab.take()
            assert [f["replay"] for f in chunks] == [True] * 3
            assert (end["body"], end["done"], end["error"]) == ("boom", True, True)
            assert "replay" not in end
        second = room.accept("q2")
        await room.end(second)
        tab = await room.tab("c")
        tab.take()
        room.live.resume_request(tab.watcher, "p")
        assert tab.take()[0]["reason"] == "idle"

    async def test_case_47_an_error_before_any_chunk_is_replayed_alone(self, room: Room):
        made = room.accept()
        room.start(made)
        await room.end(made, error="boom")
        tab = await room.tab("a")
        tab.take()
        await room.live.resume(tab.watcher, "q1")
        (end,) = tab.take()
        assert (end["body"], end["error"]) == ("boom", True)


class TestClearing:
    async def test_a_clear_reaches_the_others_and_forgets_the_error(self, room: Room):
        made = room.accept()
        room.start(made)
        await room.end(made, error="boom")
        asker, other = await room.tab("asker"), await room.tab("other")
        forget(asker, other)
        room.live.cleared(but="asker")
        assert (asker.kinds(), other.kinds()) == (["chat_messages"], ["chat_clear"])
        room.live.resume_request(other.watcher, None)
        assert other.kinds() == ["stream_resume_none"]
