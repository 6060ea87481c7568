"""Calling hooks: order, merging, and what a raise does (spec/02 §5.0, §5.3.3, §5.8)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from thinkwell.core.bus import EventBus
from thinkwell.core.errors import AbortTurn, UserCodeError
from thinkwell.core.events import Event
from thinkwell.core.signal import AbortSignal
from thinkwell.hooks.answers import Allow, Block, StepConfig, Substitute, TurnConfig
from thinkwell.hooks.contexts import (
    ChatErrorContext,
    StepContext,
    ToolCallContext,
    TurnContext,
)
from thinkwell.hooks.dispatch import Hooks
from thinkwell.hooks.reading import sampling_of
from thinkwell.hooks.registry import EVENTS, HookRegistry
from thinkwell.models.base import ModelRequest
from thinkwell.testing import ScriptedModel
from thinkwell.tools.tool import as_tool


class Base:
    """Has every hook; none is overridden."""


for _event in EVENTS:
    setattr(Base, _event, lambda self, *args: None)

COMMON: dict[str, Any] = {
    "request_id": "q1",
    "trigger": "programmatic",
    "continuation": False,
    "agent": None,
    "abort_signal": AbortSignal(),
}


async def look() -> str:
    """A tool."""
    return ""


TURN = TurnContext(
    **COMMON, system="s", messages=(), tools={}, model=ScriptedModel(), body=None, attempt=0
)
STEP = StepContext(
    **COMMON,
    step_number=0,
    steps=(),
    model=ScriptedModel(),
    system="s",
    messages=(),
    tools={},
    tool_choice="auto",
    remaining_steps=1,
    runtime_context=None,
    request=ModelRequest(messages=()),
)
CALL = ToolCallContext(
    **COMMON,
    tool_call_id="c",
    tool_name="look",
    input={"n": 1},
    original_input={"n": 1},
    step_number=0,
    messages=(),
    provider_metadata=None,
    tool=as_tool(look),
)
FAILED = ChatErrorContext(
    **COMMON,
    error=ValueError("broken"),
    stage="turn",
    messages_persisted=True,
    partial=None,
    attempt=0,
)


def patch(context: StepContext, config: StepConfig) -> StepContext:
    """What the turn does with one hook's answer, in small."""
    given = {n: getattr(config, n) for n in ("system", "tool_choice") if getattr(config, n)}
    return msgspec.structs.replace(context, **given)


class Bench:
    def __init__(self, event: str, *calls: Any) -> None:
        self.events: list[Event] = []
        bus = EventBus()
        bus.subscribe(self.events.append)
        self.registry = HookRegistry(Base(), Base)
        self.hooks = Hooks(self.registry, bus)
        for number, call in enumerate(calls):
            self.registry.add(event, call, name=f"hook {number}")

    @property
    def reports(self) -> list[str]:
        return [event.hook for event in self.events if event.type == "hook:error"]


class TestBeforeTurn:
    async def test_5_3_3_the_last_given_value_of_a_field_wins(self):
        bench = Bench(
            "before_turn",
            lambda _: TurnConfig(temperature=1, seed=1),
            lambda _: {"temperature": 2},
            lambda _: None,
        )
        merged = await bench.hooks.before_turn(TURN)
        assert (merged.temperature, merged.seed) == (2, 1)

    async def test_ac94_headers_options_and_tools_are_merged_by_key(self):
        tool = as_tool(look)
        bench = Bench(
            "before_turn",
            lambda _: {"headers": {"a": "1", "x": "1"}, "provider_options": {"p": {"k": 1}}},
            lambda _: {"headers": {"b": "2", "x": "2"}, "provider_options": {"q": {"k": 2}}},
            lambda _: {"tools": {"one": tool}},
            lambda _: {"tools": {"two": tool}},
        )
        merged = await bench.hooks.before_turn(TURN)
        assert merged.headers == {"a": "1", "b": "2", "x": "2"}
        assert merged.provider_options == {"p": {"k": 1}, "q": {"k": 2}}
        assert list(merged.tools or ()) == ["one", "two"]

    async def test_5_3_3_each_hook_sees_the_overrides_so_far_and_cannot_change_them(self):
        seen: list[Any] = []
        changes = {"system": "new", "messages": [], "tools": {"one": as_tool(look)}}
        bench = Bench("before_turn", lambda _: changes, seen.append)
        await bench.hooks.before_turn(TURN)
        (ctx,) = seen
        assert (ctx.system, ctx.messages, list(ctx.tools)) == ("new", (), ["one"])
        with pytest.raises(TypeError):
            ctx.tools["two"] = None

    async def test_an_empty_list_is_an_answer_and_none_is_not(self):
        bench = Bench("before_turn", lambda _: {"active_tools": []}, lambda _: {"system": None})
        merged = await bench.hooks.before_turn(TURN)
        assert (merged.active_tools, merged.system) == ([], None)

    @pytest.mark.parametrize("junk", [1, "x", object(), {"tempreature": 1}])
    async def test_junk_names_the_hook_and_what_fits(self, junk: Any):
        bench = Bench("before_turn", lambda _: junk)
        with pytest.raises(TypeError, match=r"hook 0 returned .*TurnConfig"):
            await bench.hooks.before_turn(TURN)

    @pytest.mark.parametrize("error", [ValueError("no"), AbortTurn("stop")])
    async def test_5_0_6_a_raise_goes_to_the_caller(self, error: BaseException):
        with pytest.raises(type(error)):
            await Bench("before_turn", raiser(error)).hooks.before_turn(TURN)

    @pytest.mark.parametrize("is_async", [False, True])
    async def test_a_cancelled_error_nobody_asked_for_is_an_ordinary_error(self, is_async: bool):
        bench = Bench("before_turn", raiser(asyncio.CancelledError(), is_async=is_async))
        with pytest.raises(UserCodeError, match="hook 0"):
            await bench.hooks.before_turn(TURN)


