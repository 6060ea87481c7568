"""What a turn answered, step by step, and where two answers to the same question part. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from thinkwell.core import json
from thinkwell.messages.fold import Fold
from thinkwell.messages.message import is_tool_part, tool_name
from thinkwell.turn.run.step_result import step_blocks


class StepSaid(msgspec.Struct, frozen=True):
    """The text of one step, and its calls as name and input."""

    text: str
    calls: tuple[tuple[str, str], ...]


def said_in(bodies: Sequence[str]) -> list[StepSaid]:
    """What the steps of a stream say."""
    fold = Fold({"id": "", "role": "assistant", "parts": []})
    for body in bodies:
        fold.apply(json.loads(body))
    said: list[StepSaid] = []
    for block in step_blocks(fold.message["parts"]):
        text = "".join(str(part["text"]) for part in block if part["type"] == "text")
        calls = [(tool_name(p), _input(p.get("input"))) for p in block if is_tool_part(p)]
        said.append(StepSaid(text, tuple(sorted(calls))))
    return said


def divergence(recorded: Sequence[str], now: Sequence[str]) -> str:
    """Where another answer parts from the recorded one, in a few words."""
    before, after = said_in(recorded), said_in(now)
    for number in range(max(len(before), len(after))):
        if number >= len(after):
            return f"ends after {_steps(len(after))} instead of {len(before)}"
        if number >= len(before):
            return f"goes on after {_steps(len(before))}: {_calls(after[number])}"
        if before[number].calls != after[number].calls:
            return f"step {number}: {_calls(after[number])} instead of {_calls(before[number])}"
    same = [step.text for step in before] == [step.text for step in after]
    return "none" if same else "same calls, other words"


def _calls(step: StepSaid) -> str:
    return ", ".join(f"{name}({given})" for name, given in step.calls) or "no call"


def _steps(count: int) -> str:
    return "1 step" if count == 1 else f"{count} steps"


def _input(given: Any) -> str:
    text = json.canonical(given or {})
    return text if len(text) <= 60 else f"{text[:59]}…"
