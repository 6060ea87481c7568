"""Results of tool calls, and files that a provider does not take, as a model reads them (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, assert_never, cast

from thinkwell.core import json
from thinkwell.messages.model_messages import FileContent, TextContent, ToolResultContent

NO_RESULT: Final = "No result was recorded for this tool call."
DENIED: Final = "The tool call was denied."


def result_text(part: ToolResultContent) -> str:
    """A tool result as text."""
    match part.kind:
        case "text" | "error-text":
            return part.value if isinstance(part.value, str) else json.dumps(part.value)
        case "json" | "error-json" | "content":
            return json.dumps(part.value)
        case "execution-denied":
            return part.value if isinstance(part.value, str) and part.value else DENIED
        case _:
            assert_never(part.kind)


def foreign_call_text(part: ToolResultContent) -> str:
    """What a tool found that another provider ran: only that provider accepts the call itself."""
    return f"[I used {part.tool_name}. It returned: {result_text(part)}]"


def result_content(part: ToolResultContent) -> str | list[TextContent | FileContent]:
    """A tool result for a provider that takes files in it: text, or text and files."""
    if part.kind != "content":
        return result_text(part)
    return [_content(item) for item in cast("list[dict[str, Any]]", part.value)]


def _content(item: Mapping[str, Any]) -> TextContent | FileContent:
    data, media_type = item.get("data"), item.get("mediaType")
    if isinstance(data, str) and isinstance(media_type, str):
        return FileContent(f"data:{media_type};base64,{data}", media_type)
    if isinstance(item.get("url"), str):
        return FileContent(item["url"], str(media_type or "image/png"))
    text = item.get("text")
    return TextContent(text if isinstance(text, str) and text else json.dumps(item))


def file_text(part: FileContent) -> str:
    """Stands for a file of a kind that the provider does not take."""
    where = "" if part.url.startswith("data:") else f": {part.url}"
    return f"[{part.filename or 'file'} ({part.media_type}){where}]"


def made_file_text(part: FileContent) -> str:
    """Stands for a file that the model has made: providers take none back."""
    return f"[I made a file: {part.filename or part.media_type}]"
