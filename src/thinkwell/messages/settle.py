"""Chunks about a call that lives in an earlier message or stream (F13, F20).

A continuation runs what an earlier answer asked for; the outcome belongs to that answer, and a
client that reads the stream from its start would not know the call. So the caller stores the
settled message, tells the clients that it changed, and opens the call again in the stream before
its outcome. A `Fold` that continues a message settles by the same rule.

Invariant: the first outcome stays. A message that does not change comes back as it is.
"""

from __future__ import annotations

from collections.abc import Container

from thinkwell.messages import tool_states
from thinkwell.messages.chunks import Chunk
from thinkwell.messages.message import UIMessage, is_tool_part, with_parts

_OPENING = frozenset({"tool-input-start", "tool-input-available", "tool-input-error"})


def opened_call(chunk: Chunk) -> str | None:
    """The call a chunk makes known to whoever reads its stream, or None."""
    call_id = chunk.get("toolCallId")
    return call_id if chunk.get("type") in _OPENING and isinstance(call_id, str) else None


def is_for_earlier_call(chunk: Chunk, opened_call_ids: Container[str]) -> bool:
    """Whether a chunk names a call that its own stream has not opened (F20).

    `opened_call_ids` holds what `opened_call` gave for the chunks sent before in the same stream.
    """
    call_id = chunk.get("toolCallId")
    if not isinstance(call_id, str) or opened_call(chunk) is not None:
        return False
    return call_id not in opened_call_ids


def settle_stored_call(message: UIMessage, chunk: Chunk) -> UIMessage:
    """The message with the chunk's outcome on its call, or the same message if that has one."""
    call_id = chunk.get("toolCallId")
    for index, part in enumerate(message["parts"]):
        if is_tool_part(part) and part.get("toolCallId") == call_id:
            settled = dict(part)
            if not tool_states.settle_late(settled, chunk):
                return message
            parts = list(message["parts"])
            parts[index] = settled
            return with_parts(message, parts)
    return message
