"""The path to the head, kept between reads of the same tree.

A turn reads it more than once and changes only its end. Every write moves `stamp` on before it
commits, so a path that was read before no longer counts, whatever becomes of the transaction; a
committed message below the head is added with `extend`. So it is right without asking the store,
as long as every write of this session in this process goes through the same tree (the agent's
epoch keeps other processes out) and a read outside a transaction waits for the one that is open.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from thinkwell.session.rows import Appended, MessageRow

LONGEST = 256
"""Longer paths are not kept: an idle agent should cost little memory."""


class HeadPath:
    """What is known of the path to the head."""

    __slots__ = ("_ids", "_is_whole_tree", "_lacking", "_right_at", "_rows", "stamp")

    def __init__(self) -> None:
        self.stamp = 0
        """How many writes there have been."""
        self._right_at = -1
        self._rows: list[MessageRow] = []
        self._ids: set[str] = set()
        self._is_whole_tree = False
        self._lacking = ("", -1)

    def changed(self) -> int:
        """The tree is written to: what is known does not count any more."""
        self.stamp += 1
        return self.stamp

    def keep(self, rows: Sequence[MessageRow], stamp: int, *, is_whole_tree: bool) -> None:
        """A path that was read, and the stamp from before the read.

        `is_whole_tree`: there are no other messages, as long as nothing branches off.
        """
        if stamp == self.stamp and len(rows) <= LONGEST:
            self._rows, self._ids = list(rows), {row.id for row in rows}
            self._right_at, self._is_whole_tree = stamp, is_whole_tree

    def extend(self, added: Appended) -> None:
        """A message whose transaction has committed, if it is the only change since."""
        row, end = added.row, self._rows[-1].id if self._rows else None
        # Any other write in between, even one that was rolled back, makes the next read ask the
        # store.
        if self._right_at == added.stamp - 1 and row.parent_id == end and len(self._rows) < LONGEST:
            self._rows.append(row)
            self._ids.add(row.id)
            self._right_at = added.stamp

    def lacks(self, message_id: str, stamp: int) -> None:
        """A message that was looked for and is not stored, and the stamp from before the look."""
        # Only the newest: clients choose ids, and one that is refused may go on asking.
        self._lacking = message_id, stamp

    def is_known_to_lack(self, message_id: str) -> bool:
        """Whether that message is not stored, as far as this is known without asking."""
        if self._is_whole_tree and self._right_at == self.stamp:
            return message_id not in self._ids
        return self._lacking == (message_id, self.stamp)

    @property
    def rows(self) -> list[MessageRow] | None:
        """The path, root first; None if it has to be read."""
        return self._rows if self._right_at == self.stamp else None

    @property
    def ids(self) -> Collection[str]:
        """The ids on the path, as far as they are known."""
        return self._ids if self._right_at == self.stamp else ()


def window(path: Sequence[MessageRow], *, max_bytes: int, min_recent: int) -> list[MessageRow]:
    """The end of a path: `min_recent` messages, then as many as fit into `max_bytes`."""
    total = path[-1].cum_bytes
    if total - path[0].cum_bytes + path[0].bytes <= max_bytes:
        return list(path)  # all of it, as most conversations
    first = len(path) - 1
    while first > 0:
        above = path[first - 1]
        taken = len(path) - first
        if taken >= min_recent and total - above.cum_bytes + above.bytes > max_bytes:
            break
        first -= 1
    return list(path[first:])
