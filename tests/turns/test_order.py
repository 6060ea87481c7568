"""The order of hooks, storage and frames (spec/02 §7, DESIGN §1)."""

from __future__ import annotations

from typing import Any

from tests.turns.recorder import (
    Recorder,
    assert_told_after_stored,
    hooks,
    recording,
    without_storage,
)
from thinkwell import Block, Substitute
from thinkwell.testing import call, error, finish, pause, text

END = ["settled completed", "stored assistant", "on_chat_response completed"]


async def finished_log(cls: type[Recorder], *steps: Any) -> list[str]:
    async with recording(cls, *steps) as stage:
        client = await stage.connect()
        await client.ask("hi")
        await stage.log.until("on_chat_response'")
        assert_told_after_stored(stage.log)
        return stage.log


class TestPlainAnswer:
    async def test_7_1_ac01_hooks_storage_and_chunks_come_in_the_order_of_the_spec(self):
        log = await finished_log(Recorder, [text("Hel", "lo")])
        assert hooks(log, chunks=True) == [
            "stored user",
            "before_turn",
            "before_step 0",
            "on_chunk start",
            "on_chunk start-step",
            "on_chunk text-start",
            "on_chunk text-delta",
            "on_chunk text-delta",
            "on_chunk text-end",
            "on_chunk finish-step",
            "on_step_finish 0",
            "on_chunk finish",
            *END,
        ]

    async def test_ac01_two_messages_are_stored_and_the_result_is_what_the_model_said(self):
        async with recording(Recorder, "Hello there") as stage:
            result = await stage.agent.run("hi")
            assert (result.status, result.text) == ("completed", "Hello there")
            assert [m["role"] for m in await stage.messages()] == ["user", "assistant"]
            assert result.message == await stage.answer()

    async def test_5_0_1_each_registered_hook_runs_right_after_the_method_of_the_class(self):
        log = await finished_log(Recorder, "Hello")
        events = [line for line in log if line.startswith(("before_", "on_", "after_"))]
        own = [line for line in events if "'" not in line.split(" ")[0]]
        assert events == [twin for line in own for twin in (line, _primed(line))]

    async def test_4_5_the_response_hook_comes_after_the_stored_answer_and_terminal_frame(self):
        log = await finished_log(Recorder, "Hello")
        stored, ends = log.index("stored assistant"), log.index("frame done")
        assert stored < ends
        assert "frame message_updated" in log[stored:ends]
        # The last chunk may go with a commit of chunks before, never after the end.
        assert log.index("committed finish") < log.index("frame finish") < ends
        assert log.index("on_chat_response completed") > ends

    async def test_2_15_the_turn_is_accepted_before_its_input_joins_the_tree(self):
        log = await finished_log(Recorder, "Hello")
        assert log.index("accepted") < log.index("stored user") < log.index("before_turn")


class TestTools:
    async def test_7_2_ac03_two_tools_in_sequence_make_three_steps(self):
        log = await finished_log(Recorder, [call("a")], [call("b")], "done")
        assert hooks(log) == [
            "stored user",
            "before_turn",
            *("before_step 0", "before_tool_call a", "ran a", "after_tool_call a executed"),
            "on_step_finish 0",
            *("before_step 1", "before_tool_call b", "ran b", "after_tool_call b executed"),
            "on_step_finish 1",
            *("before_step 2", "on_step_finish 2"),
            *END,
        ]

    async def test_7_2_after_tool_call_then_the_result_chunk_then_the_end_of_the_step(
        self,
    ):
        log = await finished_log(Recorder, [call("a")], "done")
        lines = hooks(log, chunks=True)
        start = lines.index("on_chunk tool-input-available")
        assert lines[start : start + 7] == [
            "on_chunk tool-input-available",
            "before_tool_call a",
            "ran a",
            "after_tool_call a executed",
            "on_chunk tool-output-available",
            "on_chunk finish-step",
            "on_step_finish 0",
        ]

    async def test_a_call_is_claimed_before_the_tool_runs_and_after_the_policy_was_asked(self):
        log = await finished_log(Recorder, [call("a")], "done")
        assert log.index("before_tool_call a") < log.index("claimed a") < log.index("ran a")
        assert log.index("frame tool-input-available") < log.index("ran a")

    async def test_7_3_both_calls_are_announced_before_any_policy_is_asked(self):
        log = await finished_log(Recorder, [call("a"), call("b")], "done")
        lines = hooks(log, chunks=True)
        announced = [i for i, x in enumerate(lines) if x == "on_chunk tool-input-available"]
        asked = [i for i, x in enumerate(lines) if x.startswith("before_tool_call")]
        assert max(announced) < min(asked)
        assert [lines[i] for i in asked] == ["before_tool_call a", "before_tool_call b"]
        results = [i for i, x in enumerate(lines) if x == "on_chunk tool-output-available"]
        assert len(results) == 2
        assert lines.index("on_step_finish 0") > max(results)

    async def test_7_4_a_blocked_call_runs_no_handler(self):
        class Blocks(Recorder):
            async def before_tool_call(self, ctx: Any) -> Any:
                await super().before_tool_call(ctx)
                return Block("no")

        assert await tool_lines(Blocks, "a") == ["before_tool_call a", "after_tool_call a blocked"]

    async def test_7_5_a_substituted_call_runs_no_handler(self):
        class Substitutes(Recorder):
            async def before_tool_call(self, ctx: Any) -> Any:
                await super().before_tool_call(ctx)
                return Substitute(1)

        lines = await tool_lines(Substitutes, "a")
        assert lines == ["before_tool_call a", "after_tool_call a substituted"]

    async def test_7_6_a_handler_that_raises_ends_its_call_and_the_model_goes_on(self):
        lines = await tool_lines(Recorder, "fails")
        assert lines == ["before_tool_call fails", "ran fails", "after_tool_call fails errored"]

    async def test_7_6_a_policy_that_raises_keeps_the_handler_from_running(self):
        class Raises(Recorder):
            async def before_tool_call(self, ctx: Any) -> Any:
                await super().before_tool_call(ctx)
                raise RuntimeError("policy broke")

        assert await tool_lines(Raises, "a") == ["before_tool_call a", "after_tool_call a errored"]

    async def test_7_7_an_unknown_tool_reaches_neither_policy_nor_handler(self):
        assert await tool_lines(Recorder, "nope") == ["after_tool_call nope unknown"]

    async def test_7_7_invalid_arguments_reach_neither_policy_nor_handler(self):
        assert await tool_lines(Recorder, "a", {"n": "x"}) == ["after_tool_call a invalid"]


