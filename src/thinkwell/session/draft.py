"""A message made ready for its row: sanitised, within the size limit, encoded and measured.

Pure. Everything that can be wrong with a message itself is found here, before anything is written.

How many tokens it is is a guess without a tokenizer (spec/03 §7), deliberately simple and stable:
the numbers are stored with the messages and summed later, so the same message must always give the
same number. Providers report the real counts after each call.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec

from thinkwell.core import json
from thinkwell.core.errors import ReservedIdError, SessionError
from thinkwell.messages.limits import enforce_row_size_limit
from thinkwell.messages.message import Part, UIMessage, is_tool_part
from thinkwell.messages.sanitize import sanitize_message

TOKENS_PER_MESSAGE = 4
"""What a message costs beside its content."""
_COUNTED = 262_144
RESERVED_PREFIXES = ("compaction_", "stub-")
"""Ids that begin like this belong to overlays and placeholders, never to stored messages."""


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """What is written into a message's row."""

    id: str
    """The message's id."""
    role: str
    """Who speaks."""
    content: str
    """The stored JSON."""
    bytes: int
    """Its length in UTF-8."""
    tokens: int
    """The estimate."""


def make_draft(message: UIMessage) -> Draft:
    """The row content of a message. Raises `SessionError` or `MessageTooLargeError`."""
    _check_shape(cast("dict[str, Any]", message))
    fitting = enforce_row_size_limit(sanitize_message(_encodable(message)))
    encoded = json.dump_bytes(fitting)
    return Draft(
        id=fitting["id"],
        role=fitting["role"],
        content=encoded.decode(),
        bytes=len(encoded),
        tokens=estimate_message_tokens(fitting),
    )


def make_new_draft(message: UIMessage) -> Draft:
    """The row content of a message that may be added. Raises `ReservedIdError` too."""
    draft = make_draft(message)
    check_new_id(draft.id)
    return draft


def check_new_id(message_id: str) -> None:
    """Raises `ReservedIdError` for an id that no new message may have."""
    if message_id.startswith(RESERVED_PREFIXES):
        raise ReservedIdError(
            f"The message id {message_id!r} begins with a prefix that Thinkwell keeps for itself "
            f"({', '.join(RESERVED_PREFIXES)}). Choose another id."
        )


def _check_shape(message: dict[str, Any]) -> None:
    message_id = message.get("id")
    if not isinstance(message_id, str) or not message_id:
        raise SessionError(f"A message needs a non-empty string id, not {message_id!r}.")
    if not isinstance(message.get("role"), str) or not isinstance(message.get("parts"), list):
        raise SessionError(f"Message {message_id!r} needs a string `role` and a list of `parts`.")


def _encodable(message: UIMessage) -> UIMessage:
    """The message itself, or a copy in plain JSON if it holds what UTF-8 or JSON cannot."""
    try:
        json.dump_bytes(message)
    except (TypeError, UnicodeEncodeError):
        return cast("UIMessage", json.to_jsonable(message))
    return message


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
