"""Frames waiting for a socket."""

from __future__ import annotations

from typing import Any

import pytest

from thinkwell.server import outbox
from thinkwell.server.outbox import Outbox


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(outbox, "MAX_FRAMES", 4)
    monkeypatch.setattr(outbox, "MAX_CHARACTERS", 100)


async def test_a_large_first_batch_is_not_a_slow_client():
    box = Outbox()
    box.send(["x" * 1000])
    assert not box.overflowed.is_set()


async def test_too_many_frames_overflow():
    box = Outbox()
    box.send(["a"])
    box.send(["b"] * 4)
    assert box.overflowed.is_set()


async def test_too_many_characters_overflow():
    box = Outbox()
    box.send(["a"])
    box.send(["b" * 100])
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


async def test_a_closed_outbox_takes_nothing():
    box = Outbox()
    box.discard()
    box.send(["a"] * 10)
    assert not box.overflowed.is_set()
