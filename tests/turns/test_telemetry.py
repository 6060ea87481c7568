"""Spans of a turn (spec/02 §8.1 `telemetry`; M-040)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from tests.turns.configured import configured
from thinkwell.features import telemetry
from thinkwell.hooks.trace import TraceContext
from thinkwell.testing import call, pause


class FakeSpan:
    def __init__(self, name: str, attributes: dict[str, Any]) -> None:
        self.name = name
        self.attributes = attributes
        self.ended = False

        self.failed = False

    def set_attributes(self, attributes: dict[str, Any]) -> None:
        self.attributes = {**self.attributes, **attributes}

    def set_status(self, status: Any) -> None:
        self.failed = not status.is_ok
        assert status.description is None


class FakeTracer:
    """Looks like a tracer as far as the harness uses one."""

    def __init__(self) -> None:
        self.spans: list[FakeSpan] = []

    @contextmanager
    def start_as_current_span(
        self, name: str, *, attributes: dict[str, Any], **_: Any
    ) -> Iterator[FakeSpan]:
        span = FakeSpan(name, attributes)
        self.spans.append(span)
        try:
            yield span
        finally:
            span.ended = True


class TestTelemetry:
    @pytest.fixture
    def tracer(self, monkeypatch: pytest.MonkeyPatch) -> FakeTracer:
        tracer = FakeTracer()
        monkeypatch.setattr(telemetry, "get_tracer", lambda: tracer)
        return tracer

    async def test_m040_one_span_for_the_turn_each_step_and_each_tool(self, tracer: FakeTracer):
        whole = {"record_inputs": True, "record_outputs": True}
        config = {"telemetry": {"function_id": "f", "metadata": {"team": "t"}, **whole}}
        async with configured(config, [call("a")], "answer") as stage:
            result = await stage.agent.run("hi there")
        names = [span.name for span in tracer.spans]
        agent = type(stage.agent).__name__
        chat = "chat scripted"
        assert names == [f"invoke_agent {agent}", chat, "execute_tool a", chat]
        assert all(span.ended for span in tracer.spans)
        turn, _, tool_call, last = (span.attributes for span in tracer.spans)
        assert turn["thinkwell.function_id"] == "f"
        assert turn["thinkwell.request_id"] == result.request_id
        assert turn["thinkwell.metadata.team"] == "t"
        assert (tool_call["gen_ai.tool.name"], tool_call["gen_ai.tool.call.result"]) == ("a", "a")
        assert (last["thinkwell.output"], "hi there" in turn["thinkwell.input"]) == ("answer", True)

    async def test_the_attributes_are_those_of_the_conventions(self, tracer: FakeTracer):
        """spec/04 §17."""
        async with configured({"telemetry": {"enabled": True}}, [call("a")], "answer") as stage:
            await stage.agent.run("hi there")
        turn, first, tool_call, last = (span.attributes for span in tracer.spans)
        operations = [span.attributes["gen_ai.operation.name"] for span in tracer.spans]
        assert operations == ["invoke_agent", "chat", "execute_tool", "chat"]
        assert {span.attributes["gen_ai.conversation.id"] for span in tracer.spans} == {
            turn["gen_ai.conversation.id"]
        }
        assert turn["gen_ai.agent.name"] == type(stage.agent).__name__
        for span in (turn, first, last):
            assert span["gen_ai.provider.name"] == "scripted"
            assert span["gen_ai.request.model"] == "scripted"
            assert isinstance(span["gen_ai.usage.input_tokens"], int)
            assert isinstance(span["gen_ai.usage.output_tokens"], int)
        assert first["gen_ai.response.finish_reasons"] == ["tool-calls"]
        assert last["gen_ai.response.finish_reasons"] == ["stop"]
        assert tool_call["gen_ai.tool.call.id"]
        assert not any(span.failed for span in tracer.spans)

    async def test_a_model_call_ends_before_its_tools_begin(self, tracer: FakeTracer):
        ended: list[list[bool]] = []
        async with configured({"telemetry": {"enabled": True}}, [call("a")], "ok") as stage:
            stage.agent.add_hook(
                "before_tool_call", lambda _: ended.append([s.ended for s in tracer.spans])
            )
            await stage.agent.run("hi")
        assert ended == [[False, True, False]]

    async def test_m040_inputs_and_outputs_are_recorded_only_when_asked_for(
        self, tracer: FakeTracer
    ):
        config = {"telemetry": {"enabled": True}}
        async with configured(config, [call("a", {"n": 987654321})], "private answer") as stage:
            await stage.agent.run("private question")
        recorded = str([span.attributes for span in tracer.spans])
        assert "private" not in recorded
        assert "987654321" not in recorded
        assert len(tracer.spans) == 4

    @pytest.mark.parametrize("config", [None, {"telemetry": {"enabled": False}}])
    async def test_m040_no_span_unless_asked_for(self, tracer: FakeTracer, config: Any):
        async with configured(config, "ok") as stage:
            assert (await stage.agent.run("hi")).status == "completed"
        assert tracer.spans == []

    async def test_m040_a_redacted_result_is_not_in_a_span(self, tracer: FakeTracer):
        async with configured({"telemetry": {"record_outputs": True}}, [call("b")], "ok") as stage:
            stage.agent.add_hook("on_tool_result", lambda _: {"result": "***"})
            await stage.agent.run("hi")
        assert tracer.spans[2].attributes["gen_ai.tool.call.result"] == "***"

    async def test_m040_a_failed_turn_ends_its_spans_with_the_kind_of_error(
        self, tracer: FakeTracer
    ):
        async with configured({"telemetry": {"enabled": True}}, [pause()]) as stage:
            stage.agent.add_hook("on_chunk", lambda ctx: ctx.agent.cancel_chat())
            assert (await stage.agent.run("hi")).status == "aborted"
        assert [s.attributes["error.type"] for s in tracer.spans] == ["AbortTurn", "AbortTurn"]
        assert all(span.failed for span in tracer.spans)

    def test_a_span_names_the_model_that_answered_and_the_provider_as_the_conventions_do(
        self, tracer: FakeTracer
    ):
        facts = {"provider": "mistral", "model": "small"}
        context = TraceContext(kind="step", agent=self, telemetry={}, facts=facts, input="x")
        with telemetry.span(context):
            context.end_facts = {"response_model": "small-2501", "finish_reason": None}
        (recorded,) = tracer.spans
        assert recorded.name == "chat small"
        assert recorded.attributes == {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "mistral_ai",
            "gen_ai.request.model": "small",
            "gen_ai.response.model": "small-2501",
        }

    def test_a_tool_that_failed_marks_its_span_although_the_turn_goes_on(self, tracer: FakeTracer):
        facts = {"tool_name": "pay", "tool_call_id": "c"}
        context = TraceContext(kind="tool", agent=self, telemetry={}, facts=facts, input="x")
        with telemetry.span(context):
            context.end_facts = {"state": "output-error"}
        (recorded,) = tracer.spans
        assert (recorded.failed, recorded.attributes["error.type"]) == (True, "tool_error")

    async def test_m040_the_real_library_works_without_an_sdk(self):
        assert telemetry.get_tracer() is not None
        async with configured({"telemetry": {"enabled": True}}, [call("a")], "ok") as stage:
            assert (await stage.agent.run("hi")).status == "completed"


class TestTrace:
    """Whoever records spans otherwise adds a `trace` hook, as our own telemetry does."""

    async def test_it_is_asked_for_each_span_and_knows_how_each_ended(self):
        seen: list[tuple[str, Any]] = []

        @contextmanager
        def record(ctx: TraceContext) -> Iterator[None]:
            yield
            seen.append((ctx.kind, ctx.output))

        async with configured({"telemetry": {"enabled": True}}, [call("a")], "ok") as stage:
            stage.agent.add_hook("trace", record)
            await stage.agent.run("hi")
        assert seen == [("step", ""), ("tool", "a"), ("step", "ok"), ("turn", "ok")]

    async def test_nobody_is_asked_in_a_turn_without_telemetry(self):
        asked: list[Any] = []
        async with configured(None, [call("a")], "ok") as stage:
            stage.agent.add_hook("trace", asked.append)
            await stage.agent.run("hi")
        assert asked == []

    @pytest.mark.parametrize("stage_of_life", ["asked", "entered", "left"])
    async def test_what_it_raises_is_reported_and_changes_nothing(self, stage_of_life: str):
        @contextmanager
        def breaking(_: TraceContext) -> Iterator[None]:
            if stage_of_life == "entered":
                raise ValueError("entered")
            yield
            raise ValueError("left")

        def record(ctx: TraceContext) -> Any:
            if stage_of_life == "asked":
                raise ValueError("asked")
            return breaking(ctx)

        async with configured({"telemetry": {"enabled": True}}, "ok") as stage:
            stage.agent.add_hook("trace", record)
            result = await stage.agent.run("hi")
            reported = stage.fields("hook:error")
        assert result.status == "completed"
        assert [(e["event"], str(e["error"])) for e in reported] == [("trace", stage_of_life)] * 2

    async def test_a_span_cannot_swallow_a_stop(self):
        @contextmanager
        def swallowing(_: TraceContext) -> Iterator[None]:
            with suppress(BaseException):
                yield

        async with configured({"telemetry": {"enabled": True}}, [pause()]) as stage:
            stage.agent.add_hook("trace", swallowing)
            stage.agent.add_hook("on_chunk", lambda ctx: ctx.agent.cancel_chat())
            assert (await stage.agent.run("hi")).status == "aborted"
