"""The records of the message tree.

`MessageRow` is a place in the tree with its sizes and is cheap to read for thousands of rows.
`StoredMessage` adds the content. Both are snapshots: a later write does not change them.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, Final, Literal, TypeAlias

import msgspec

from thinkwell.messages.message import UIMessage
from thinkwell.store.base import Row


class Auto(Enum):
    """The type of `AUTO`."""

    AUTO = "auto"

    def __repr__(self) -> str:
        return "AUTO"


AUTO: Final = Auto.AUTO
"""As a parent: below the head, or a root if the session is empty."""

Parent: TypeAlias = "str | MessageRow | Literal[Auto.AUTO] | None"
"""Where to append: below `AUTO`, as a new root with None, or below a message (its id or row)."""


class MessageRow(msgspec.Struct, frozen=True, kw_only=True):
    """Place and sizes of one message; sums count the path from the root, this message included."""

    seq: int
    """Order of creation, unique in the database, never used again."""
    id: str
    """The message's id, unique in its session."""
    parent_id: str | None
    """The message above, None for a root."""
    role: str
    """Who speaks."""
    depth: int
    """How many messages the path from the root has."""
    bytes: int
    """Length of the stored JSON in UTF-8."""
    tokens: int
    """The estimate made when it was written."""
    cum_bytes: int
    """Bytes of the whole path."""
    cum_tokens: int
    """Tokens of the whole path."""
    version: int
    """1 at first, one more with every change of content."""

    @classmethod
    def from_row(cls, row: Row) -> MessageRow:
        """The record of a database row."""
        return cls(
            seq=row["seq"],
            id=row["id"],
            parent_id=row["parent_id"],
            role=row["role"],
            depth=row["depth"],
            bytes=row["bytes"],
            tokens=row["tokens"],
            cum_bytes=row["cum_bytes"],
            cum_tokens=row["cum_tokens"],
            version=row["version"],
        )


class StoredMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message with its content. `message` is shared with the cache: read it, never change it."""

    seq: int
    """Order of creation; with `version` the identity of the content."""
    id: str
    """The message's id."""
    parent_id: str | None
    """The message above."""
    version: int
    """The version of the content."""
    depth: int
    """How many messages the path from the root has."""
    bytes: int
    """Length of the stored JSON in UTF-8."""
    tokens: int
    """The stored estimate."""
    message: UIMessage
    """The decoded message."""
    text: str
    """The stored JSON, ready to be sent."""
    made: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    """What was made of this version so far; shared with the cache."""


class Appended(msgspec.Struct, frozen=True, kw_only=True):
    """What an append did."""

    inserted: bool
    """False if a message with that id was there already."""
    row: MessageRow
    """The row, new or old."""
    content: str = ""
    """What was written; empty if nothing was."""
    stamp: int = 0
    """Which write of the tree this was."""


class IdsBelow(msgspec.Struct, frozen=True):
    """The end of a path by ids, root side first."""

    ids: Sequence[str]
    below: str | None
    """The message above the first; None if that is a root."""


class RecentHistory(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a path, root side first (spec/03 §12)."""

    messages: list[StoredMessage]
    """The longest end that fits, at least the leaf."""
    truncated: bool
    """Whether older messages were left out."""
    total_content_bytes: int
    """Bytes of the whole path."""


class RowStats(msgspec.Struct, frozen=True, kw_only=True):
    """One line of `get_history_row_stats`."""

    id: str
    """The message's id."""
    role: str
    """Who speaks."""
    bytes: int
    """Length of the stored JSON in UTF-8."""
