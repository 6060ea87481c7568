"""A finished step as a record, made from its parts.

The same for a live step and one read back (pure).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import msgspec

from thinkwell.hooks.contexts import StepResult, StopReason, ToolCallInfo, ToolResultInfo
from thinkwell.journal.events import ModelEnded, encode_event
from thinkwell.messages.convert import to_model_messages
from thinkwell.messages.message import Part, UIMessage, is_settled, is_tool_part, tool_name
from thinkwell.messages.model_messages import ModelMessage
from thinkwell.messages.sanitize import is_kept
from thinkwell.models.base import Finish, FinishReason


def has_result(part: Part) -> bool:
    """Whether a call has its last word: a preliminary result is none, its tool may still run."""
    return is_settled(part) and part.get("preliminary") is not True


def step_blocks(parts: Sequence[Part]) -> list[list[Part]]:
    """The parts of each step: a message is split at its `step-start` parts."""
    blocks: list[list[Part]] = []
    for part in parts:
        if part.get("type") == "step-start":
            blocks.append([])
        elif blocks:
            blocks[-1].append(part)
    return blocks


def last_block(parts: Sequence[Part]) -> list[Part]:
    """The parts of the last step alone; an answer may have had a hundred before it."""
    begin = len(parts)
    while parts[begin - 1].get("type") != "step-start":
        begin -= 1
        if not begin:
            raise IndexError("no step has begun")
    return list(parts[begin:])


def step_messages(
    block: Sequence[Mapping[str, Any]],
    *,
    with_open_calls: bool = False,
    with_provider_calls: bool = False,
) -> tuple[ModelMessage, ...]:
    """A step as the model sees it afterwards.

    If asked for, with calls that have no result yet: all of them, for hooks, or those that the
    provider runs and has paused in, which it wants to see again as it left them.
    """
    parts = [dict(part) for part in block]
    if with_provider_calls:
        return to_model_messages(
            {"id": "", "role": "assistant", "parts": parts}, open_provider_calls=True
        )
    if with_open_calls:
        parts = [
            {**part, "state": "output-available", "output": None}
            if is_tool_part(part) and not has_result(part)
            else part
            for part in parts
        ]
    return to_model_messages({"id": "", "role": "assistant", "parts": parts})


def has_content(message: UIMessage) -> bool:
    """Whether anything would be stored beside step marks."""
    return any(part.get("type") != "step-start" and is_kept(part) for part in message["parts"])


def step_result(
    number: int, block: Sequence[Part], finish: Finish, is_dynamic: Callable[[Part], bool]
) -> StepResult:
    """The record of one step. The parts do not tell whose the tools are: `is_dynamic` does."""
    tools = [part for part in block if is_tool_part(part)]
    return StepResult(
        step_number=number,
        text=_joined(block, "text"),
        reasoning=tuple(part for part in block if part.get("type") == "reasoning"),
        reasoning_text=_joined(block, "reasoning"),
        files=tuple(part for part in block if part.get("type") == "file"),
        sources=tuple(part for part in block if str(part.get("type")).startswith("source-")),
        tool_calls=tuple(_call(part, dynamic=is_dynamic(part)) for part in tools),
        tool_results=tuple(
            _result(part, dynamic=is_dynamic(part)) for part in tools if has_result(part)
        ),
        finish_reason=finish.reason,
        raw_finish_reason=finish.raw_reason,
        usage=finish.usage,
        warnings=finish.warnings,
        provider_metadata=finish.provider_metadata,
        content=tuple(block),
    )


def finish_to_json(number: int, finish: Finish, at: float, answer: str | None = None) -> str:
    """The journal's record of the end of a model call.

    Stored format: change only with a migration.
    """
    return encode_event(
        ModelEnded(
            step_number=number,
            finish_reason=finish.reason,
            raw_finish_reason=finish.raw_reason,
            usage=finish.usage,
            provider_metadata=finish.provider_metadata,
            response_id=finish.response_id,
            model_id=finish.model_id,
            warnings=finish.warnings,
            at=at,
            answer=answer,
            answered_by=finish.answered_by,
        )
    )


def finish_from_json(body: dict[str, Any]) -> Finish:
    """Read `finish_to_json` back."""
    ended = msgspec.convert(body, ModelEnded)
    return Finish(
        reason=cast("FinishReason", ended.finish_reason),
        raw_reason=ended.raw_finish_reason,
        usage=ended.usage,
        provider_metadata=ended.provider_metadata,
        answered_by=ended.answered_by,
    )


def _joined(block: Sequence[Part], kind: str) -> str:
    return "".join(str(part.get("text", "")) for part in block if part.get("type") == kind)


def _call(part: Part, *, dynamic: bool) -> ToolCallInfo:
    return ToolCallInfo(
        tool_call_id=part["toolCallId"],
        tool_name=tool_name(part),
        input=part.get("input"),
        dynamic=dynamic,
    )


def _result(part: Part, *, dynamic: bool) -> ToolResultInfo:
    return ToolResultInfo(
        tool_call_id=part["toolCallId"],
        tool_name=tool_name(part),
        input=part.get("input"),
        output=part.get("output"),
        error=part.get("errorText"),
        dynamic=dynamic,
    )


MAY_GO_ON: frozenset[str] = frozenset({"stop", "tool-calls", "other"})
"""Finish reasons after which tools run and another step may follow (spec/02 §4.2)."""


def stop_reason_of(finish_reason: str, *, capped: bool = False) -> StopReason:
    """The turn's stop reason for the finish reason of its last step."""
    if capped and finish_reason in MAY_GO_ON:
        return "max_steps"
    known: dict[str, StopReason] = {
        "length": "length",
        "content-filter": "content-filter",
        "other": "other",
    }
    return known.get(finish_reason, "end")
