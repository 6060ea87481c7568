"""OpenTelemetry spans: one for each attempt of a turn, each step and each tool call.

Only turns whose `TurnConfig.telemetry` says something are traced. Without `opentelemetry-api` there
are no spans, without an SDK they go nowhere. `get_tracer` is the one place that knows the library.
What is recorded of tools is what was stored: a result that a hook withheld is not here either.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from thinkwell.core import json
from thinkwell.messages.message import text_of
from thinkwell.messages.usage import Usage
from thinkwell.turn.run.pending_call import PendingCall
from thinkwell.turn.run.prompt import Prompt
from thinkwell.turn.run.running import RunningTurn
from thinkwell.turn.run.step import Step

End = Callable[[Mapping[str, Any], Any], None]
"""Takes the attributes of a span's end, and what came out."""


class TelemetrySettings(msgspec.Struct, frozen=True, kw_only=True):
    """What `TurnConfig.telemetry` may say. Inputs are prompts and arguments, outputs the rest."""

    enabled: bool = True
    function_id: str | None = None
    metadata: Mapping[str, Any] = msgspec.field(default_factory=dict[str, Any])
    record_inputs: bool = True
    record_outputs: bool = True


def get_tracer() -> Any:
    """The tracer of the application, or None if OpenTelemetry is not installed."""
    try:
        from opentelemetry import trace
    except ImportError:
        return None
    return trace.get_tracer("thinkwell")


@contextmanager
def turn_span(turn: RunningTurn, prompt: Prompt) -> Generator[None]:
    """From the assembled prompt to the last step."""
    record, chosen = turn.record, turn.settings.telemetry
    facts = {
        "thinkwell.function_id": chosen.get("function_id") or type(turn.parts.agent_ref).__name__,
        "thinkwell.agent_id": record.agent_id,
        "thinkwell.request_id": record.request_id,
        "thinkwell.trigger": record.trigger,
        "thinkwell.attempt": record.attempt,
        **{f"thinkwell.metadata.{key}": v for key, v in chosen.get("metadata", {}).items()},
    }
    with _span(turn, "thinkwell.turn", facts, prompt.messages) as end:
        yield
        end({"thinkwell.steps": len(turn.steps), **_usage(turn.usage)}, text_of(turn.fold.message))


@contextmanager
def step_span(turn: RunningTurn, step: Step) -> Generator[None]:
    """One model call and its tools."""
    facts = {
        "thinkwell.step_number": step.number,
        "gen_ai.provider.name": step.model.provider,
        "gen_ai.request.model": step.model.model_id,
    }
    with _span(turn, "thinkwell.step", facts, (step.request.system, step.request.messages)) as end:
        yield
        done = turn.steps[-1]
        end({"thinkwell.finish_reason": done.finish_reason, **_usage(done.usage)}, done.text)


@contextmanager
def tool_span(turn: RunningTurn, call: PendingCall) -> Generator[None]:
    """From the question whether a call may run to its stored result."""
    facts = {"gen_ai.tool.name": call.tool_name, "gen_ai.tool.call.id": call.call_id}
    with _span(turn, "thinkwell.tool", facts, call.input) as end:
        yield
        part = turn.fold.tool_call(call.call_id) or {}
        result = part.get("output", part.get("errorText"))
        end({"thinkwell.tool.state": part.get("state")}, result)


@contextmanager
def _span(turn: RunningTurn, name: str, facts: Mapping[str, Any], given: Any) -> Generator[End]:
    chosen = TelemetrySettings(**turn.settings.telemetry)
    tracer = get_tracer() if turn.settings.telemetry and chosen.enabled else None
    if tracer is None:
        yield lambda _facts, _made: None
        return
    said = {"thinkwell.input": given} if chosen.record_inputs else {}
    whole = chosen.record_outputs
    options = {"record_exception": whole, "set_status_on_exception": whole}
    with tracer.start_as_current_span(name, attributes=_plain(facts, said), **options) as span:
        try:
            yield lambda facts, made: span.set_attributes(
                _plain(facts, {"thinkwell.output": made} if whole else {})
            )
        except BaseException as error:
            span.set_attributes({"error.type": type(error).__name__})
            raise


def _usage(usage: Usage) -> dict[str, Any]:
    counts = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    return {f"gen_ai.usage.{name}": count for name, count in counts.items()}


def _plain(*attributes: Mapping[str, Any]) -> dict[str, str | int | float]:
    """Attributes are plain values; anything else is recorded as JSON text."""
    given = {name: value for some in attributes for name, value in some.items()}
    plain = {n: v if isinstance(v, str | int | float) else json.dumps(v) for n, v in given.items()}
    return {name: value for name, value in plain.items() if given[name] is not None}