class TestEndings:
    async def test_7_10_a_stop_in_mid_text_cuts_the_step_and_runs_no_error_hook(self):
        gate = pause()
        async with recording(Recorder, [text("par", "tial"), gate, "never"]) as stage:
            client = await stage.connect()
            await client.ask("hi")
            await gate.reached()
            await client.send(type="cf_agent_chat_request_cancel", id="q1")
            await stage.log.until("on_chat_response'")
            assert hooks(stage.log) == [
                *("stored user", "before_turn", "before_step 0"),
                *("settled aborted", "stored assistant", "on_chat_response aborted"),
            ]
            assert_told_after_stored(stage.log)

    async def test_7_10_a_stop_while_a_tool_runs_settles_its_call_first(self):
        async with recording(Recorder, [call("waits")]) as stage:
            client = await stage.connect()
            await client.ask("hi")
            await stage.log.until("ran waits")
            await client.send(type="cf_agent_chat_request_cancel", id="q1")
            await stage.log.until("on_chat_response'")
            ran = hooks(stage.log).index("ran waits")
            assert hooks(stage.log)[ran + 1 :] == [
                "after_tool_call waits aborted",
                *("settled aborted", "stored assistant", "on_chat_response aborted"),
            ]

    async def test_7_11_a_model_error_goes_through_the_error_hook_then_storage_then_frame(self):
        broken = [text("par", "tial"), error(RuntimeError("boom"))]
        log = await finished_log(Recorder, broken)
        assert hooks(log) == [
            *("stored user", "before_turn", "before_step 0", "on_chat_error stream"),
            *("settled error", "stored assistant", "on_chat_response error"),
        ]
        assert log.index("stored assistant") < log.index("frame error")
        assert log.index("frame error") < log.index("on_chat_response error")

    async def test_7_12_a_before_turn_that_raises_fails_the_turn_without_a_model_call(self):
        class Raises(Recorder):
            async def before_turn(self, ctx: Any) -> Any:
                await super().before_turn(ctx)
                raise RuntimeError("no")

        log = await finished_log(Raises)
        assert hooks(log) == [
            *("stored user", "before_turn", "on_chat_error turn"),
            *("settled error", "on_chat_response error"),
        ]
        assert "frame error" in log

    async def test_a_step_cut_by_the_output_limit_still_finishes(self):
        log = await finished_log(Recorder, [text("cut"), finish("length")])
        lines = without_storage(hooks(log))
        assert lines[-2:] == ["on_step_finish 0", "on_chat_response completed"]


async def tool_lines(cls: type[Recorder], name: str, arguments: Any = "") -> list[str]:
    """What happened between the two steps of a turn with one call."""
    log = hooks(await finished_log(cls, [call(name, arguments)], "done"))
    assert log[-5:] == ["before_step 1", "on_step_finish 1", *END]
    return log[log.index("before_step 0") + 1 : log.index("on_step_finish 0")]


def _primed(line: str) -> str:
    event, _, rest = line.partition(" ")
    return f"{event}' {rest}".strip()
