"""What a model still sees of older messages: shortened tool outputs and texts (spec/02 §10.6).

Read-time only: copies are made, nothing stored changes. The border between old and recent moves
in steps of four messages, so that what was sent last turn is sent again byte for byte and a
provider's prefix cache stays warm (spec/03 §14). The caller asks `count_older` where the border
is and keeps `truncate_message(...)` by message.
"""

from __future__ import annotations

from thinkwell.messages.message import Part, UIMessage, is_tool_part, with_parts
from thinkwell.messages.shorten import truncate_tool_output, truncation_note

KEEP_RECENT = 4
MAX_TOOL_OUTPUT_CHARS = 500
MAX_TEXT_CHARS = 10_000

_STEP = 4


def count_older(total: int, keep_recent: int = KEEP_RECENT) -> int:
    """How many messages of a path of `total` are old; at least `keep_recent` are not."""
    return max(0, total - keep_recent) // _STEP * _STEP


def truncate_message(
    message: UIMessage,
    *,
    max_tool_output_chars: int = MAX_TOOL_OUTPUT_CHARS,
    max_text_chars: int = MAX_TEXT_CHARS,
) -> UIMessage:
    """One message as it is shown once it is old; the same object when it is short enough."""
    parts = [
        _short_output(part, max_tool_output_chars)
        if is_tool_part(part)
        else _short_text(part, max_text_chars)
        for part in message["parts"]
    ]
    return with_parts(message, parts)


def _short_output(part: Part, max_chars: int) -> Part:
    for name in ("output", "result"):
        if name in part and (short := truncate_tool_output(part[name], max_chars)).truncated:
            part = {**part, name: short.value}
    return part


def _short_text(part: Part, max_chars: int) -> Part:
    text = part.get("text")
    if part.get("type") != "text" or not isinstance(text, str) or len(text) <= max_chars:
        return part
    return {**part, "text": text[:max_chars] + truncation_note(len(text))}
