"""The messages of the path to the head, encoded, kept while somebody watches the agent.

A long conversation grows at its end. So what was encoded once is kept: the older part joined into
blocks, which go out as they are, the newest messages one by one. A message that is added below the
head is taken over without a read; after any other write the path is walked up from the head to the
first message that is known here. Each change has a version, so that whoever knows an older one can
be told only what is new since.
Contract: `refresh` before reading; right as long as the tree is written through the same session.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Collection, Sequence
from itertools import count
from typing import TYPE_CHECKING

import msgspec

from thinkwell.session.rows import Appended

if TYPE_CHECKING:
    from thinkwell.session.history import History

BLOCK_BYTES = 64 * 1024
OPEN_MESSAGES = 256
"""At least so many of the newest messages are kept one by one."""
REMEMBERED = 512
"""Changes of which it is known where they began."""


_epochs = count(1)


class PathEnd(msgspec.Struct, frozen=True):
    """The end of a path: what comes behind the message `after` (None: everything)."""

    after: str | None
    messages: Sequence[bytes]


class KeptPath:
    """The encoded path of one session. `encode` makes what clients may see of a stored text."""

    def __init__(self, history: History, encode: Callable[[str], str]) -> None:
        self._history = history
        self._encode = encode
        self._refreshing = asyncio.Lock()
        self._right_at = -1
        self._replaced: set[str] = set()
        self._broken = False
        # A client may name a version of a path that was dropped and read anew: it must not match.
        self.version = next(_epochs) << 32
        """Goes up with every change; no two paths have one in common."""
        self._changes: deque[tuple[int, int]] = deque(maxlen=REMEMBERED)
        self._ids: list[str] = []
        self._place: dict[str, int] = {}
        self._blocks: list[bytes] = []
        self._starts: list[int] = []
        self._newest: list[bytes] = []
        self._newest_from = 0

    @property
    def is_right(self) -> bool:
        """Whether nothing was written since the last look."""
        return self._right_at == self._history.head_path.stamp

    @property
    def ids(self) -> Collection[str]:
        """The ids on the path, as far as they are known."""
        return self._place.keys() if self.is_right else ()

    @property
    def last(self) -> str | None:
        """The id at the end."""
        return self._ids[-1] if self._ids else None

    @property
    def blocks(self) -> tuple[bytes, ...]:
        """The older messages as JSON texts, each with a comma behind it."""
        return tuple(self._blocks)

    @property
    def newest(self) -> tuple[bytes, ...]:
        """The messages behind the blocks, one by one."""
        return tuple(self._newest)

    @property
    def bytes(self) -> int:
        """About the memory it takes."""
        return sum(map(len, self._blocks)) + sum(map(len, self._newest)) + 200 * len(self._ids)

    def is_followed_by(self, ids: Sequence[str], new: Collection[str]) -> bool:
        """Whether a list of ids is this path with nothing but `new` ones behind it."""
        length = len(self._ids)
        return list(ids[:length]) == self._ids and all(each in new for each in ids[length:])

    def holds(self, message_id: str) -> bool:
        """Whether a message is on the path."""
        return message_id in self._place

    def since(self, version: int) -> PathEnd | None:
        """What is new since a version; None if that is too much, or not known any more."""
        first = len(self._ids)
        reached = version >= self.version
        for changed, place in reversed(self._changes):
            if changed <= version:
                reached = True
                break
            first = min(first, place)
            reached = changed == version + 1
        # What lies in the blocks is joined already; cutting it out would cost more than sending
        # all.
        if not reached or first < self._newest_from:
            return None
        after = self._ids[first - 1] if first else None
        return PathEnd(after, self._newest[first - self._newest_from :])

    # Writes

    def note(self, *, replaced: str | None, moved: bool) -> None:
        """The tree is written to: a content was replaced, or messages were `moved` or deleted."""
        self._broken = self._broken or moved
        if replaced is not None:
            self._replaced.add(replaced)

    def extend(self, added: Appended) -> None:
        """A message whose transaction has committed, if it is the only change since."""
        if self._right_at == added.stamp - 1 and added.row.parent_id == self.last:
            self._append(added.row.id, added.content)
            self._right_at = added.stamp

    async def refresh(self) -> None:
        """Take over what was written since the last look."""
        async with self._refreshing:
            # Again if something was written during the read: what was read may be older than
            # that.
            while not self.is_right:
                stamp = self._history.head_path.stamp
                replaced, self._replaced = self._replaced, set()
                broken, self._broken = self._broken, False
                try:
                    await self._read_again(replaced, broken=broken)
                except BaseException as error:
                    self._broken = True  # half of it may be new
                    if not isinstance(error, KeyError):  # a message went meanwhile: once more
                        raise
                else:
                    self._right_at = stamp

    async def _read_again(self, replaced: set[str], *, broken: bool) -> None:
        if broken:
            self._cut(0)
        added = await self._history.ids_below(self._place)
        start = self._place[added.below] + 1 if added.below is not None else 0
        await self._cut_and_open(start)
        for ids in _groups(added.ids):
            texts = await self._history.texts(ids)
            for message_id in ids:
                if (text := texts.get(message_id)) is not None:
                    self._append(message_id, text)
        known = [message_id for message_id in replaced if message_id in self._place]
        for message_id, text in (await self._history.texts(known)).items():
            await self._replace(message_id, text)

    # The parts

    def _append(self, message_id: str, text: str) -> None:
        self._place[message_id] = len(self._ids)
        self._ids.append(message_id)
        self._newest.append(self._encode(text).encode())
        self._changed(len(self._ids) - 1)
        # Joined in bulk, not one by one: a join copies, and nearly every change happens near the
        # end.
        if len(self._newest) >= 2 * OPEN_MESSAGES:
            self._close_block()

    def _close_block(self) -> None:
        """Join the oldest of the newest messages; a long one may be a block of its own."""
        count = len(self._newest) - OPEN_MESSAGES
        start = 0
        while start < count:
            end, size = start, 0
            while end < count and size < BLOCK_BYTES:
                size += len(self._newest[end])
                end += 1
            self._starts.append(self._newest_from + start)
            self._blocks.append(b",".join([*self._newest[start:end], b""]))
            start = end
        del self._newest[:count]
        self._newest_from += count

    def _changed(self, place: int) -> None:
        self.version += 1
        self._changes.append((self.version, place))

    def _cut(self, length: int) -> None:
        """Forget what comes behind the first `length` messages; only where nothing is joined."""
        if length == len(self._ids):
            return
        for message_id in self._ids[length:]:
            del self._place[message_id]
        del self._ids[length:]
        if length < self._newest_from:
            del self._blocks[bisect_right(self._starts, max(length - 1, 0)) if length else 0 :]
            del self._starts[len(self._blocks) :]
            self._newest.clear()
            self._newest_from = length
        else:
            del self._newest[length - self._newest_from :]
        self._changed(length)

    async def _cut_and_open(self, length: int) -> None:
        """The same anywhere: a block that is cut in two, or is the end now, is read again."""
        joined = length < self._newest_from
        self._cut(length)
        if self._blocks and (joined or not self._newest):
            start = self._starts.pop()
            self._blocks.pop()
            ids = self._ids[start:]
            texts = await self._history.texts(ids)
            self._newest = [self._encode(texts[message_id]).encode() for message_id in ids]
            self._newest_from = start

    async def _replace(self, message_id: str, text: str) -> None:
        place = self._place[message_id]
        if place >= self._newest_from:
            self._newest[place - self._newest_from] = self._encode(text).encode()
        else:
            block = bisect_right(self._starts, place) - 1
            following = [*self._starts[block + 1 :], self._newest_from]
            ids = self._ids[self._starts[block] : following[0]]
            texts = await self._history.texts(ids)
            encoded = [self._encode(texts[each]).encode() for each in ids]
            self._blocks[block] = b",".join([*encoded, b""])
        self._changed(place)


class KeptPaths:
    """The kept paths of all agents of a host, bounded together; the oldest use goes first.

    An agent whose path was dropped reads it anew when somebody looks next.
    """

    def __init__(self, most_bytes: int = 128 * 1024 * 1024) -> None:
        self._most_bytes = most_bytes
        self._sizes: dict[History, int] = {}

    def keep(self, history: History, path: KeptPath) -> None:
        """`path` is in use now; others may have to go for it."""
        history.kept = path
        self._sizes.pop(history, None)
        self._sizes[history] = path.bytes
        excess = sum(self._sizes.values()) - self._most_bytes
        for other in [*self._sizes][:-1]:
            if excess <= 0:
                break
            excess -= self._sizes[other]
            self.drop(other)

    def drop(self, history: History) -> None:
        """Nobody watches any more."""
        history.kept = None
        self._sizes.pop(history, None)


def _groups(ids: Sequence[str], size: int = 128) -> list[Sequence[str]]:
    return [ids[start : start + size] for start in range(0, len(ids), size)]