class TestBeforeStep:
    async def test_5_0_4_answers_are_merged_and_seen_by_the_next(self):
        seen: list[Any] = []
        bench = Bench(
            "before_step",
            lambda _: StepConfig(system="new", tool_choice="none"),
            seen.append,
            lambda _: {"top_p": 0.5},
        )
        _, merged, response = await bench.hooks.before_step(STEP, patch)
        assert (merged.system, merged.top_p, response) == ("new", 0.5, None)
        assert (seen[0].system, seen[0].tool_choice) == ("new", "none")

    def test_8_1_step_settings_win_over_turn_settings_and_options_are_joined(self):
        turn = TurnConfig(temperature=1, seed=1, provider_options={"p": {"a": 1}})
        step = StepConfig(temperature=2, provider_options={"q": {"b": 2}})
        assert sampling_of(turn, step) == {
            "temperature": 2,
            "seed": 1,
            "provider_options": {"p": {"a": 1}, "q": {"b": 2}},
        }


class TestBeforeToolCall:
    async def test_5_8_4_allow_feeds_the_next_and_the_first_block_ends_the_chain(self):
        seen: list[Any] = []
        bench = Bench(
            "before_tool_call",
            lambda _: Allow({"n": 2}),
            lambda ctx: seen.append(dict(ctx.input)),
            lambda _: Block("no"),
            lambda ctx: seen.append("never"),
        )
        decision, current = await bench.hooks.before_tool_call(CALL, dict)
        assert (decision, current, seen) == (Block("no"), {"n": 2}, [{"n": 2}])

    @pytest.mark.parametrize(
        ("answer", "decision"),
        [
            ({"action": "allow"}, Allow()),
            ({"action": "block", "reason": "r"}, Block("r")),
            ({"action": "substitute", "output": None}, Substitute(None)),
            (Allow(), Allow()),
            (None, Allow()),
        ],
    )
    async def test_5_8_3_dict_forms_mean_the_same(self, answer: Any, decision: Any):
        bench = Bench("before_tool_call", lambda _: answer)
        assert (await bench.hooks.before_tool_call(CALL, dict))[0] == decision

    async def test_5_8_5_a_replaced_input_is_checked_before_the_next_hook(self):
        def refuse(_: Mapping[str, Any]) -> Any:
            raise ValueError("does not fit")

        bench = Bench("before_tool_call", lambda _: Allow({"n": "x"}))
        with pytest.raises(ValueError, match="does not fit"):
            await bench.hooks.before_tool_call(CALL, refuse)

    @pytest.mark.parametrize("junk", [1, "yes", {"action": "maybe"}, {"input": {}}, True])
    async def test_junk_is_an_error_that_lists_the_decisions(self, junk: Any):
        bench = Bench("before_tool_call", lambda _: junk)
        with pytest.raises(TypeError, match="Block"):
            await bench.hooks.before_tool_call(CALL, dict)


class TestOnChatError:
    async def test_5_12_2_answers_replace_the_error_for_the_next(self):
        seen: list[Any] = []
        bench = Bench(
            "on_chat_error",
            lambda error, _: f"{error}!",
            lambda error, _: seen.append(error),
            lambda *_: 42,
        )
        assert await bench.hooks.on_chat_error(ValueError("no"), FAILED) == "no!"
        assert (seen, bench.reports) == (["no!"], ["hook 2"])  # 42 is no answer, and is told

    @pytest.mark.parametrize("error", [ValueError("x"), asyncio.CancelledError(), AbortTurn("x")])
    async def test_one_that_raises_is_reported_and_the_error_stays(self, error: BaseException):
        first = ValueError("first")
        bench = Bench("on_chat_error", raiser(error))
        assert await bench.hooks.on_chat_error(first, FAILED) is first
        assert bench.reports == ["hook 0"]


class TestObservers:
    @pytest.mark.parametrize("error", [ValueError("x"), asyncio.CancelledError()])
    @pytest.mark.parametrize("is_async", [False, True])
    async def test_5_0_6_a_raise_is_reported_and_the_others_run(
        self, error: BaseException, is_async: bool
    ):
        seen: list[Any] = []
        bench = Bench("on_step_finish", raiser(error, is_async=is_async), seen.append)
        await bench.hooks.observe("on_step_finish", TURN)
        assert (bench.reports, len(seen)) == (["hook 0"], 1)

    async def test_5_0_7_a_stop_goes_through_while_there_is_a_turn_to_stop(self):
        with pytest.raises(AbortTurn):
            await Bench("on_chunk", raiser(AbortTurn("x"))).hooks.observe("on_chunk", TURN)

    async def test_after_the_turn_a_stop_is_just_a_mistake(self):
        bench = Bench("on_chat_response", raiser(AbortTurn("x")))
        await bench.hooks.observe_end("on_chat_response", TURN)
        assert bench.reports == ["hook 0"]

    async def test_a_real_cancellation_goes_through(self):
        async def wait(_: Any) -> None:
            await asyncio.Event().wait()

        bench = Bench("on_step_finish", wait)
        task = asyncio.ensure_future(bench.hooks.observe("on_step_finish", TURN))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert bench.reports == []

    async def test_what_observers_return_is_ignored(self):
        bench = Bench("on_step_finish", lambda _: Block("no"), lambda _: 42)
        await bench.hooks.observe("on_step_finish", TURN)
        assert bench.events == []


def raiser(error: BaseException, *, is_async: bool = False) -> Any:
    def hook(*_: Any) -> None:
        raise error

    async def async_hook(*_: Any) -> None:
        raise error

    return async_hook if is_async else hook
