"""What callers hand in becomes messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias, cast

from thinkwell.core.errors import ReservedIdError
from thinkwell.core.ids import new_id
from thinkwell.core.json import clean_text
from thinkwell.messages.message import UIMessage, user_message
from thinkwell.messages.sanitize import keep_user_parts, strip_reserved_metadata
from thinkwell.messages.validate import check_message
from thinkwell.session.draft import check_new_id

MessageInput: TypeAlias = str | UIMessage | Sequence[UIMessage]
"""What starts a turn: a text, a message, or several."""


def as_messages(value: MessageInput) -> tuple[UIMessage, ...]:
    """A text becomes a user message; messages are checked.

    Raises `ValueError` that says what is wrong.
    """
    if isinstance(value, str):
        return (user_message(new_id(), clean_text(value)),)
    messages = (value,) if isinstance(value, Mapping) else value
    return tuple(check_message(message) for message in cast("Sequence[UIMessage]", messages))


def from_client(message: UIMessage) -> UIMessage:
    """A user message from outside, without what only the server writes (DESIGN §8.12).

    Raises `ValueError` for an id that no message may have.
    """
    try:
        check_new_id(message["id"])
    except ReservedIdError as error:
        raise ValueError(str(error)) from error
    return keep_user_parts(strip_reserved_metadata(message))


def is_empty(value: MessageInput) -> bool:
    """Whether there is nothing to answer."""
    return len(value) == 0
