"""Where a turn can be traced: around the attempt, each step and each tool call.

Says what happens there; `hooks/trace.py` calls those who record it. What is told of tools is what
was stored: a result that a hook withheld is not here either.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from thinkwell.hooks.trace import TraceContext, traced
from thinkwell.messages.message import text_of
from thinkwell.messages.usage import Usage
from thinkwell.turn.run.pending_call import PendingCall
from thinkwell.turn.run.running import RunningTurn
from thinkwell.turn.run.step import Prompt, Step

UNTRACED: AbstractContextManager[None] = nullcontext()
"""Stands in a turn that asked for no spans: most do, and then nothing is made for them."""


@contextmanager
def turn_span(turn: RunningTurn, prompt: Prompt) -> Generator[None]:
    """From the assembled prompt to the last step."""
    record = turn.record
    facts = {
        "thinkwell.agent_id": record.agent_id,
        "thinkwell.request_id": record.request_id,
        "thinkwell.trigger": record.trigger,
        "thinkwell.attempt": record.attempt,
    }
    context = _context(turn, "turn", facts, prompt.messages)
    with traced(turn.parts.hooks, context):
        yield
        context.end_facts = {"thinkwell.steps": len(turn.steps), **_usage(turn.usage)}
        context.output = text_of(turn.reply.fold.message)


@contextmanager
def step_span(turn: RunningTurn, step: Step) -> Generator[None]:
    """One model call and its tools."""
    facts = {
        "thinkwell.step_number": step.number,
        "gen_ai.provider.name": step.model.provider,
        "gen_ai.request.model": step.model.model_id,
    }
    context = _context(turn, "step", facts, (step.request.system, step.request.messages))
    with traced(turn.parts.hooks, context):
        yield
        done = turn.steps[-1]
        context.end_facts = {"thinkwell.finish_reason": done.finish_reason, **_usage(done.usage)}
        context.output = done.text


@contextmanager
def tool_span(turn: RunningTurn, call: PendingCall) -> Generator[None]:
    """From the question whether a call may run to its stored result."""
    facts = {"gen_ai.tool.name": call.tool_name, "gen_ai.tool.call.id": call.call_id}
    context = _context(turn, "tool", facts, call.input)
    with traced(turn.parts.hooks, context):
        yield
        part = turn.reply.fold.tool_call(call.call_id) or {}
        context.end_facts = {"thinkwell.tool.state": part.get("state")}
        context.output = part.get("output", part.get("errorText"))


def _context(turn: RunningTurn, kind: Any, facts: dict[str, Any], given: Any) -> TraceContext:
    agent, asked = turn.parts.agent_ref, turn.settings.telemetry
    return TraceContext(kind=kind, agent=agent, telemetry=asked, facts=facts, input=given)


def _usage(usage: Usage) -> dict[str, Any]:
    counts = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    return {f"gen_ai.usage.{name}": count for name, count in counts.items()}
