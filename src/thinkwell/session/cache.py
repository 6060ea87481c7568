"""Message contents by (seq, version): stored text, decoded form and what was made of it.

A turn reads a window of messages of which nearly all are old; this makes the old ones free. `seq`
stands for the id, because an id can be deleted and used again while a seq cannot. Only committed
contents may be put in: a rolled-back write gives its seq and version back. Bounded by entries and
by bytes, oldest use goes first. One cache serves all sessions of a host; a single content that
would push out most of the others is not kept.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from thinkwell.messages.convert import to_model_messages
from thinkwell.messages.message import UIMessage
from thinkwell.messages.model_messages import ModelMessage
from thinkwell.session.kept_path import KeptPaths
from thinkwell.session.rows import MessageRow, StoredMessage

T = TypeVar("T")

_LARGEST_SHARE = 2
"""No content takes more than one part in so many of the cache."""


class CachedMessage:
    """The content of one version of a message. `message` is None for a row that is no message."""

    __slots__ = ("_row", "_stored", "made", "message", "text", "version")

    def __init__(self, version: int, text: str, message: UIMessage | None) -> None:
        self.version = version
        self.text = text
        self.message = message
        self.made: dict[str, Any] = {}
        self._row: MessageRow | None = None
        self._stored: StoredMessage | None = None

    def at(self, row: MessageRow) -> StoredMessage | None:
        """The message at its place in the tree; made once for as long as that place is known."""
        if row is not self._row:  # a place that was read again may be another one
            self._row = row
            self._stored = None if self.message is None else self._placed(row, self.message)
        return self._stored

    def _placed(self, row: MessageRow, message: UIMessage) -> StoredMessage:
        return StoredMessage(
            seq=row.seq,
            id=row.id,
            parent_id=row.parent_id,
            version=self.version,
            depth=row.depth,
            bytes=row.bytes,
            tokens=row.tokens,
            message=message,
            text=self.text,
            made=self.made,
        )

    @property
    def weight(self) -> int:
        """About the memory it takes: the text, the decoded message, what was made of it."""
        # A guess on the safe side: small dicts and strings take several times their JSON.
        return 6 * len(self.text) + 512


class MessageCache:
    """A bounded store of message contents, least recently used out first."""

    def __init__(self, *, max_entries: int = 65_536, max_bytes: int = 10 * 1024 * 1024) -> None:
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._bytes = 0
        self._entries: OrderedDict[int, CachedMessage] = OrderedDict()
        self.paths = KeptPaths()
        """What is kept encoded for the clients of all these sessions."""

    @property
    def size(self) -> int:
        """How many contents are kept.

        Not `__len__`: that would make an empty cache false, and `cache or MessageCache()` would
        give every session one of its own.
        """
        return len(self._entries)

    def get(self, seq: int, version: int) -> CachedMessage | None:
        """The content of that version, if it is here."""
        entry = self._entries.get(seq)
        if entry is None or entry.version != version:
            return None
        self._entries.move_to_end(seq)
        return entry

    def get_all(self, rows: Iterable[MessageRow]) -> list[CachedMessage | None]:
        """The contents of these rows, None for each that is not here."""
        entries, used = self._entries, self._entries.move_to_end
        found: list[CachedMessage | None] = []
        for row in rows:  # a whole window, in every turn: no call for each of them
            entry = entries.get(row.seq)
            if entry is None or entry.version != row.version:
                found.append(None)
            else:
                used(row.seq)
                found.append(entry)
        return found

    def put(self, seq: int, entry: CachedMessage) -> None:
        """Keep a committed content. An older version of the same row goes."""
        self._drop(seq)
        if entry.weight > self._max_bytes // _LARGEST_SHARE:
            return
        self._entries[seq] = entry
        self._bytes += entry.weight
        while len(self._entries) > self._max_entries or self._bytes > self._max_bytes:
            self._drop(next(iter(self._entries)))

    def model_messages(self, stored: StoredMessage) -> tuple[ModelMessage, ...]:
        """The message as a model sees it, converted once per version."""
        return self.converted(stored, to_model_messages, variant="model")

    def converted(
        self, stored: StoredMessage, convert: Callable[[UIMessage], T], *, variant: str
    ) -> T:
        """What `convert` makes of the message, made once per version and variant.

        `variant` names the conversion: the same variant must always mean the same function.
        """
        made = stored.made
        if variant not in made:
            made[variant] = convert(stored.message)
        return made[variant]

    def all_converted(
        self, window: Sequence[StoredMessage], convert: Callable[[UIMessage], T], *, variant: str
    ) -> list[T]:
        """The same of a whole window, of which nearly everything was converted before."""
        return [
            made[variant]
            if variant in (made := stored.made)
            else self.converted(stored, convert, variant=variant)
            for stored in window
        ]

    def _drop(self, seq: int) -> None:
        if (entry := self._entries.pop(seq, None)) is not None:
            self._bytes -= entry.weight
