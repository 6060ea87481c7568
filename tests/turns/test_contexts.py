"""Every field of every hook context is filled (spec/02 §5; M-004, M-007, M-012 to M-017)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.turns.recorder import EVENTS
from tests.turns.support import Stage, running
from thinkwell import Allow, Think, tool
from thinkwell.core.signal import AbortSignal
from thinkwell.messages.model_messages import (
    AssistantMessage,
    TextContent,
    ToolMessage,
    UserMessage,
)
from thinkwell.messages.usage import Usage
from thinkwell.models.base import FilePart, Finish, SourceUrl, ToolCall, ToolInputStart
from thinkwell.testing import error, reasoning, text

USAGE = Usage(
    input_tokens=11, output_tokens=7, total_tokens=18, reasoning_tokens=3, cached_input_tokens=5
)
STEP = [
    reasoning("hm", "m"),
    text("Look", "ing"),
    SourceUrl("s1", "https://example.com", "Example"),
    FilePart("data:text/plain;base64,eA==", "text/plain"),
    ToolInputStart("c1", "double"),
    ToolCall("c1", "double", '{"n":2}', {"acme": {"sig": "s"}}),
    Finish(
        reason="tool-calls",
        raw_reason="tool_use",
        usage=USAGE,
        response_id="r1",
        model_id="m1",
        headers={"x": "y"},
        provider_metadata={"acme": {"k": 1}},
        warnings=("careful",),
    ),
]


class Doubler(Think):
    system_prompt = "Be kind."

    @tool
    async def double(self, n: int) -> int:
        """Double a number."""
        return 2 * n


async def contexts(
    stage: Stage[Any], *, body: dict[str, Any] | None = None
) -> dict[str, list[Any]]:
    """Run one turn over the socket and collect what each hook was given."""
    seen: dict[str, list[Any]] = {event: [] for event in EVENTS}
    for event in EVENTS:
        stage.agent.add_hook(event, lambda *args, event=event: seen[event].append(args[-1]))
    stage.agent.add_hook("on_chat_response", lambda _: stage.log.append("told"))
    client = await stage.connect()
    await client.ask("hi", **(body or {}))
    await stage.log.until("told")
    return seen


@pytest.fixture
async def seen() -> dict[str, list[Any]]:
    async with running(Doubler, STEP, "4") as stage:
        stage.agent.add_hook("before_tool_call", lambda _: Allow({"n": 3}))
        found = await contexts(stage, body={"theme": "dark"})
        found["stage"] = [stage]
        return found


async def test_5_0_9_every_context_says_whose_turn_it_is(seen: dict[str, list[Any]]):
    (stage,) = seen["stage"]
    for event in EVENTS:
        for ctx in seen[event]:
            assert (ctx.request_id, ctx.trigger, ctx.continuation) == ("q1", "ws-chat", False)
            assert ctx.agent is stage.agent
            assert isinstance(ctx.abort_signal, AbortSignal)
            assert not ctx.abort_signal.aborted
    assert all(seen[event] for event in EVENTS if event != "on_chat_error")


async def test_5_3_1_m004_the_turn_context_has_the_assembled_prompt(seen: dict[str, list[Any]]):
    (ctx,) = seen["before_turn"]
    (stage,) = seen["stage"]
    assert ctx.system.startswith("Be kind.")
    assert ctx.messages == (UserMessage((TextContent("hi"),)),)
    assert list(ctx.tools) == ["double"]
    assert ctx.model is stage.model
    assert dict(ctx.body) == {"theme": "dark"}
    assert ctx.attempt == 0


async def test_5_3_1_the_body_can_be_written_as_json_and_not_changed():
    async with running(Doubler, "ok") as stage:
        written: list[str] = []

        def look(ctx: Any) -> None:
            written.append(json.dumps({"body": ctx.body, "metadata": ctx.turn_metadata}))
            with pytest.raises(TypeError):
                ctx.body["theme"] = "light"

        stage.agent.add_hook("before_turn", look)
        client = await stage.connect()
        await client.ask("hi", theme="dark", open=["a", "b"])
        await client.until_end()
        assert [json.loads(text)["body"] for text in written] == [
            {"theme": "dark", "open": ["a", "b"]}
        ]


async def test_5_3_1_a_turn_nobody_sent_a_body_with_has_none():
    async with running(Doubler, "ok") as stage:
        found: list[Any] = []
        stage.agent.add_hook("before_turn", found.append)
        await stage.agent.run("hi")
        assert (found[0].body, found[0].trigger) == (None, "programmatic")


async def test_5_5_1_m007_the_step_context_has_the_steps_so_far(seen: dict[str, list[Any]]):
    first, second = seen["before_step"]
    assert (first.step_number, first.steps, second.step_number) == (0, (), 1)
    assert [s.step_number for s in second.steps] == [0]
    assert first.system.startswith("Be kind.")
    assert list(second.tools) == ["double"]
    assert (first.tool_choice, first.model.model_id) == ("auto", "scripted")
    assert (first.remaining_steps, second.remaining_steps) == (10, 9)
    assert [type(m) for m in second.messages] == [UserMessage, AssistantMessage, ToolMessage]


async def test_5_8_1_m012_the_tool_call_context_has_everything(seen: dict[str, list[Any]]):
    (ctx,) = seen["before_tool_call"]
    assert (ctx.tool_call_id, ctx.tool_name, ctx.step_number) == ("c1", "double", 0)
    assert (dict(ctx.input), dict(ctx.original_input)) == ({"n": 3}, {"n": 2})
    assert ctx.messages == (UserMessage((TextContent("hi"),)),)
    assert dict(ctx.provider_metadata) == {"acme": {"sig": "s"}}
    assert (ctx.tool.name, ctx.tool.description) == ("double", "Double a number.")


async def test_5_10_m013_m014_the_tool_result_context_has_everything(seen: dict[str, list[Any]]):
    (ctx,) = seen["after_tool_call"]
    assert (ctx.tool_call_id, ctx.tool_name, ctx.step_number) == ("c1", "double", 0)
    assert (dict(ctx.input), dict(ctx.original_input)) == ({"n": 3}, {"n": 2})
    assert ctx.messages == (UserMessage((TextContent("hi"),)),)
    assert (ctx.success, ctx.outcome, ctx.output, ctx.error) == (True, "executed", 6, None)
    assert ctx.duration_ms > 0
    assert ctx.tool.name == "double"


async def test_5_11_m015_the_step_context_equals_what_the_model_said(seen: dict[str, list[Any]]):
    ctx = seen["on_step_finish"][0]
    assert (ctx.step_number, ctx.text, ctx.reasoning_text) == (0, "Looking", "hmm")
    assert [f["mediaType"] for f in ctx.files] == ["text/plain"]
    assert [(s["sourceId"], s["title"]) for s in ctx.sources] == [("s1", "Example")]
    assert [(c.tool_call_id, c.tool_name) for c in ctx.tool_calls] == [("c1", "double")]
    assert [(r.tool_call_id, r.output, r.error) for r in ctx.tool_results] == [("c1", 6, None)]
    assert (ctx.finish_reason, ctx.raw_finish_reason) == ("tool-calls", "tool_use")
    assert ctx.usage == USAGE
    assert (ctx.warnings, dict(ctx.provider_metadata)) == (("careful",), {"acme": {"k": 1}})
    assert ctx.request.messages == (UserMessage((TextContent("hi"),)),)
    kinds = [part["type"] for part in ctx.content]
    assert kinds == ["reasoning", "text", "source-url", "file", "tool-double"]


async def test_5_11_the_response_of_a_step_says_what_the_provider_said(seen: dict[str, list[Any]]):
    response = seen["on_step_finish"][0].response
    assert (response.id, response.model_id, dict(response.headers)) == ("r1", "m1", {"x": "y"})
    assert response.timestamp > 0
    assert [type(m) for m in response.messages] == [AssistantMessage, ToolMessage]


async def test_5_6_m016_every_chunk_is_seen_with_its_step_and_message(seen: dict[str, list[Any]]):
    found = seen["on_chunk"]
    (stage,) = seen["stage"]
    deltas = [c.chunk["delta"] for c in found if c.chunk["type"] == "text-delta"]
    assert deltas == ["Look", "ing", "4"]
    assert {c.message_id for c in found} == {seen["on_chat_response"][0].message["id"]}
    steps = [c.step_number for c in found]
    assert steps == sorted(steps)
    assert (steps[0], steps[-1]) == (0, 2) or (steps[0], steps[-1]) == (0, 1)
    assert stage.model.requests


async def test_5_14_m017_the_response_context_has_what_was_stored(seen: dict[str, list[Any]]):
    (ctx,) = seen["on_chat_response"]
    assert (ctx.status, ctx.error, ctx.stop_reason) == ("completed", None, "end")
    assert (ctx.steps, ctx.redelivered) == (2, False)
    assert ctx.usage.input_tokens == 21
    assert [p["type"] for p in ctx.message["parts"]][-1] == "text"


async def test_m017_the_message_of_the_response_hook_is_found_in_storage():
    async with running(Doubler, "ok") as stage:
        found = await contexts(stage)
        assert found["on_chat_response"][0].message == await stage.answer()


async def test_5_12_2_m019_the_error_context_has_stage_and_partial():
    async with running(Doubler, [text("par", "tial"), error(RuntimeError("boom"))]) as stage:
        found = await contexts(stage)
        (ctx,) = found["on_chat_error"]
        assert (ctx.stage, ctx.messages_persisted, ctx.attempt) == ("stream", True, 0)
        assert ctx.partial["parts"][-1]["text"] == "partial"
        (response,) = found["on_chat_response"]
        assert (response.status, response.error, response.stop_reason) == ("error", "boom", "error")


async def test_ac87_a_request_that_cannot_be_read_has_stage_parse():
    async with running(Doubler) as stage:
        found: list[Any] = []
        stage.agent.add_hook("on_chat_error", lambda _, ctx: found.append(ctx))
        client = await stage.connect()
        await client.send(
            type="cf_agent_use_chat_request", id="q1", init={"method": "POST", "body": "{"}
        )
        assert [(c.stage, c.messages_persisted, c.request_id) for c in found] == [
            ("parse", False, "q1")
        ]
        assert [end["error"] for end in client.ends()] == [True]
        assert await stage.messages() == []
