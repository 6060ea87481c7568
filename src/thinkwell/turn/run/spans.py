"""Where a turn can be traced: around the attempt, each model call and each tool call.

Says what happens there; `hooks/trace.py` calls those who record it. What is told of tools is what
was stored: a result that a hook withheld is not here either.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from thinkwell.hooks.trace import TraceContext, traced
from thinkwell.messages.message import text_of
from thinkwell.messages.usage import Usage
from thinkwell.models.base import Finish
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
        "trigger": record.trigger,
        "attempt": record.attempt,
        "provider": prompt.model.provider,
        "model": prompt.model.model_id,
    }
    context = _context(turn, "turn", facts, prompt.messages)
    with traced(turn.parts.hooks, context):
        yield
        context.end_facts = {"steps": len(turn.steps), **_usage(turn.usage)}
        context.output = text_of(turn.reply.fold.message)


@contextmanager
def step_span(turn: RunningTurn, step: Step) -> Generator[Callable[[Finish], None]]:
    """One model call. What it yields is told how the call ended."""
    facts = {
        "step_number": step.number,
        "provider": step.model.provider,
        "model": step.model.model_id,
    }
    context = _context(turn, "step", facts, (step.request.system, step.request.messages))

    def told(finish: Finish) -> None:
        ended = {"finish_reason": finish.reason, "response_model": finish.model_id}
        context.end_facts = {**ended, **_usage(finish.usage)}
        texts = (part for part in turn.reply.last_step() if part.get("type") == "text")
        context.output = "".join(str(part.get("text", "")) for part in texts)

    with traced(turn.parts.hooks, context):
        yield told


@contextmanager
def tool_span(turn: RunningTurn, call: PendingCall) -> Generator[None]:
    """From the question whether a call may run to its stored result."""
    facts = {"tool_name": call.tool_name, "tool_call_id": call.call_id}
    context = _context(turn, "tool", facts, call.input)
    with traced(turn.parts.hooks, context):
        yield
        part = turn.reply.fold.tool_call(call.call_id) or {}
        context.end_facts = {"state": part.get("state")}
        context.output = part.get("output", part.get("errorText"))


def _context(turn: RunningTurn, kind: Any, facts: dict[str, Any], given: Any) -> TraceContext:
    agent, asked = turn.parts.agent_ref, turn.settings.telemetry
    whose = {"agent_id": turn.record.agent_id, "request_id": turn.record.request_id}
    known = {**whose, **facts}
    return TraceContext(kind=kind, agent=agent, telemetry=asked, facts=known, input=given)


def _usage(usage: Usage) -> dict[str, Any]:
    return {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
