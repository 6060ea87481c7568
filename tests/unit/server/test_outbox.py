"""Frames waiting for a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from tests.unit.server.fakes import running
from thinkwell.server import outbox
from thinkwell.server.outbox import PAUSE, Outbox


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(outbox, "MAX_FRAMES", 4)
    monkeypatch.setattr(outbox, "MAX_CHARACTERS", 100)


async def test_a_large_first_batch_is_not_a_slow_client():
    box = Outbox()
    box.send(["x" * 1000])
    assert not box.overflowed.is_set()


async def test_a_large_batch_behind_a_few_frames_is_not_a_slow_client():
    """`stream_pending`, then a long transcript; a transcript, then a long replay."""
    box = Outbox()
    box.send(["a"] * 4)
    box.send(["x" * 50] * 10)
    assert not box.overflowed.is_set()


async def test_a_batch_below_the_limit_behind_waiting_frames_is_not_a_slow_client():
    """The transcript at the end of a turn, behind its last chunks."""
    box = Outbox()
    box.send(["a" * 40])
    box.send(["b" * 90])
    assert not box.overflowed.is_set()


async def test_what_comes_behind_a_large_batch_has_the_whole_limit():
    """A client that catches up with a long stream must not be cut off by the next word of it."""
    box = Outbox()
    box.send(["x" * 50] * 10)
    for _ in range(4):
        box.send(["b"])
    assert not box.overflowed.is_set()
    box.send(["b"])
    assert box.overflowed.is_set()


async def test_a_second_large_batch_while_the_first_waits_overflows():
    box = Outbox()
    box.send(["x"] * 10)
    box.send(["y"] * 10)
    assert box.overflowed.is_set()


async def test_a_large_batch_that_has_gone_out_excuses_nothing_any_more():
    box, taken = Outbox(), asyncio.Event()

    async def send(message: Any) -> None:
        if message["text"] == "b":
            taken.set()
            await asyncio.Event().wait()

    box.send(["x" * 50] * 10)
    box.send(["b"])
    async with running(box.write(send)):
        await taken.wait()
        for _ in range(5):
            box.send(["c"])
        assert not box.overflowed.is_set()
        box.send(["c"])
        assert box.overflowed.is_set()


async def test_too_many_frames_overflow():
    box = Outbox()
    for _ in range(5):
        box.send(["a"])
    assert not box.overflowed.is_set()
    box.send(["a"])
    assert box.overflowed.is_set()


async def test_too_many_characters_overflow():
    box = Outbox()
    box.send(["a" * 60])
    box.send(["b" * 60])
    assert not box.overflowed.is_set()
    box.send(["c" * 60])
    assert box.overflowed.is_set()


async def test_what_waits_goes_out_before_the_close_and_nothing_after_it():
    box, sent = Outbox(), list[dict[str, Any]]()

    async def send(message: Any) -> None:
        sent.append(message)

    box.send(["a", "b"])
    box.close(4001, "enough")
    box.send(["late"])
    await box.write(send)
    assert [m.get("text", m.get("code")) for m in sent] == ["a", "b", 4001]


async def test_a_server_that_can_gets_several_texts_at_once():
    box, sent = Outbox(), list[dict[str, Any]]()

    async def send(message: Any) -> None:
        sent.append(message)

    box.send(["a", "b", "c"])
    box.close(1000, "")
    await box.write(send, joined=True)
    assert sent[0] == {"type": "websocket.send", "texts": ["a", "b", "c"]}


async def test_only_what_was_sent_together_leaves_together():
    """DESIGN §8.14: chunks share a write; the transcript and the end have one each."""
    box, sent = Outbox(), list[dict[str, Any]]()

    async def send(message: Any) -> None:
        sent.append(message)

    box.send(["chunk", "chunk"])
    box.send(["transcript"])
    box.send(["end"])
    box.close(1000, "")
    await box.write(send, joined=True)
    assert [m.get("texts", m.get("text")) for m in sent[:-1]] == [
        ["chunk", "chunk"],
        "transcript",
        "end",
    ]


async def test_what_is_sent_apart_waits_for_the_client():
    box, sent, has_read = Outbox(), list[str](), asyncio.Event()

    async def send(message: Any) -> None:
        sent.append(message.get("text", message["type"]))
        if message["type"] == PAUSE:
            await has_read.wait()

    box.send(["chunk"])
    box.send(["transcript"], apart=True)
    box.send(["end"])
    box.close(1000, "")
    async with running(box.write(send, pauses=True)) as writing:
        while PAUSE not in sent:
            await asyncio.sleep(0)
        assert sent == ["chunk", PAUSE]
        has_read.set()
        await writing
    assert sent == ["chunk", PAUSE, "transcript", "end", "websocket.close"]


async def test_a_closed_outbox_takes_nothing():
    box = Outbox()
    box.discard()
    box.send(["a"] * 10)
    assert not box.overflowed.is_set()


class Socket:
    """A server's side that takes texts without waiting, while it is `free`."""

    def __init__(self) -> None:
        self.free = True
        self.got: list[str] = []
        self.at_once = 0

    def write_now(self, texts: Sequence[str]) -> bool:
        if self.free:
            self.got += texts
            self.at_once += 1
        return self.free

    async def send(self, message: Any) -> None:
        self.got += message.get("texts", [message.get("text", message["type"])])


class TestWithoutWaiting:
    """Waking the writer costs more than a delta, so it is woken only for what has to wait."""

    async def test_what_needs_no_waiting_goes_out_at_once(self):
        box, socket = Outbox(), Socket()
        async with running(box.write(socket.send, joined=True, write_now=socket.write_now)):
            await asyncio.sleep(0)
            box.send(["a", "b"])
            box.send(["c"])
            assert (socket.got, socket.at_once) == (["a", "b", "c"], 2)

    async def test_nothing_overtakes_what_waits(self):
        box, socket = Outbox(), Socket()
        async with running(box.write(socket.send, joined=True, write_now=socket.write_now)):
            await asyncio.sleep(0)
            socket.free = False
            box.send(["a"])
            socket.free = True
            box.send(["b"])
            box.send(["c"], apart=True)
            box.send(["d"])
            assert socket.got == []
            box.close(1000, "")
            while "websocket.close" not in socket.got:
                await asyncio.sleep(0.01)
        assert socket.got == ["a", "b", "c", "d", "websocket.close"]
        assert socket.at_once == 0

    async def test_a_client_that_takes_nothing_more_is_still_cut_off(self):
        box, socket = Outbox(), Socket()
        async with running(box.write(socket.send, joined=True, write_now=socket.write_now)):
            await asyncio.sleep(0)
            socket.free = False
            for _ in range(6):
                box.send(["x"])
            assert box.overflowed.is_set()
