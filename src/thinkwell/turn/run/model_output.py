"""What the model reads of stored tool outputs, where a tool says so (`to_model_output`, §9.11)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from thinkwell.messages.model_messages import (
    AssistantMessage,
    ModelMessage,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
)
from thinkwell.tools.model_output import model_output
from thinkwell.tools.tool import Tool
from thinkwell.turn.run.running import RunningTurn


async def with_model_outputs(
    turn: RunningTurn, messages: tuple[ModelMessage, ...], tools: Mapping[str, Tool]
) -> tuple[ModelMessage, ...]:
    """The messages, with results rewritten by the tools that made them."""
    speaking = {name: tool for name, tool in tools.items() if tool.to_model_output is not None}
    if not speaking:
        return messages
    inputs: dict[str, Any] = {}
    result: list[ModelMessage] = []
    for message in messages:
        if isinstance(message, AssistantMessage):
            calls = (part for part in message.content if isinstance(part, ToolCallContent))
            inputs.update({call.tool_call_id: call.input for call in calls})
        if isinstance(message, ToolMessage):
            contents = [await _rewritten(turn, c, speaking, inputs) for c in message.content]
            if any(new is not old for new, old in zip(contents, message.content, strict=True)):
                message = ToolMessage(tuple(contents))  # else it stays the one that is stored
        result.append(message)
    return tuple(result)


async def _rewritten(
    turn: RunningTurn,
    content: ToolResultContent,
    tools: Mapping[str, Tool],
    inputs: Mapping[str, Any],
) -> ToolResultContent:
    tool = tools.get(content.tool_name)
    if tool is None or content.kind not in ("text", "json"):
        return content
    call_id = content.tool_call_id
    made = await model_output(
        tool.to_model_output,
        tool_call_id=call_id,
        input=inputs.get(call_id, {}),
        output=content.value,
    )
    if made.error is not None:
        turn.parts.bus.emit("hook:error", event="to_model_output", hook=tool.name, error=made.error)
    return msgspec.structs.replace(content, kind=made.kind, value=made.value)
