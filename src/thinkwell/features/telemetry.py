"""OpenTelemetry spans, named as the semantic conventions for generative AI name them.

`invoke_agent` stands around an attempt of a turn, `chat` around each model call in it and
`execute_tool` around each tool call. Only turns whose `TurnConfig.telemetry` says something are
traced. Without `opentelemetry-api` there are no spans, without an SDK they go nowhere. This file
alone knows the library and the names of the conventions.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from thinkwell.core import json
from thinkwell.hooks.feature import Feature
from thinkwell.hooks.registry import TRACE
from thinkwell.hooks.trace import TraceContext

OPERATIONS: Final = {"turn": "invoke_agent", "step": "chat", "tool": "execute_tool"}
NAMES: Final = {
    "agent_id": "gen_ai.conversation.id",
    "provider": "gen_ai.provider.name",
    "model": "gen_ai.request.model",
    "response_model": "gen_ai.response.model",
    "finish_reason": "gen_ai.response.finish_reasons",
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "tool_name": "gen_ai.tool.name",
    "tool_call_id": "gen_ai.tool.call.id",
}
"""What the conventions call a fact; any other one is `thinkwell.` and its name."""
PROVIDERS: Final = {
    "openai-chat": "openai",
    "azure": "azure.ai.openai",
    "mistral": "mistral_ai",
    "xai": "x_ai",
}
"""Providers that the conventions spell otherwise."""
TOOL_INPUT, TOOL_OUTPUT = "gen_ai.tool.call.arguments", "gen_ai.tool.call.result"
TOOL_ERROR: Final = "tool_error"
"""The kind of error of a tool that raised; the model was told, and the turn went on."""


class TelemetrySettings(msgspec.Struct, frozen=True, kw_only=True):
    """What `TurnConfig.telemetry` may say. Inputs are prompts and arguments, outputs are replies,
    results of tools and the texts of errors: what people wrote leaves the process only if asked.
    """

    enabled: bool = True
    function_id: str | None = None
    metadata: Mapping[str, Any] = msgspec.field(default_factory=dict[str, Any])
    record_inputs: bool = False
    record_outputs: bool = False


def get_tracer() -> Any:
    """The tracer of the application, or None if OpenTelemetry is not installed."""
    try:
        from opentelemetry import trace
    except ImportError:
        return None
    return trace.get_tracer("thinkwell")


class Telemetry(Feature):
    """Records spans with OpenTelemetry. Another recorder is another feature with a `trace` hook."""

    name = "telemetry"
    namespace = False

    def hooks(self) -> Mapping[str, Callable[..., Any]]:
        """Asked about every span of a turn that wants some."""
        return {TRACE: span}


@contextmanager
def span(context: TraceContext) -> Generator[None]:
    """A span around what is traced, current while it lasts, so that a library's own join it."""
    chosen = TelemetrySettings(**context.telemetry)
    tracer = get_tracer() if chosen.enabled else None
    if tracer is None:
        yield
        return
    given, made = _content(context.kind)
    options: dict[str, Any] = {
        "kind": _span_kind(context.kind),
        "record_exception": chosen.record_outputs,
        "set_status_on_exception": False,  # it would tell the text of the error
    }
    facts = _named(context.facts) | _names(context, chosen)
    if chosen.record_inputs:
        facts |= _plain({given: context.input})
    with tracer.start_as_current_span(_title(context), attributes=facts, **options) as recorded:
        try:
            yield
        except BaseException as error:
            _mark_failed(recorded, type(error).__name__)
            raise
        recorded.set_attributes(_named(context.end_facts))
        if chosen.record_outputs:
            recorded.set_attributes(_plain({made: context.output}))
        if context.end_facts.get("state") == "output-error":
            _mark_failed(recorded, TOOL_ERROR)


def _title(context: TraceContext) -> str:
    """`chat gpt-4o`, `execute_tool pay`, `invoke_agent Clerk`."""
    facts = context.facts
    about = {"turn": type(context.agent).__name__, "step": facts.get("model")}
    return f"{OPERATIONS[context.kind]} {about.get(context.kind, facts.get('tool_name'))}"


def _content(kind: str) -> tuple[str, str]:
    """Where input and output are recorded."""
    return (TOOL_INPUT, TOOL_OUTPUT) if kind == "tool" else ("thinkwell.input", "thinkwell.output")


def _span_kind(kind: str) -> Any:
    from opentelemetry.trace import SpanKind

    return SpanKind.CLIENT if kind == "step" else SpanKind.INTERNAL


def _mark_failed(recorded: Any, kind: str) -> None:
    from opentelemetry.trace import Status, StatusCode

    recorded.set_attributes({"error.type": kind})
    recorded.set_status(Status(StatusCode.ERROR))


def _names(context: TraceContext, chosen: TelemetrySettings) -> dict[str, Any]:
    """What a span is to be found by."""
    operation = {"gen_ai.operation.name": OPERATIONS[context.kind]}
    if context.kind == "tool":
        return {**operation, "gen_ai.tool.type": "function"}
    if context.kind == "step":
        return operation
    name = type(context.agent).__name__
    said = {f"thinkwell.metadata.{key}": value for key, value in chosen.metadata.items()}
    function = {"thinkwell.function_id": chosen.function_id or name}
    return {**operation, "gen_ai.agent.name": name, **function, **_plain(said)}


def _named(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Facts under the names of the conventions."""
    named = {NAMES.get(name, f"thinkwell.{name}"): value for name, value in facts.items()}
    provider, reason = named.get(NAMES["provider"]), named.pop(NAMES["finish_reason"], None)
    if provider is not None:
        named[NAMES["provider"]] = PROVIDERS.get(provider, provider)
    reasons = {} if reason is None else {NAMES["finish_reason"]: [reason]}
    return {**_plain(named), **reasons}


def _plain(given: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes are plain values; anything else is recorded as JSON text, None not at all."""
    return {
        name: value if isinstance(value, str | int | float) else json.dumps(value)
        for name, value in given.items()
        if value is not None
    }
