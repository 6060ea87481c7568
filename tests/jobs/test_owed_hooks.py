"""Hooks that turns owe since a crash are delivered by the runner (spec/04 C12; DESIGN §1)."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any, ClassVar

from tests.jobs.support import serving
from thinkwell import Think
from thinkwell.core.limits import Limits
from thinkwell.hooks import ChatResponse
from thinkwell.testing import ScriptedModel


class Listener(Think):
    model = ScriptedModel([f"Answer {n}." for n in range(9)])
    heard: ClassVar[list[tuple[str, str, bool]]] = []

    async def on_chat_response(self, ctx: ChatResponse) -> None:
        name = ctx.agent.name
        self.heard.append((name, ctx.request_id, ctx.redelivered))


async def owing(store: Path, *names: str) -> list[tuple[str, str, bool]]:
    """Turns of these agents whose hooks did not run; what must be heard of them."""
    asked: list[tuple[str, str, bool]] = []
    async with serving(Listener, store=store) as stage:
        for name in names:
            agent: Any = await stage.agent(Listener, name)
            for _ in range(2):
                asked.append((name, (await agent.run("hello")).request_id, True))
    link = sqlite3.connect(store)
    with link:
        link.execute("UPDATE turns SET hooks_owed = 3")
    link.close()
    Listener.heard.clear()
    return asked


async def test_owed_hooks_are_delivered_once_in_the_order_of_the_turns(tmp_path: Path):
    store = tmp_path / "hooks.db"
    asked = await owing(store, "a", "b")
    async with serving(Listener, store=store, limits=Limits(jobs=1)) as stage:
        while len(Listener.heard) < 4:
            await stage.agent(Listener, "a")  # it may be awake before the runner comes to it
            await asyncio.sleep(0)
        assert sorted(Listener.heard) == sorted(asked)
        again = stage.told("turn:hook_redelivered")  # spec/04 §17
        assert [(told["hook"], told["left"]) for told in again] == [("on_chat_response", 2)] * 4
        of_a = [request for name, request, _ in Listener.heard if name == "a"]
        assert of_a == [request for name, request, _ in asked if name == "a"]
        agent: Any = await stage.agent(Listener, "a")
        last = await agent.run("and now?")
        assert Listener.heard[-1] == ("a", last.request_id, False)
        assert len(Listener.heard) == 5
    async with serving(Listener, store=store) as stage:
        await (await stage.agent(Listener, "a")).run("again")
        assert len(Listener.heard) == 6
