"""Parsing arguments and running one call (spec/02 §9.5-9.9, §9.12, AC25-AC27, AC29)."""

import asyncio
import contextvars
import threading

import pytest

from tests.unit.tools.support import CTX
from thinkwell.core.errors import ToolError, ToolInputError, ToolOutputError
from thinkwell.tools import ToolContext, client_tool, from_json_schema, tool
from thinkwell.tools.execute import approval_required, parse_input, run_tool
from thinkwell.tools.tool import as_tool


async def run(function, value=None):
    """The result of a call and the preliminary values it told."""
    told = []
    result = await run_tool(as_tool(function), value or {}, CTX, told.append)
    return result, told


async def numbers():
    for number in (1, 2, 3):
        yield number


class TestParsing:
    def make(self):
        async def greet(name: str = "you") -> str:
            return name

        return as_tool(greet)

    @pytest.mark.parametrize("text", ["", "  ", "{}"])
    def test_nothing_means_no_arguments(self, text):
        assert parse_input(self.make(), text).raw == {}

    def test_an_object_is_parsed_and_validated(self):
        parsed = parse_input(self.make(), '{"name": "Ann"}')
        assert (parsed.raw, parsed.value) == ({"name": "Ann"}, {"name": "Ann"})

    @pytest.mark.parametrize("text", ['{"name": ', "name", '{"a": 1}}'])
    def test_text_that_is_no_json_is_a_tool_error(self, text):
        with pytest.raises(ToolInputError, match="not valid JSON"):
            parse_input(self.make(), text)

    @pytest.mark.parametrize(
        ("text", "kind"),
        [("[]", "an array"), ("1", "a number"), ("null", "null"), ('"a"', "a string")],
    )
    def test_json_that_is_no_object_is_a_tool_error(self, text, kind):
        with pytest.raises(ToolInputError, match=f"JSON object, not {kind}"):
            parse_input(self.make(), text)


class TestShapesOfHandlers:
    async def test_a_coroutine_gives_its_value_and_nothing_preliminary(self):
        async def double(n: int):
            return n * 2

        assert await run(double, {"n": 4}) == (8, [])

    async def test_an_ordinary_function_runs_in_a_thread_with_the_callers_context(self):
        mark = contextvars.ContextVar("mark", default="")
        mark.set("here")

        def where():
            return [threading.current_thread() is threading.main_thread(), mark.get()]

        assert await run(where) == ([False, "here"], [])

    async def test_an_inline_function_runs_on_the_loop(self):
        @tool(inline=True)
        def where():
            return threading.current_thread() is threading.main_thread()

        assert await run(where) == (True, [])

    async def test_an_async_generator_tells_each_value_and_ends_with_the_last(self):
        assert await run(numbers) == (3, [1, 2, 3])

    async def test_an_awaitable_that_gives_an_iterator_streams_too(self):
        async def later():
            return numbers()

        assert await run(later) == (3, [1, 2, 3])

    async def test_a_generator_without_values_gives_none(self):
        async def silent():
            for number in ():
                yield number

        assert await run(silent) == (None, [])

    async def test_preliminary_values_may_be_taken_asynchronously(self):
        told = []

        async def take(value):
            await asyncio.sleep(0)
            told.append(value)

        assert await run_tool(as_tool(numbers), {}, CTX, take) == 3
        assert told == [1, 2, 3]

    async def test_a_generator_is_closed_when_the_listener_fails(self):
        closed = []

        async def watched():
            try:
                yield 1
            finally:
                closed.append(True)

        def fail(_value):
            raise RuntimeError("nobody listens")

        with pytest.raises(RuntimeError, match="nobody listens"):
            await run_tool(as_tool(watched), {}, CTX, fail)
        assert closed == [True]

    async def test_the_context_is_handed_to_the_parameter_that_wants_it(self):
        async def who(ctx: ToolContext):
            return ctx.idempotency_key

        assert await run(who) == ("key-1", [])

    async def test_a_given_schema_handler_gets_the_arguments_and_the_context(self):
        made = from_json_schema(
            "x", "", {}, lambda value, ctx: [value, ctx.request_id], inline=True
        )
        assert await run(made, {"a": 1}) == ([{"a": 1}, "req-1"], [])


