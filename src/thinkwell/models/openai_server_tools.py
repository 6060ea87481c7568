"""Tools that OpenAI runs itself: their items as calls with results (pure)."""

from __future__ import annotations

from typing import Any, Final

from thinkwell.core import json
from thinkwell.models.base import FilePart, ModelEvent, ToolCall, ToolResult
from thinkwell.models.openai_responses_request import PROVIDER

SERVER_CALLS: Final = {
    "web_search_call": ("action",),
    "file_search_call": ("queries",),
    "code_interpreter_call": ("code", "container_id"),
    "image_generation_call": ("revised_prompt",),
    "mcp_call": ("name", "arguments", "server_label"),
    "local_shell_call": ("action",),
}
"""Items of tools that OpenAI runs, and which of their fields are the input."""


def server_call(kind: str, call_id: str, item: dict[str, Any]) -> list[ModelEvent]:
    """A call that OpenAI ran: its item holds input and result."""
    asked = {name: item[name] for name in SERVER_CALLS[kind] if item.get(name) is not None}
    given = {"id", "type", *SERVER_CALLS[kind]}
    found = {name: value for name, value in item.items() if name not in given}
    events: list[ModelEvent] = []
    image = found.pop("result", None) if kind == "image_generation_call" else None
    if isinstance(image, str) and image:
        form = str(item.get("output_format") or "png")
        events.append(FilePart(f"data:image/{form};base64,{image}", f"image/{form}"))
    # A picture is too large to be kept twice; its call is told as text when it is sent back.
    kept = {} if kind == "image_generation_call" else {"item": item}
    call = ToolCall(
        call_id,
        kind.removesuffix("_call"),
        json.dumps(asked),
        {PROVIDER: kept},
        provider_executed=True,
    )
    error = item.get("error")
    if error or item.get("status") == "failed":
        return [call, *events, ToolResult(call_id, error=_error_text(error))]
    return [call, *events, ToolResult(call_id, output=found)]


def _error_text(error: object) -> str:
    return error if isinstance(error, str) else json.dumps(error) if error else "The call failed."
