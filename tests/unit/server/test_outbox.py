"""Frames waiting for a socket."""

from __future__ import annotations

import pytest

from thinkwell.server import outbox
from thinkwell.server.outbox import Outbox


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(outbox, "MAX_FRAMES", 4)
    monkeypatch.setattr(outbox, "MAX_CHARACTERS", 100)


async def test_a_large_first_batch_is_not_a_slow_client():
    box = Outbox()
    box.push(["x" * 1000])
    assert not box.overflowed.is_set()


async def test_too_many_frames_overflow():
    box = Outbox()
    box.push(["a"])
    box.push(["b"] * 4)
    assert box.overflowed.is_set()


async def test_too_many_characters_overflow():
    box = Outbox()
    box.push(["a"])
    box.push(["b" * 100])
    assert box.overflowed.is_set()


async def test_a_closed_outbox_takes_nothing():
    box = Outbox()
    box.close()
    box.push(["a"] * 10)
    assert not box.overflowed.is_set()