class TestReports:
    """`ctx.report` streams preliminary results from any handler (spec/02 §9.2)."""

    async def test_a_coroutine_reports_as_it_goes(self):
        async def bake(ctx: ToolContext):
            await ctx.report({"done": 1})
            await ctx.report({"done": 2})
            return "bread"

        assert await run(bake) == ("bread", [{"done": 1}, {"done": 2}])

    async def test_a_handler_in_a_thread_reports_without_await(self):
        told_on = []

        def bake(ctx: ToolContext):
            ctx.report("half")
            return "bread"

        def listen(value):
            told_on.append((value, threading.current_thread() is threading.main_thread()))

        assert await run_tool(as_tool(bake), {}, CTX, listen) == "bread"
        assert told_on == [("half", True)]

    async def test_what_a_thread_gets_back_may_still_be_awaited(self):
        def bake(ctx: ToolContext):
            async def later():
                await waiting

            waiting = ctx.report(1)
            return later()

        assert await run(bake) == (None, [1])

    async def test_a_report_json_cannot_hold_is_a_tool_error(self):
        async def bake(ctx: ToolContext):
            await ctx.report({1, 2})

        with pytest.raises(ToolOutputError):
            await run(bake)

    async def test_after_the_call_nothing_more_is_told(self):
        kept = []

        async def bake(ctx: ToolContext):
            kept.append(ctx)

        _, told = await run(bake)
        await kept[0].report("late")
        assert told == []

    async def test_outside_of_a_call_a_report_does_nothing(self):
        await CTX.report("anything")


class TestApproval:
    """Whether a call needs a person's word (spec/02 §9.10)."""

    def make(self, policy):
        return from_json_schema("x", "", {}, lambda value, ctx: None, needs_approval=policy)

    @pytest.mark.parametrize("policy", [True, False])
    async def test_a_constant_decides_for_every_call(self, policy):
        assert await approval_required(self.make(policy), {}, CTX) is policy

    async def test_a_function_sees_the_input_and_the_context(self):
        seen = []
        policy = self.make(lambda value, ctx: seen.append((value, ctx)) or value["n"] > 5)
        assert await approval_required(policy, {"n": 6}, CTX) is True
        assert seen == [({"n": 6}, CTX)]

    async def test_an_async_function_is_awaited(self):
        async def policy(value, ctx):
            return False

        assert await approval_required(self.make(policy), {}, CTX) is False

    async def test_an_error_of_the_policy_comes_through(self):
        with pytest.raises(KeyError):
            await approval_required(self.make(lambda value, ctx: value["gone"]), {}, CTX)


class TestResults:
    @pytest.mark.parametrize("blocking", [True, False])
    @pytest.mark.parametrize("value", [{1, 2}, object(), {1: "a"}])
    async def test_what_json_cannot_hold_is_a_tool_error(self, value, blocking):
        made = from_json_schema("x", "", {}, lambda _input, _ctx: value, inline=not blocking)
        with pytest.raises(ToolOutputError, match="result of tool 'x'"):
            await run(made)

    async def test_a_result_that_holds_itself_is_a_tool_error(self):
        circle = []
        circle.append(circle)
        with pytest.raises(ToolOutputError, match="refers to itself"):
            await run(from_json_schema("x", "", {}, lambda _input, _ctx: circle))

    async def test_a_preliminary_value_json_cannot_hold_is_a_tool_error(self):
        async def sets():
            yield {1}

        with pytest.raises(ToolOutputError):
            await run(sets)

    async def test_none_stays_none(self):
        async def nothing() -> None: ...

        assert await run(nothing) == (None, [])


class TestFailures:
    async def test_a_client_tool_cannot_be_run_here(self):
        with pytest.raises(ToolError, match="the client answers"):
            await run(client_tool("ask"))

    async def test_a_handlers_own_error_reaches_the_caller(self):
        def fails():
            raise KeyError("gone")

        with pytest.raises(KeyError, match="gone"):
            await run(fails)

    async def test_stop_iteration_in_a_thread_does_not_hang(self):
        def ends():
            return next(iter(()))

        with pytest.raises(ToolError, match="StopIteration"):
            await run(ends)

    async def test_a_time_limit_names_the_tool_and_the_seconds(self):
        @tool(timeout=0.01)
        async def sleeps():
            await asyncio.Event().wait()

        with pytest.raises(ToolError, match=r"'sleeps' did not finish within 0\.01 s\."):
            await run(sleeps)

    async def test_a_time_limit_ends_a_generator_too(self):
        @tool(timeout=0.01)
        async def drips():
            yield 1
            await asyncio.Event().wait()

        with pytest.raises(ToolError, match="'drips'"):
            await run(drips)

    async def test_a_timeout_raised_by_the_handler_stays_its_own(self):
        @tool(timeout=60)
        async def fails():
            raise TimeoutError("the printer is slow")

        with pytest.raises(TimeoutError, match="printer"):
            await run(fails)

    async def test_cancelling_the_call_cancels_the_handler(self):
        started, seen = asyncio.Event(), []

        async def waits():
            started.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                seen.append("cancelled")
                raise

        task = asyncio.get_running_loop().create_task(run(waits))
        await started.wait()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert seen == ["cancelled"]
