"""OpenTelemetry spans: one for each attempt of a turn, each step and each tool call.

Only turns whose `TurnConfig.telemetry` says something are traced. Without `opentelemetry-api` there
are no spans, without an SDK they go nowhere. `get_tracer` is the one place that knows the library.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from thinkwell.core import json
from thinkwell.hooks.feature import Feature
from thinkwell.hooks.registry import TRACE
from thinkwell.hooks.trace import TraceContext


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
    given = {"thinkwell.input": context.input} if chosen.record_inputs else {}
    whole = chosen.record_outputs
    options = {"record_exception": whole, "set_status_on_exception": whole}
    facts = _plain(_names(context, chosen), context.facts, given)
    with tracer.start_as_current_span(
        f"thinkwell.{context.kind}", attributes=facts, **options
    ) as recorded:
        try:
            yield
        except BaseException as error:
            recorded.set_attributes({"error.type": type(error).__name__})
            raise
        made = {"thinkwell.output": context.output} if whole else {}
        recorded.set_attributes(_plain(context.end_facts, made))


def _names(context: TraceContext, chosen: TelemetrySettings) -> dict[str, Any]:
    """What the turn's span is to be found by."""
    if context.kind != "turn":
        return {}
    name = chosen.function_id or type(context.agent).__name__
    said = {f"thinkwell.metadata.{key}": value for key, value in chosen.metadata.items()}
    return {"thinkwell.function_id": name, **said}


def _plain(*attributes: Mapping[str, Any]) -> dict[str, str | int | float]:
    """Attributes are plain values; anything else is recorded as JSON text."""
    given = {name: value for some in attributes for name, value in some.items()}
    plain = {n: v if isinstance(v, str | int | float) else json.dumps(v) for n, v in given.items()}
    return {name: value for name, value in plain.items() if given[name] is not None}
