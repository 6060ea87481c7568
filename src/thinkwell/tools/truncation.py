"""A bound on what one tool call may bring into the conversation (spec/02 §9.14, §10.7).

How a value is shortened belongs to `messages/shorten.py`; which bound applies, to the caller.
Invariant: the value handed in is never changed.
"""

from __future__ import annotations

from typing import Any

from thinkwell.messages.shorten import truncate_tool_output


def limit_output(value: Any, max_chars: int) -> Any:
    """`value`, a JSON result, in at most about `max_chars` characters.

    A text stays a text, a list a list and an object an object; each says what was left out. What
    fits comes back as the same object.
    """
    return truncate_tool_output(value, max_chars).value
