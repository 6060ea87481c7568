"""Tools and hooks may raise anything; only their call fails (DESIGN §8.16)."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from tests.turns.configured import Two, configured
from tests.turns.support import part_of, running, untyped
from thinkwell import Think, tool
from thinkwell.hooks.registry import EVENTS
from thinkwell.testing import call


class OwnError(BaseException):
    """Nobody else's."""


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise SystemExit(9)


RAISED: list[Any] = [
    SystemExit(3),
    KeyboardInterrupt(),
    GeneratorExit(),
    asyncio.CancelledError(),
    OwnError("mine"),
    StopIteration(),
    UnspeakableError(),
]


def name_of(error: BaseException) -> str:
    return type(error).__name__


class Raising(Two):
    error: BaseException

    @tool
    def sync(self) -> str:
        """In a thread."""
        raise self.error

    @tool
    async def coroutine(self) -> str:
        """On the loop."""
        raise self.error

    @tool
    async def late(self) -> str:
        """After a pause."""
        await asyncio.sleep(0)
        raise self.error

    @tool
    async def generator(self) -> Any:
        """In pieces."""
        yield 1
        raise self.error


@pytest.mark.parametrize("kind", ["sync", "coroutine", "late", "generator"])
@pytest.mark.parametrize("error", RAISED, ids=name_of)
async def test_8_16_whatever_a_tool_raises_only_its_call_fails(kind: str, error: BaseException):
    async with running(Raising, [call(kind)], "ok", "again") as stage:
        stage.agent.error = error
        assert (await stage.agent.run("hi")).text == "ok"
        assert part_of(await stage.answer())["state"] == "output-error"
        assert (await stage.agent.run("more")).text == "again"


@pytest.mark.parametrize("wait", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("error", [RAISED[0], RAISED[3], RAISED[6]], ids=name_of)
async def test_8_16_whatever_a_hook_raises_the_next_turn_runs(
    event: str, error: BaseException, wait: bool
):
    class Broken(Two):
        @tool
        async def breaks(self) -> str:
            """Fails."""
            raise ValueError("no")

    async def later(*_: Any) -> None:
        await asyncio.sleep(0)
        raise error

    def at_once(*_: Any) -> None:
        raise error

    fails = [] if "chat_error" not in event else [ValueError("the model")]
    steps = [[call("a"), call("breaks")], *fails, "ok", "again", "again"]
    async with running(Broken, *steps) as stage:
        dispose = untyped(stage).add_hook(event, later if wait else at_once)
        first = await stage.agent.run("hi")
        assert first.status in ("completed", "error")
        dispose()
        second = await stage.agent.run("more")
        assert second.status == "completed"


@pytest.mark.parametrize("error", RAISED[:5], ids=name_of)
async def test_8_18_what_is_no_exception_is_logged_with_agent_turn_and_hook(
    error: BaseException, caplog: pytest.LogCaptureFixture
):
    def raising(_: Any) -> None:
        raise error

    with caplog.at_level(logging.ERROR, "thinkwell.hooks"):
        async with configured(None, "ok") as stage:
            stage.agent.add_hook("on_step_finish", raising, name="guard")
            result = await stage.agent.run("hi")
            assert result.text == "ok"
    (record,) = [r for r in caplog.records if r.name == "thinkwell.hooks"]
    assert record.exc_info is not None
    assert record.exc_info[1] is error
    said = vars(record)
    assert (said["agent"], said["turn"]) == ("two/x", result.request_id)
    assert said["hook"] == "guard"


class Overrides(Think):
    broken = ""
    error: BaseException = SystemExit(1)

    def check(self, name: str) -> None:
        if self.broken == name:
            raise self.error

    def get_model(self) -> Any:
        self.check("get_model")
        return self.model

    async def get_system_prompt(self) -> str:
        self.check("get_system_prompt")
        return "Be kind."

    async def get_tools(self) -> Any:
        self.check("get_tools")
        return {}

    async def authorize_turn(self, ctx: Any) -> bool:
        self.check("authorize_turn")
        return True


@pytest.mark.parametrize(
    "broken", ["get_model", "get_system_prompt", "get_tools", "authorize_turn"]
)
@pytest.mark.parametrize("error", RAISED, ids=name_of)
async def test_8_16_whatever_an_override_raises_only_its_turn_fails(
    broken: str, error: BaseException
):
    async with running(Overrides, "ok") as stage:
        stage.agent.broken, stage.agent.error = broken, error
        assert (await stage.agent.run("hi")).status == "error"
        stage.agent.broken = ""
        assert (await stage.agent.run("hi")).text == "ok"


@pytest.mark.parametrize("error", RAISED, ids=name_of)
async def test_8_16_whatever_functions_of_a_turn_raise_only_that_turn_fails(error: BaseException):
    def raising(*_: Any) -> Any:
        raise error

    async def later(*_: Any) -> Any:
        raise error

    for config in ({"transforms": raising}, {"stop_when": raising}, {"stop_when": later}):
        async with configured(config, [call("a")], "ok") as stage:
            assert (await stage.agent.run("hi")).status == "error"
    async with configured({"repair_tool_call": later}, [call("nothing")], "ok") as stage:
        assert (await stage.agent.run("hi")).text == "ok"
    async with running(Two, "ok") as stage:
        assert (await stage.agent.save_messages(later)).status == "error"
        assert (await stage.agent.run("hi")).text == "ok"


@pytest.mark.parametrize("error", RAISED, ids=name_of)
async def test_8_16_whatever_an_approval_predicate_or_a_converter_raises_the_turn_goes_on(
    error: BaseException,
):
    async def asks(*_: Any) -> bool:
        raise error

    def converts(**_: Any) -> Any:
        raise error

    class Asks(Two):
        @tool(needs_approval=asks)
        async def guarded(self) -> str:
            """Never runs."""
            return "ran"

        @tool(to_model_output=converts)
        async def converted(self) -> str:
            """Runs."""
            return "ran"

    async with running(Asks, [call("guarded"), call("converted")], "ok") as stage:
        assert (await stage.agent.run("hi")).text == "ok"


@pytest.mark.parametrize("error", RAISED, ids=name_of)
async def test_8_16_whatever_a_listener_of_events_raises_the_turn_goes_on(error: BaseException):
    def raising(_: Any) -> None:
        raise error

    async with running(Two, "ok") as stage:
        stage.host.bus.subscribe(raising)
        stage.agent.scopes.subscribe(lambda: raising(None))
        assert (await stage.agent.run("hi")).text == "ok"
