"""A guess at how many tokens a text or a message is, without a tokenizer (spec/03 §7).

Deliberately simple and stable: the numbers are stored with the messages and summed later, so the
same message must always give the same number. Providers report the real counts after each call.
"""

from __future__ import annotations

from typing import Any

from thinkwell.core import json
from thinkwell.messages.message import Part, UIMessage, is_tool_part

TOKENS_PER_MESSAGE = 4
"""What a message costs beside its content."""
_COUNTED = 262_144


def estimate_string_tokens(text: str) -> int:
    """A quarter of the characters or 1.3 times the words, whichever is more.

    The words of a very long text are counted at its beginning only.
    """
    length = len(text)
    by_length = -(-length // 4)
    words = len(text[:_COUNTED].split())
    if length > _COUNTED:
        words = words * length // _COUNTED
    return max(by_length, -(-words * 13 // 10))


def estimate_message_tokens(message: UIMessage) -> int:
    """The tokens of one message. What is stored beside its row."""
    return TOKENS_PER_MESSAGE + sum(_part_tokens(part) for part in message["parts"])


def _part_tokens(part: Part) -> int:
    if is_tool_part(part):
        outcome = part["output"] if "output" in part else part.get("result")
        return _value_tokens(part.get("input")) + _value_tokens(outcome)
    if part.get("type") in ("text", "reasoning"):
        return _value_tokens(part.get("text"))
    return _value_tokens(part["text"] if "text" in part else part.get("result"))


def _value_tokens(value: Any) -> int:
    if value is None:
        return 0
    return estimate_string_tokens(value if isinstance(value, str) else json.dumps(value))
