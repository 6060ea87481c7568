"""How the calls of a model are told: as they are read, before any of them runs (spec/01 F5-F12).

A call of a tool that nobody knows is `dynamic`; clients then keep it as a part of its own kind. The
input of a chunk is an object in every case. A call that cannot run is told as failed at once,
unless an `on_tool_error` hook has to see the error first.
"""

from __future__ import annotations

import msgspec

from thinkwell.core import json
from thinkwell.journal.events import ResponseKept
from thinkwell.messages.chunks import Chunk, tool_error, tool_output
from thinkwell.messages.message import Part, normalize_input, tool_name
from thinkwell.models.base import ToolCall, ToolInputStart, ToolResult
from thinkwell.turn.run.pending_call import PendingCall, known_tool
from thinkwell.turn.run.running import RunningTurn
from thinkwell.turn.run.step import Step
from thinkwell.turn.run.step_result import has_result


async def emit_call(
    turn: RunningTurn, call: PendingCall, kept: ResponseKept | None = None
) -> PendingCall:
    """Say that a call is complete, or that it has failed."""
    if call.problem is None:
        await turn.emit(call.input_chunk(), kept)
    elif not turn.parts.hooks.registry.hooks("on_tool_error"):
        await turn.emit(input_error(call, json.error_text(call.problem)), kept)
        return msgspec.structs.replace(call, told=True)
    return call


def input_start(turn: RunningTurn, step: Step, event: ToolInputStart) -> Chunk:
    """A call begins."""
    chunk: Chunk = {
        "type": "tool-input-start",
        "toolCallId": event.tool_call_id,
        "toolName": event.tool_name,
    }
    if event.provider_executed:
        chunk["providerExecuted"] = True
    elif turn.settings.repair_tool_call is None and not known_tool(turn, step, event.tool_name):
        chunk["dynamic"] = True  # a name that may be mended is no sign of an unknown tool
    return chunk


def input_error(call: PendingCall, text: str) -> Chunk:
    """A call that cannot run: its tool is unknown, or its input does not fit."""
    written = call.input if call.raw_input is None else normalize_input(call.raw_input)
    chunk = {**call.input_chunk(), "type": "tool-input-error", "input": written, "errorText": text}
    chunk.pop("providerMetadata", None)
    return chunk


def provider_call(event: ToolCall) -> Chunk:
    """A call that the provider runs."""
    chunk: Chunk = {
        "type": "tool-input-available",
        "toolCallId": event.tool_call_id,
        "toolName": event.tool_name,
        "input": normalize_input(event.input),
        "providerExecuted": True,
    }
    return _with_metadata(chunk, event)


def provider_result(event: ToolResult) -> Chunk:
    """What came of a call that the provider ran."""
    if event.error is not None:
        chunk = tool_error(event.tool_call_id, event.error)
    else:
        output = json.to_jsonable(event.output)
        chunk = tool_output(event.tool_call_id, output, preliminary=event.preliminary)
    return _with_metadata({**chunk, "providerExecuted": True}, event)


def provider_chunks(part: Part) -> list[Chunk]:
    """A call that the provider ran, said again."""
    opened: Chunk = {
        "type": "tool-input-available",
        "toolCallId": part["toolCallId"],
        "toolName": tool_name(part),
        "input": part.get("input"),
        "providerExecuted": True,
    }
    if not has_result(part):
        return [opened]
    error = part.get("errorText")
    result = ToolResult(part["toolCallId"], part.get("output"), error)
    return [opened, provider_result(result)]


def _with_metadata(chunk: Chunk, event: ToolCall | ToolResult) -> Chunk:
    if event.provider_metadata is not None:
        chunk["providerMetadata"] = event.provider_metadata
    return chunk
