"""Every moment of a turn, in both styles (spec/02 §5, §7, §12; AC13-AC22, AC43, AC67, AC72)."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from tests.turns.hooked import Tools, raiser
from tests.turns.support import Stage, part_of, running, untyped
from thinkwell.core import json
from thinkwell.core.errors import AbortTurn, FailTurn, UnknownToolError
from thinkwell.hooks.registry import ALIASES, EVENTS, hook
from thinkwell.testing import call, error, pause, text
from thinkwell.tools.scope import Scope

RARE = re.compile("scope|error|recovery")
"""Moments that a turn which goes well does not have; their own tests register them both ways."""
CHAIN = [
    *("on_turn_start", "on_message user", "before_turn", "authorize_turn"),
    *("before_step 0", "on_response 0", "on_message assistant"),
    *("before_tool_call a", "ran a", "on_tool_result a", "after_tool_call a", "on_message tool"),
    *("on_step_finish 0", "before_step 1", "on_response 1", "on_message assistant"),
    *("on_step_finish 1", "on_chat_done", "on_chat_response completed"),
]


def line(event: str, ctx: Any) -> str:
    """One line per call of a hook, with what tells its calls apart."""
    match event:
        case "before_step" | "on_response" | "on_step_finish":
            detail = ctx.step_number
        case "on_message":
            detail = type(ctx.message).__name__.removesuffix("Message").lower()
        case "before_tool_call" | "after_tool_call":
            detail = ctx.tool_name
        case "on_tool_result" | "on_tool_error":
            detail = ctx.call.name
        case "on_chat_response":
            detail = ctx.status
        case "on_chat_error" | "classify_chat_error":
            detail = ctx.stage
        case _:
            detail = ""
    return f"{event} {detail}".strip()


def overriding() -> type[Tools]:
    """A class that overrides every moment but `on_chunk`, and writes to `diary`."""

    def method(event: str) -> Any:
        def note(self: Any, *arguments: Any) -> None:
            self.diary.append(line(event, arguments[-1]))

        return note

    events = [event for event in (*EVENTS, "authorize_turn") if event != "on_chunk"]
    members: dict[str, Any] = {event: method(event) for event in events}
    return type("Overriding", (Tools,), {**members, "diary": []})


async def diary_of(*steps: Any) -> list[str]:
    """What registered hooks of all events write during one turn."""
    diary: list[str] = []
    async with running(Tools, *steps) as stage:
        record_all(stage, diary)
        await stage.agent.run("hi")
        return diary


def record_all(stage: Stage[Any], diary: list[str]) -> None:
    def recorder(event: str) -> Any:
        return lambda *arguments: diary.append(line(event, arguments[-1]))

    for event in EVENTS:
        if event != "on_chunk":
            untyped(stage).add_hook(event, recorder(event))


class TestBothStyles:
    async def test_7_2_a_class_sees_every_moment_of_a_turn_with_a_tool_in_order(self):
        cls: Any = overriding()
        async with running(cls, [call("a")], "ok") as stage:
            await stage.agent.run("hi")
            assert cls.diary == [item for item in CHAIN if item != "ran a"]

    async def test_7_2_registered_hooks_see_the_same(self):
        diary = await diary_of([call("a")], "ok")
        assert diary == [item for item in CHAIN if item not in ("authorize_turn", "ran a")]

    @pytest.mark.parametrize("event", [e for e in EVENTS if not RARE.search(e)])
    async def test_5_0_1_the_decorator_registers_a_method_beside_the_class_method(self, event: str):
        seen: list[str] = []

        def first(self: Any, *_: Any) -> None:
            seen.append("method")

        @hook(event)
        def second(self: Any, *_: Any) -> None:
            seen.append("decorated")

        cls: Any = type("Decorated", (Tools,), {event: first, "another": second})
        async with running(cls, [call("a")], pause_then_stop(event)) as stage:
            await run_for(stage, event)
            assert seen[:2] == ["method", "decorated"]

    @pytest.mark.parametrize("alias", list(ALIASES))
    async def test_12_1_the_other_name_of_a_moment_is_the_same_moment(self, alias: str):
        seen: list[Any] = []
        failing = "error" in alias
        async with running(Tools, [call("fails" if failing else "a")], "ok") as stage:
            untyped(stage).add_hook(alias, lambda ctx: seen.append(ctx))
            await stage.agent.run("hi")
            assert seen

    async def test_12_1_contexts_have_the_names_of_the_other_system(self):
        seen: dict[str, Any] = {}
        async with running(Tools, [call("a", {"n": 1})], "ok") as stage:
            stage.agent.add_hook("on_chat_start", lambda c: seen.update(message=c.message))
            stage.agent.add_hook("pre_request", lambda c: seen.update(i=c.iteration, s=c.signal))
            stage.agent.add_hook("pre_tool_call", lambda c: seen.update(call=c.call))
            await stage.agent.run("hi")
            assert (seen["message"], seen["i"], seen["s"].aborted) == ("hi", 1, False)
            assert (seen["call"].name, seen["call"].arguments) == ("a", {"n": 1})


def pause_then_stop(event: str) -> Any:
    return [text("x"), pause()] if event == "on_chat_abort" else "ok"


async def run_for(stage: Stage[Any], event: str) -> None:
    """Run a turn; for `on_chat_abort`, one that is stopped."""
    if event == "on_chat_abort":
        stage.agent.add_hook("on_step_finish", lambda ctx: ctx.agent.cancel_chat())
    await stage.agent.run("hi")


class TestOrders:
    async def test_7_1_on_chunk_and_on_response_stand_where_the_spec_puts_them(self):
        diary: list[str] = []
        async with running(Tools, [text("Hel", "lo")]) as stage:
            record_all(stage, diary)
            stage.agent.add_hook("on_chunk", lambda ctx: diary.append(ctx.chunk["type"]))
            await stage.agent.run("hi")
        start = diary.index("before_step 0")
        assert diary[start:] == [
            *("before_step 0", "start", "start-step", "text-start", "text-delta", "text-delta"),
            *("text-end", "on_response 0", "on_message assistant", "finish-step"),
            *("on_step_finish 0", "finish", "on_chat_done", "on_chat_response completed"),
        ]

    async def test_7_6_a_failing_tool(self):
        diary = await diary_of([call("fails")], "ok")
        start = diary.index("before_tool_call fails")
        assert diary[start : start + 5] == [
            *("before_tool_call fails", "on_tool_error fails", "after_tool_call fails"),
            *("on_message tool", "on_step_finish 0"),
        ]

    async def test_7_7_ac22_an_unknown_tool(self):
        seen: list[Any] = []
        async with running(Tools, [call("nope")], "ok") as stage:
            stage.agent.add_hook("before_tool_call", lambda _: seen.append("asked"))
            stage.agent.add_hook("on_tool_error", lambda ctx: seen.append(ctx))
            await stage.agent.run("hi")
            (ctx,) = seen
            assert (ctx.tool, ctx.scope, ctx.call.name) == (None, None, "nope")
            assert isinstance(ctx.error, UnknownToolError)
            assert "fails" in part_of(await stage.answer())["errorText"]

    async def test_7_10_a_stop_in_the_middle_of_a_text(self):
        gate = pause()
        diary: list[str] = []
        async with running(Tools, ["par", gate, "never"]) as stage:
            record_all(stage, diary)
            turn = asyncio.ensure_future(stage.agent.run("hi"))
            await gate.reached()
            await stage.agent.cancel_chat(reason="enough")
            await turn
        assert diary[-3:] == ["before_step 0", "on_chat_abort", "on_chat_response aborted"]

    async def test_7_11_a_model_error_is_classified_then_told(self):
        diary = await diary_of(["par", error(RuntimeError("boom"))])
        assert diary[-3:] == [
            *("classify_chat_error stream", "on_chat_error stream", "on_chat_response error"),
        ]

    async def test_7_12_a_before_turn_that_raises(self):
        diary: list[str] = []
        async with running(Tools) as stage:
            record_all(stage, diary)
            stage.agent.add_hook("before_turn", raiser(RuntimeError("no")))
            await stage.agent.run("hi")
        assert diary == [
            *("on_turn_start", "on_message user", "before_turn"),
            *("classify_chat_error turn", "on_chat_error turn", "on_chat_response error"),
        ]

    async def test_5_2_on_turn_start_comes_before_the_input_is_stored(self):
        stored: list[int] = []

        async def look(ctx: Any) -> None:
            stored.append(len(await ctx.agent.get_messages()))

        async with running(Tools, "ok") as stage:
            stage.agent.add_hook("on_turn_start", look)
            stage.agent.add_hook("on_message", look)
            await stage.agent.run("hi")
            assert stored[:2] == [0, 1]


class TestEndingTheTurn:
    NOT_TERMINAL = (
        *("on_turn_start", "on_message", "before_turn", "before_step", "on_chunk", "on_response"),
        *("before_tool_call", "on_tool_result", "after_tool_call", "on_step_finish"),
    )

    @pytest.mark.parametrize("event", NOT_TERMINAL)
    async def test_5_0_7_ac14_abort_turn_from_any_hook_stops_the_turn_once(self, event: str):
        ends: list[str] = []
        async with running(Tools, [call("a")], "never") as stage:
            watch_ends(stage, ends)
            untyped(stage).add_hook(event, raiser(AbortTurn("stop")))
            result = await stage.agent.run("hi")
            assert (result.status, ends) == ("aborted", ["on_chat_abort"])

    @pytest.mark.parametrize("event", NOT_TERMINAL)
    async def test_5_0_7_fail_turn_from_any_hook_fails_the_turn_once(self, event: str):
        ends: list[str] = []
        async with running(Tools, [call("a")], "never") as stage:
            watch_ends(stage, ends)
            untyped(stage).add_hook(event, raiser(FailTurn(ValueError("because"))))
            result = await stage.agent.run("hi")
            assert (result.status, result.error) == ("error", "because")
            assert ends == ["on_chat_error"]

    @pytest.mark.parametrize("event", ["before_tool_call", "on_tool_result", "on_chunk"])
    async def test_ac13_strict_hooks_fail_the_turn_and_leave_no_open_call(self, event: str):
        class Strict(Tools):
            strict_hooks = True

        async with running(Strict, [call("a")], "never") as stage:
            untyped(stage).add_hook(event, raiser(RuntimeError("policy")))
            result = await stage.agent.run("hi")
            # What a redactor says may quote what it was to hide (13.3), so it is named instead.
            said = "its text is withheld" if event == "on_tool_result" else "policy"
            assert result.status == "error"
            assert said in (result.error or "")
            assert stage.fields("chat:request:failed")[0]["stage"] == "hook"
            parts = [p for m in await stage.messages() for p in m["parts"] if "toolCallId" in p]
            assert all(part["state"] == "output-error" for part in parts)

    @pytest.mark.parametrize("event", ["on_chat_done", "on_chat_response"])
    @pytest.mark.parametrize("problem", [RuntimeError("late"), AbortTurn("late"), FailTurn("l")])
    async def test_5_12_1_what_a_hook_of_the_end_raises_changes_nothing(
        self, event: str, problem: BaseException
    ):
        ends: list[str] = []
        async with running(Tools, "ok") as stage:
            watch_ends(stage, ends)
            untyped(stage).add_hook(event, raiser(problem))
            assert (await stage.agent.run("hi")).status == "completed"
            assert ends == ["on_chat_done"]
            (report,) = stage.fields("hook:error")
            assert (report["event"], report["error"]) == (event, problem)

    async def test_5_0_8_a_hook_that_takes_too_long_counts_as_one_that_raised(self):
        async def hangs(_: Any) -> None:
            await asyncio.Event().wait()

        async with running(Tools, [call("a")], "ok") as stage:
            stage.agent.add_hook("before_tool_call", hangs, timeout=0.001)
            stage.agent.add_hook("on_step_finish", hangs, timeout=0.001, name="slow one")
            assert (await stage.agent.run("hi")).status == "completed"
            assert stage.agent.ran == []
            assert {r["hook"] for r in stage.fields("hook:error")} == {"slow one"}


def watch_ends(stage: Stage[Any], ends: list[str]) -> None:
    """Note which of the three ends is told."""
    for event in ("on_chat_done", "on_chat_abort", "on_chat_error"):
        untyped(stage).add_hook(event, lambda *_, event=event: ends.append(event))


class TestErrorHooks:
    async def test_12_an_error_hook_may_take_one_parameter_or_two(self):
        seen: list[Any] = []
        async with running(Tools, [error(RuntimeError("boom"))]) as stage:
            stage.agent.add_hook("on_chat_error", lambda ctx: seen.append(str(ctx.error)))
            stage.agent.add_hook("on_chat_error", lambda e, ctx: seen.append((str(e), ctx.stage)))
            await stage.agent.run("hi")
            assert seen == ["boom", ("boom", "stream")]

    async def test_13_5_ac43_none_keeps_the_error_and_a_value_replaces_it_for_the_next(self):
        seen: list[str] = []
        async with running(Tools, [error(RuntimeError("boom"))]) as stage:
            client = await stage.connect()
            stage.agent.add_hook("on_chat_error", lambda _e, _c: None)
            stage.agent.add_hook("on_chat_error", lambda _e, _c: "Please wait.")
            stage.agent.add_hook("on_chat_error", raiser(RuntimeError("in the hook")))
            stage.agent.add_hook("on_chat_error", lambda ctx: seen.append(str(ctx.error)))
            await client.ask("hi")
            assert (await client.until_end())["body"] == "Please wait."
            assert seen == ["Please wait."]
            assert stage.fields("hook:error")[0]["event"] == "on_chat_error"

    async def test_5_15_the_first_classification_counts_and_a_raise_is_none(self):
        seen: list[Any] = []
        async with running(Tools, [error(RuntimeError("boom"))]) as stage:
            answers: list[Any] = [
                raiser(ValueError("x")),
                lambda *_: "nonsense",
                lambda *_: "fatal",
            ]
            for answer in answers:
                stage.agent.add_hook("classify_chat_error", answer)
            stage.agent.add_hook("on_chat_error", lambda ctx: seen.append(ctx.classification))
            await stage.agent.run("hi")
            assert seen == ["fatal"]
            assert {r["event"] for r in stage.fields("hook:error")} == {"classify_chat_error"}

    @pytest.mark.parametrize("is_async", [False, True])
    async def test_5_4_authorize_turn_sees_what_before_turn_chose_and_a_raise_fails_the_turn(
        self, is_async: bool
    ):
        seen: list[Any] = []

        class Refuses(Tools):
            def authorize_turn(self, ctx: Any) -> Any:
                seen.append((ctx.system, ctx.model is other))
                if not is_async:
                    raise PermissionError("not you")
                return self.later()

            async def later(self) -> None:
                raise PermissionError("not you")

        async with running(Refuses, "never") as stage:
            other = stage.model
            stage.agent.add_hook("before_turn", lambda _: {"system": "S"})
            result = await stage.agent.run("hi")
            assert (result.status, result.error, seen) == ("error", "not you", [("S", True)])
            assert stage.model.requests == []


class TestDispatch:
    async def test_ac70_a_hook_registered_in_a_hook_waits_and_a_disposed_one_is_skipped(self):
        seen: list[str] = []
        async with running(Tools, [call("a")], "ok") as stage:
            agent = stage.agent

            def first(_: Any) -> None:
                seen.append("first")
                drop_first()
                drop_second()
                agent.add_hook("on_step_finish", lambda _: seen.append("added"))

            drop_first = agent.add_hook("on_step_finish", first)
            drop_second = agent.add_hook("on_step_finish", lambda _: seen.append("second"))
            agent.add_hook("on_step_finish", lambda _: seen.append("third"))
            await agent.run("hi")
            assert seen == ["first", "third", "third", "added"]

    async def test_5_16_scope_hooks_come_after_the_change_and_a_raise_is_reported(self):
        seen: list[Any] = []
        async with running(Tools) as stage:
            agent = stage.agent
            heard = asyncio.Event()
            agent.add_hook("on_scope_register", raiser(RuntimeError("x")))
            agent.add_hook(
                "on_scope_register",
                lambda ctx: seen.append(ctx.agent.scopes.get(ctx.scope.name) is ctx.scope),
            )
            agent.add_hook("on_scope_unregister", lambda _: heard.set())
            agent.scopes.register(Scope("cart"))()
            await heard.wait()
            assert len(seen) == 1
            assert stage.fields("hook:error")[0]["event"] == "on_scope_register"

    async def test_5_8_1_contexts_can_be_logged_as_json(self):
        logged: list[str] = []
        async with running(Tools, [call("a", {"n": 1})], "ok") as stage:
            stage.agent.add_hook("on_chunk", lambda ctx: logged.append(json.dumps(ctx.chunk)))
            stage.agent.add_hook("before_tool_call", lambda c: logged.append(json.dumps(c.input)))
            await stage.agent.run("hi")
            assert '{"n":1}' in logged
