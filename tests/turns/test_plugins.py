"""Plugins add hooks and scopes, and can be taken away again (spec/02 §12.15; AC81)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.turns.support import Stage, running
from thinkwell import Scope, Think


class Plain(Think):
    pass


def observe(log: list[str]) -> Any:
    """A plugin with two hooks and a scope, and no cleanup of its own."""

    def plugin(agent: Plain) -> None:
        agent.add_hook("on_turn_start", lambda _: log.append("start"))
        agent.add_hook("on_chat_done", lambda _: log.append("done"))
        agent.scopes.register(Scope("observed"))

    return plugin


def scopes(stage: Stage[Plain]) -> list[str]:
    return [scope.name for scope in stage.agent.scopes.get_snapshot()]


async def test_what_it_registers_works():
    log: list[str] = []
    async with running(Plain, "one") as stage:
        await stage.agent.use(observe(log))
        await stage.agent.run("hi")
        assert (log, scopes(stage)) == (["start", "done"], ["observed"])


async def test_ac81_one_that_raises_leaves_nothing_behind():
    log: list[str] = []

    async def broken(agent: Plain) -> None:
        observe(log)(agent)
        await asyncio.sleep(0)
        raise RuntimeError("no")

    async with running(Plain, "one") as stage:
        with pytest.raises(RuntimeError, match="no"):
            await stage.agent.use(broken)
        await stage.agent.run("hi")
        assert (log, scopes(stage)) == ([], [])


async def test_cleanup_removes_it_also_when_it_returned_none():
    log: list[str] = []
    async with running(Plain, "one") as stage:
        cleanup = await stage.agent.use(observe(log))
        assert cleanup is not None
        cleanup()
        await cleanup()
        await stage.agent.run("hi")
        assert (log, scopes(stage)) == ([], [])


@pytest.mark.parametrize("is_async", [False, True])
async def test_its_own_cleanup_runs_once(is_async: bool):
    log: list[str] = []

    async def later() -> None:
        log.append("own")

    async with running(Plain) as stage:
        cleanup = await stage.agent.use(lambda _: later if is_async else lambda: log.append("own"))
        assert cleanup is not None
        await cleanup()
        await cleanup()
        assert log == ["own"]


async def test_a_plugin_with_nothing_to_clean_up_gives_none():
    async with running(Plain) as stage:
        assert await stage.agent.use(lambda _: "not callable") is None


async def test_what_others_register_meanwhile_stays():
    log: list[str] = []
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow(agent: Plain) -> None:
        begun.set()
        await go_on.wait()
        agent.add_hook("on_chat_done", lambda _: log.append("plugin"))

    async with running(Plain, "one") as stage:
        using = asyncio.ensure_future(stage.agent.use(slow))
        await begun.wait()
        stage.agent.add_hook("on_chat_done", lambda _: log.append("other"))
        go_on.set()
        cleanup = await using
        assert cleanup is not None
        cleanup()
        await stage.agent.run("hi")
        assert log == ["other"]
