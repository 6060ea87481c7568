"""What came of a tool call, as the text a model reads (pure)."""

from __future__ import annotations

from typing import Final, assert_never

from thinkwell.core import json
from thinkwell.messages.model_messages import ToolResultContent

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
