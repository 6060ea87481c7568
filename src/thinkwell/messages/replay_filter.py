"""Which chunks of a stream say nothing new, because the message already knows better (F18).

Asked before a chunk is stored or forwarded, against the message as it stands: providers repeat
calls when a conversation is continued, and a client that reads such a repetition would show a
finished call as running again. Only chunks about tool calls can be repetitions; everything else
passes at no cost.
"""

from __future__ import annotations

from thinkwell.messages.chunks import Chunk
from thinkwell.messages.fold import Fold
from thinkwell.messages.tool_states import (
    INPUT_STREAMING,
    takes_approval_request,
    takes_denial,
)

_FILTERED = frozenset(
    {
        "tool-input-start",
        "tool-input-delta",
        "tool-input-available",
        "tool-approval-request",
        "tool-output-denied",
    }
)


def is_replayed(chunk: Chunk, fold: Fold) -> bool:
    """Whether the chunk must be dropped: its call is known and has moved on."""
    kind = chunk.get("type")
    if not isinstance(kind, str) or kind not in _FILTERED:
        return False
    call_id = chunk.get("toolCallId")
    part = fold.tool_call(call_id) if isinstance(call_id, str) else None
    if part is None:
        return False
    match kind:
        case "tool-input-delta":
            return part.get("state") != INPUT_STREAMING
        case "tool-input-available":
            return not fold.awaits_input(part["toolCallId"])
        case "tool-approval-request":
            return not takes_approval_request(part)
        case "tool-output-denied":
            return not takes_denial(part)
        case _:
            return True
