"""The outcome of a call that lives in an earlier message (F13).

A continuation runs what an earlier answer asked for; the outcome belongs to that answer and not
to the stream that brought it. The caller finds the message, stores the result and tells the
clients.

Invariant: the first outcome stays. A message that does not change comes back as it is.
"""

from __future__ import annotations

from thinkwell.messages import tool_states
from thinkwell.messages.chunks import Chunk
from thinkwell.messages.message import Part, UIMessage, is_settled, is_tool_part, with_parts

_OUTCOMES = frozenset({"tool-output-available", "tool-output-error", "tool-output-denied"})


def settle_stored_call(message: UIMessage, chunk: Chunk) -> UIMessage:
    """The message with the chunk's outcome on its call, or the same message if that has one."""
    if chunk.get("type") not in _OUTCOMES:
        return message
    call_id = chunk.get("toolCallId")
    for index, part in enumerate(message["parts"]):
        if is_tool_part(part) and part.get("toolCallId") == call_id:
            parts = list(message["parts"])
            parts[index] = _settled(part, chunk)
            return with_parts(message, parts)
    return message


def _settled(part: Part, chunk: Chunk) -> Part:
    if is_settled(part) and part.get("preliminary") is not True:
        return part
    if chunk["type"] == "tool-output-denied" and not tool_states.takes_denial(part):
        return part
    result = dict(part)
    match chunk["type"]:
        case "tool-output-available":
            tool_states.take_output(result, chunk)
            result.setdefault("preliminary", False)
        case "tool-output-error":
            tool_states.take_error(result, chunk)
        case _:
            tool_states.deny(result)
    return result
