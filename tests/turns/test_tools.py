"""Tool calls inside a turn (spec/02 §5.8-5.10, §9; AC02-AC16, AC22, AC25-AC29, AC85)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.turns.support import Stage, part_of, running
from thinkwell import Allow, Block, Substitute, Think, tool
from thinkwell.messages.model_messages import AssistantMessage, ToolCallContent, ToolMessage
from thinkwell.testing import call, finish


class Tools(Think):
    """One tool of each kind; `ran` has the inputs of those that ran."""

    @property
    def ran(self) -> list[Any]:
        return self.__dict__.setdefault("_ran", [])

    @tool
    async def double(self, n: int) -> int:
        """Double a number."""
        self.ran.append(n)
        return 2 * n

    @tool
    async def fails(self) -> str:
        """Always raises."""
        raise RuntimeError("it broke")

    @tool
    async def counts(self) -> AsyncIterator[int]:
        """Three preliminary results."""
        for n in (1, 2, 3):
            yield n

    @tool
    async def returns_counter(self) -> Any:
        """An awaitable that gives an iterator."""
        return self.counts()

    @tool
    async def breaks_half_way(self) -> AsyncIterator[int]:
        """One preliminary result, then an error."""
        yield 1
        raise RuntimeError("half-way")

    @tool
    async def gives_a_set(self) -> Any:
        """JSON has no sets."""
        return {1, 2}

    @tool
    async def gives_a_circle(self) -> Any:
        """JSON has no cycles."""
        circle: list[Any] = []
        circle.append(circle)
        return circle

    @tool
    async def cancels_itself(self) -> Any:
        """Raises what a cancelled task raises."""
        raise asyncio.CancelledError

    @tool
    def in_a_thread(self, n: int) -> int:
        """An ordinary function."""
        self.ran.append(n)
        return n


def results(stage: Stage[Any], request: int = 1) -> list[Any]:
    """The tool results the model was sent with its request number `request`."""
    message = next(m for m in stage.model.requests[request].messages if isinstance(m, ToolMessage))
    return list(message.content)


async def run_calls(stage: Stage[Any], *hooks: Any) -> list[Any]:
    """Run one turn; returns the contexts of after_tool_call."""
    seen: list[Any] = []
    for hook in hooks:
        stage.agent.add_hook("before_tool_call", hook)
    stage.agent.add_hook("after_tool_call", seen.append)
    result = await stage.agent.run("go")
    assert result.status == "completed"
    return seen


class TestSteps:
    async def test_ac02_the_second_step_sees_the_first_with_its_result(self):
        seen: list[Any] = []
        async with running(Tools, [call("double", {"n": 4})], "8") as stage:
            stage.agent.add_hook("before_step", seen.append)
            await stage.agent.run("go")
        assert [(c.step_number, len(c.steps)) for c in seen] == [(0, 0), (1, 1)]
        assert [r.output for r in seen[1].steps[0].tool_results] == [8]

    async def test_ac04_the_model_reads_results_in_call_order_clients_in_completion_order(self):
        fast_done = asyncio.Event()

        class Racing(Think):
            @tool
            async def slow(self) -> str:
                """Waits for the other."""
                await fast_done.wait()
                return "slow"

            @tool
            async def fast(self) -> str:
                """At once."""
                return "fast"

            async def after_tool_call(self, ctx: Any) -> None:
                if ctx.tool_name == "fast":
                    fast_done.set()

        async with running(Racing, [call("slow", id="a"), call("fast", id="b")], "ok") as stage:
            chunks = [chunk async for chunk in stage.agent.stream("go")]
            told = [c["toolCallId"] for c in chunks if c["type"] == "tool-output-available"]
            assert told == ["b", "a"]
            assert [r.tool_call_id for r in results(stage)] == ["a", "b"]

    async def test_ac05_one_failing_call_leaves_the_other_alone(self):
        async with running(Tools, [call("fails"), call("double", {"n": 1})], "ok") as stage:
            await run_calls(stage)
            answer = await stage.answer()
            assert part_of(answer, "call-1")["state"] == "output-error"
            assert part_of(answer, "call-2")["output"] == 2
            assert len(stage.model.requests) == 2


class TestDecisions:
    async def test_ac07_a_block_is_a_successful_result_with_the_reason(self):
        async with running(Tools, [call("double", {"n": 1})], "ok") as stage:
            (seen,) = await run_calls(stage, lambda _: Block("no"))
            assert (stage.agent.ran, seen.success) == ([], True)
            assert (seen.output, seen.outcome) == ("no", "blocked")
            assert part_of(await stage.answer())["state"] == "output-available"

    async def test_ac08_a_block_without_reason_names_the_tool(self):
        async with running(Tools, [call("double", {"n": 1})], "ok") as stage:
            (seen,) = await run_calls(stage, lambda _: Block())
            assert "double" in seen.output
            assert results(stage)[0].value == seen.output

    @pytest.mark.parametrize(
        "decision", [Substitute({"x": 1}), {"action": "substitute", "output": {"x": 1}}]
    )
    async def test_ac09_a_substitute_is_what_the_model_gets(self, decision: Any):
        async with running(Tools, [call("double", {"n": 1})], "ok") as stage:
            await run_calls(stage, lambda _: decision)
            assert stage.agent.ran == []
            assert [(r.kind, r.value) for r in results(stage)] == [("json", {"x": 1})]

    async def test_9_8_a_substitute_json_cannot_hold_is_a_tool_error(self):
        async with running(Tools, [call("double", {"n": 1})], "ok") as stage:
            (seen,) = await run_calls(stage, lambda _: Substitute(object()))
            assert (stage.agent.ran, seen.success) == ([], False)
            assert part_of(await stage.answer())["state"] == "output-error"

    async def test_ac10_allow_with_another_input_reaches_the_handler(self):
        async with running(Tools, [call("double", {"n": 1})], "ok") as stage:
            (seen,) = await run_calls(stage, lambda _: Allow({"n": 5}))
            assert stage.agent.ran == [5]
            assert (seen.input, seen.original_input) == ({"n": 5}, {"n": 1})

    async def test_ac11_an_invalid_replaced_input_is_a_tool_error_naming_the_field(self):
        async with running(Tools, [call("double", {"n": 1})], "ok") as stage:
            (seen,) = await run_calls(stage, lambda _: Allow({"n": "five"}))
            assert (stage.agent.ran, seen.success) == ([], False)
            assert "n" in part_of(await stage.answer())["errorText"]
            assert len(stage.model.requests) == 2

    async def test_5_8_5_an_input_json_cannot_hold_is_a_tool_error(self):
        class Anything(Tools):
            @tool
            async def take(self, value: Any) -> str:
                """Takes anything."""
                return "taken"

        async with running(Anything, [call("take", {"value": 1})], "ok") as stage:
            (seen,) = await run_calls(stage, lambda _: Allow({"value": object()}))
            assert seen.success is False

    async def test_ac12_a_policy_that_raises_keeps_its_text_from_the_model(self):
        def broken(_: Any) -> None:
            raise RuntimeError("the secret password")

        async with running(Tools, [call("double", {"n": 1})], "ok") as stage:
            (seen,) = await run_calls(stage, broken)
            assert (stage.agent.ran, seen.success) == ([], False)
            assert part_of(await stage.answer())["state"] == "output-error"
            assert "secret" not in results(stage)[0].value

    async def test_ac15_a_block_of_the_class_ends_the_chain(self):
        class Blocks(Tools):
            def before_tool_call(self, ctx: Any) -> Any:
                return Block("no")

        asked: list[Any] = []
        async with running(Blocks, [call("double", {"n": 1})], "ok") as stage:
            (seen,) = await run_calls(stage, asked.append)
            assert (asked, seen.outcome, stage.agent.ran) == ([], "blocked", [])

    async def test_ac16_a_later_hook_sees_the_input_an_earlier_one_chose(self):
        asked: list[Any] = []
        async with running(Tools, [call("double", {"n": 1})], "ok") as stage:
            await run_calls(stage, lambda _: Allow({"n": 7}), asked.append)
            assert [dict(c.input) for c in asked] == [{"n": 7}]
            assert dict(asked[0].original_input) == {"n": 1}

    async def test_a_decision_nobody_knows_keeps_the_tool_from_running(self):
        async with running(Tools, [call("double", {"n": 1})], "ok") as stage:
            (seen,) = await run_calls(stage, lambda _: "yes please")
            assert (stage.agent.ran, seen.outcome) == ([], "errored")


class TestBadCalls:
    async def test_ac22_an_unknown_tool_is_told_what_there_is(self):
        asked: list[Any] = []
        async with running(Tools, [call("dubble")], "ok") as stage:
            (seen,) = await run_calls(stage, asked.append)
            assert (asked, seen.tool, seen.outcome) == ([], None, "unknown")
            assert "double" in results(stage)[0].value
            assert results(stage)[0].kind == "error-text"

    @pytest.mark.parametrize("arguments", ["{not json", '{"n": }', "[1]", '"text"', '{"n":"x"}'])
    async def test_ac25_arguments_that_do_not_fit_are_a_tool_error(self, arguments: str):
        async with running(Tools, [call("double", arguments)], "ok") as stage:
            (seen,) = await run_calls(stage)
            assert (stage.agent.ran, seen.outcome) == ([], "invalid")
            assert part_of(await stage.answer())["state"] == "output-error"
            assert len(stage.model.requests) == 2

    async def test_9_6_a_malformed_input_is_replayed_to_the_model_as_an_object(self):
        async with running(Tools, [call("double", "{not json")], "ok") as stage:
            await run_calls(stage)
            asked = [m for m in stage.model.requests[1].messages if isinstance(m, AssistantMessage)]
            (made,) = [c for m in asked for c in m.content if isinstance(c, ToolCallContent)]
            assert made.input == {}

    async def test_9_5_no_arguments_at_all_are_an_empty_object(self):
        class Optional(Think):
            @tool
            async def hello(self, name: str = "you") -> str:
                """Greets."""
                return f"hello {name}"

        async with running(Optional, [call("hello", "")], "ok") as stage:
            (seen,) = await run_calls(stage)
            assert seen.output == "hello you"

    async def test_ac85_a_call_cut_by_the_output_limit_does_not_run(self):
        async with running(Tools, [call("double", {"n": 1}), finish("length")]) as stage:
            (seen,) = await run_calls(stage)
            assert (stage.agent.ran, seen.success) == ([], False)
            part = part_of(await stage.answer())
            assert part["state"] == "output-error"
            assert "length" in part["errorText"]


class TestResults:
    @pytest.mark.parametrize("name", ["counts", "returns_counter"])
    async def test_ac26_ac27_a_generator_streams_preliminary_results(self, name: str):
        async with running(Tools, [call(name)], "ok") as stage:
            seen: list[Any] = []
            stage.agent.add_hook("after_tool_call", seen.append)
            chunks = [chunk async for chunk in stage.agent.stream("go")]
            told = [c for c in chunks if c["type"] == "tool-output-available"]
            assert [(c["output"], c.get("preliminary", False)) for c in told] == [
                *((1, True), (2, True), (3, True)),
                (3, False),
            ]
            assert [c.output for c in seen] == [3]

    async def test_ac28_a_blocked_generator_streams_nothing(self):
        async with running(Tools, [call("counts")], "ok") as stage:
            stage.agent.add_hook("before_tool_call", lambda _: Block("no"))
            chunks = [chunk async for chunk in stage.agent.stream("go")]
            told = [c for c in chunks if c["type"] == "tool-output-available"]
            assert [(c["output"], "preliminary" in c) for c in told] == [("no", False)]

    @pytest.mark.parametrize(
        "name", ["gives_a_set", "gives_a_circle", "cancels_itself", "breaks_half_way", "fails"]
    )
    async def test_ac29_what_cannot_be_a_result_is_a_tool_error_and_the_turn_goes_on(
        self, name: str
    ):
        async with running(Tools, [call(name)], "ok") as stage:
            (seen,) = await run_calls(stage)
            assert (seen.success, seen.outcome) == (False, "errored")
            assert part_of(await stage.answer())["state"] == "output-error"
            assert results(stage)[0].kind == "error-text"

    @pytest.mark.parametrize("text", ["\ud83d half an emoji", ""])
    async def test_an_error_text_no_client_could_read_becomes_one_it_can(self, text: str):
        class Odd(Think):
            expose_errors = True

            @tool
            async def odd(self) -> str:
                """Raises an odd text."""
                raise RuntimeError(text)

        async with running(Odd, [call("odd")], "ok") as stage:
            await run_calls(stage)
            assert part_of(await stage.answer())["errorText"]

    async def test_an_error_that_cannot_be_printed_is_a_tool_error(self):
        class SilentError(Exception):
            def __str__(self) -> str:
                raise RuntimeError("no text")

        class Odd(Think):
            expose_errors = True

            @tool
            async def odd(self) -> str:
                """Raises what cannot be printed."""
                raise SilentError

        async with running(Odd, [call("odd")], "ok") as stage:
            await run_calls(stage)
            assert "SilentError" in part_of(await stage.answer())["errorText"]

    async def test_9_2_an_ordinary_function_runs_too(self):
        async with running(Tools, [call("in_a_thread", {"n": 3})], "ok") as stage:
            (seen,) = await run_calls(stage)
            assert (seen.output, stage.agent.ran) == (3, [3])
