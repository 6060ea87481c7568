"""A tab that connects while something ends: it must not stay behind (spec/01 §2.4, §10.4.6).

A long transcript is read in a thread, so anything may happen between the read and the greeting.
Here the read is held up on purpose, after it has been made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.wire.client import Tab
from tests.wire.room import Room, room
from thinkwell.session.kept_path import KeptPath
from thinkwell.testing import pause, text


class HeldRead:
    """The next read of the path is made, and its result kept back until `go`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made, self.go = asyncio.Event(), asyncio.Event()
        self._read: Callable[..., Awaitable[Any]] = KeptPath.refresh
        held = self

        async def refresh(kept: KeptPath) -> None:
            await held.read(kept)

        monkeypatch.setattr(KeptPath, "refresh", refresh)

    async def read(self, *args: Any, **options: Any) -> Any:
        first = not self.made.is_set()
        result = await self._read(*args, **options)
        if first:
            self.made.set()
            await self.go.wait()
        return result


async def told_at_last(tab: Tab) -> list[Any]:
    """What the tab shows when it has read everything."""
    await tab.until("mcp_servers")
    await tab.before_now()
    shown: list[Any] = []
    for frame in tab.heard:
        shown = frame.get("messages", shown)
        shown = [] if frame["type"] == "cf_agent_chat_clear" else shown
    return shown


async def connect_while(r: Room, monkeypatch: pytest.MonkeyPatch, act: Any) -> Tab:
    """A tab whose transcript was read before `act`, and is greeted after it."""
    held = HeldRead(monkeypatch)
    late = await r.open("O")
    async with asyncio.timeout(30):
        await held.made.wait()
    await act()
    held.go.set()
    return late


async def test_a_tab_that_connects_while_a_turn_ends_shows_the_answer(
    monkeypatch: pytest.MonkeyPatch,
):
    gate = pause()
    async with room([text("Hello"), gate]) as r:
        asker = await r.tab("R")
        await asker.ask("hi")
        await asker.part()

        async def end() -> None:
            gate.open()
            await asker.stream()

        late = await connect_while(r, monkeypatch, end)
        assert await told_at_last(late) == await r.messages()


async def test_a_tab_that_connects_while_the_chat_is_cleared_shows_nothing(
    monkeypatch: pytest.MonkeyPatch,
):
    async with room("Hello") as r:
        asker = await r.tab("R")
        await asker.ask("hi")
        await asker.stream()

        async def clear() -> None:
            await asker.clear()
            await asker.before_now()

        late = await connect_while(r, monkeypatch, clear)
        assert await told_at_last(late) == []
