"""Reading the message tree of one session.

Owned here: the head, paths, the window at the end of a path, and contents in bounded batches.
Walks give rows without content; contents come from the cache or in batches of at most 50 rows and
4 MiB. A window costs what it holds, whatever lies above it. Reads take a `Reader` (a transaction
sees its own writes); without one they see the last commit, and paths longer than `LONG_PATH` are
read away from the event loop.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Container, Iterator, Mapping, Sequence

from thinkwell.core import json
from thinkwell.core.errors import CorruptTreeError
from thinkwell.messages.validate import read_stored
from thinkwell.session.cache import CachedMessage, MessageCache
from thinkwell.session.head_path import HeadPath, window
from thinkwell.session.kept_path import KeptPath
from thinkwell.session.rows import IdsBelow, MessageRow, RecentHistory, StoredMessage
from thinkwell.store.base import Params, Reader, Row, Store

log = logging.getLogger("thinkwell.session")

BATCH_ROWS = 50
BATCH_BYTES = 4 * 1024 * 1024
BATCH_IDS = 1_000
LONG_PATH = 256


class History:
    """The reading side of one session's tree."""

    def __init__(
        self, store: Store, agent_id: str, session_id: str, *, cache: MessageCache
    ) -> None:
        self.cache = cache
        self.scope: dict[str, str] = {"agent": agent_id, "session": session_id}
        self.head_path = HeadPath()
        self.kept: KeptPath | None = None
        """The encoded path, while somebody watches."""
        self._store = store

    @property
    def known_ids(self) -> Collection[str]:
        """The ids on the path to the head, as far as they are known without asking the store."""
        kept = () if self.kept is None else self.kept.ids
        return kept or self.head_path.ids

    async def ids_below(self, known: Container[str]) -> IdsBelow:
        """The ids from a known message (not included) down to the head."""
        head = await self.head()
        if head is None or head.id in known:
            return IdsBelow([], None if head is None else head.id)
        # Nearly always the head moved by a question and an answer. Two short looks cost less than
        # reading a path of ten thousand rows to find that out.
        for count in (4, 64):
            limits = {"leaf": head.id, "max_bytes": 0, "min_recent": count}
            rows = await self._rows("recent_rows", {**self.scope, **limits}, None)
            for place, row in enumerate(rows):
                if row.parent_id is None or row.parent_id in known:
                    return IdsBelow([each.id for each in rows[place::-1]], row.parent_id)
        return await self._whole_path(head, known)

    async def _whole_path(self, head: MessageRow, known: Container[str]) -> IdsBelow:
        ids: list[str] = []
        long = head.depth > LONG_PATH
        params = {**self.scope, "leaf": head.id}
        rows = await self._fetch("path_rows", params, None, long=long)
        for row in rows:
            if row["id"] in known:
                return IdsBelow(ids[::-1], row["id"])
            ids.append(row["id"])
        # The walk ends at a root or where a parent is missing; only the first is a path.
        if rows and rows[-1]["parent_id"] is not None:
            raise _broken(MessageRow.from_row(rows[-1]))
        return IdsBelow(ids[::-1], None)

    async def texts(self, ids: Sequence[str]) -> dict[str, str]:
        """The stored texts of those ids that hold a message, as of the last commit."""
        params = {**self.scope, "ids": json.dumps(ids)}
        rows = await self._fetch("message_contents", params, None, long=len(ids) > 8) if ids else ()
        entries = {row["id"]: self._entry(row) for row in rows}
        return {each: entry.text for each, entry in entries.items() if entry.message is not None}

    async def row(self, message_id: str, reader: Reader | None = None) -> MessageRow | None:
        """Place and sizes of one message."""
        return await self._one("message_row", {**self.scope, "id": message_id}, reader)

    async def is_stored(self, message_id: str) -> bool:
        """Whether there is a message with that id."""
        if message_id in self.known_ids:
            return True
        if self.head_path.is_known_to_lack(message_id):
            return False
        stamp = self.head_path.stamp
        stored = await self.row(message_id) is not None
        if not stored:  # whoever asks next, to accept it, need not look again
            self.head_path.lacks(message_id, stamp)
        return stored

    async def rows(self, ids: Sequence[str], reader: Reader | None = None) -> list[MessageRow]:
        """Place and sizes of those ids that exist, oldest first."""
        return await self._rows("message_rows", {**self.scope, "ids": json.dumps(ids)}, reader)

    async def stored_among(self, ids: Sequence[str], *, few: bool = False) -> set[str]:
        """Those of the ids that are stored as of the last commit; beside the loop unless `few`."""
        found: set[str] = set()
        for start in range(0, len(ids), BATCH_IDS):
            params = {**self.scope, "ids": json.dumps(ids[start : start + BATCH_IDS])}
            rows = await self._fetch("stored_ids", params, None, long=not few)
            found.update(row["id"] for row in rows)
        return found

    async def head(self, reader: Reader | None = None) -> MessageRow | None:
        """Where the conversation stands: the active leaf if one is set, else the latest leaf."""
        known = self.head_path.rows
        if known:
            return known[-1]
        return await self._one("head_row", self.scope, reader)

    async def latest_leaf(self, reader: Reader | None = None) -> MessageRow | None:
        """The newest message."""
        return await self._one("latest_leaf", self.scope, reader)

    async def leaf(self, leaf_id: str | None, reader: Reader | None = None) -> MessageRow | None:
        """The row of `leaf_id`, or the head for a falsy one."""
        return await (self.row(leaf_id, reader) if leaf_id else self.head(reader))

    async def children(
        self, message_id: str | None, reader: Reader | None = None
    ) -> list[MessageRow]:
        """The rows below a message, oldest first; None gives the roots."""
        if message_id is None:
            return await self._rows("root_rows", self.scope, reader)
        return await self._rows("child_rows", {**self.scope, "id": message_id}, reader)

    async def newest_below(
        self, message_id: str, reader: Reader | None = None
    ) -> MessageRow | None:
        """The newest of a message and all that hangs below it."""
        return await self._one("newest_below", {**self.scope, "id": message_id}, reader)

    async def has_children(self, message_id: str, reader: Reader) -> bool:
        """Whether anything hangs under a message."""
        found = await reader.fetch_one("first_child", {**self.scope, "id": message_id})
        return found is not None

    async def path(
        self, leaf_id: str | None = None, reader: Reader | None = None
    ) -> list[MessageRow]:
        """The path from the root to a leaf, [] for an unknown one. A broken tree raises."""
        known = None if leaf_id or reader is not None else self.head_path.rows
        if known is not None:
            return list(known)
        stamp = self.head_path.stamp
        leaf = await self.leaf(leaf_id, reader)
        if leaf is None:
            return []
        long = leaf.depth > LONG_PATH
        rows = await self._rows("path_rows", {**self.scope, "leaf": leaf.id}, reader, long=long)
        if rows and rows[-1].parent_id is not None:
            raise _broken(rows[-1])
        rows.reverse()
        # Kept only if nothing was written since `stamp`, and never from inside a transaction,
        # which may be rolled back.
        if not leaf_id and reader is None and not long:
            await self._keep(rows, stamp)
        return rows

    async def _keep(self, rows: Sequence[MessageRow], stamp: int) -> None:
        """Remember the path to the head, and whether anything lies beside it."""
        params = {**self.scope, "count": len(rows)}
        beside = await self._store.fetch_one("message_beside", params)
        self.head_path.keep(rows, stamp, is_whole_tree=beside is None)

    async def recent(
        self,
        leaf_id: str | None = None,
        *,
        max_bytes: int,
        min_recent: int = 1,
        reader: Reader | None = None,
    ) -> RecentHistory:
        """The longest end of a path within `max_bytes`, at least `min_recent` messages of it."""
        limits = {"max_bytes": max_bytes, "min_recent": min_recent}
        rows = await self._recent_rows(leaf_id, limits, reader)
        if not rows:
            return RecentHistory(messages=[], truncated=False, total_content_bytes=0)
        truncated = rows[0].parent_id is not None
        # A row that says it is the first of its path and still has a parent: going on would show
        # half a conversation as if it were whole.
        if truncated and rows[0].depth <= 1:
            raise _broken(rows[0])
        return RecentHistory(
            messages=await self.load(rows, reader),
            truncated=truncated,
            total_content_bytes=rows[-1].cum_bytes,
        )

    async def _recent_rows(
        self, leaf_id: str | None, limits: Mapping[str, int], reader: Reader | None
    ) -> list[MessageRow]:
        known = self.head_path.rows if reader is None else None
        if known and leaf_id in (None, "", known[-1].id):
            return window(known, **limits)
        stamp, head = self.head_path.stamp, await self.head(reader)
        leaf_id = leaf_id or (None if head is None else head.id)
        rows = await self._rows("recent_rows", {**self.scope, "leaf": leaf_id, **limits}, reader)
        rows.reverse()
        # A window that reaches the root is the whole path: the next turns need not read it again.
        whole = bool(rows) and rows[0].parent_id is None and rows[0].depth == 1
        if whole and reader is None and head is not None and head.id == leaf_id:
            await self._keep(rows, stamp)
        return rows

    async def load(
        self, rows: Sequence[MessageRow], reader: Reader | None = None
    ) -> list[StoredMessage]:
        """The rows with their contents, in order. Rows that hold no message are left out."""
        entries = self.cache.get_all(rows)
        if None in entries:
            entries = await self._with_missing(rows, entries, reader)
        return [
            stored
            for row, entry in zip(rows, entries, strict=True)
            if entry is not None and (stored := entry.at(row)) is not None
        ]

    async def _with_missing(
        self,
        rows: Sequence[MessageRow],
        entries: Sequence[CachedMessage | None],
        reader: Reader | None,
    ) -> list[CachedMessage | None]:
        missing = [row for row, entry in zip(rows, entries, strict=True) if entry is None]
        found: dict[int, CachedMessage] = {}
        for batch in batches(missing):
            found.update(await self._contents(batch, reader, long=len(rows) > LONG_PATH))
        return [
            found.get(row.seq) if entry is None else entry
            for row, entry in zip(rows, entries, strict=True)
        ]

    async def _contents(
        self, batch: Sequence[MessageRow], reader: Reader | None, *, long: bool
    ) -> dict[int, CachedMessage]:
        params = {**self.scope, "ids": json.dumps([row.id for row in batch])}
        found: dict[int, CachedMessage] = {}
        for row in await self._fetch("message_contents", params, reader, long=long):
            entry = self._entry(row)
            found[row["seq"]] = entry
            if reader is None:  # a transaction may still be rolled back
                self.cache.put(row["seq"], entry)
        return found

    def _entry(self, row: Row) -> CachedMessage:
        """The content of a row. What is malformed in it is left out, everywhere, and reported."""
        text: str = row["content"]
        message, whole = read_stored(text)
        if not whole:
            log.warning(
                "a stored message is malformed: what can be read of it is used",
                extra={"action": "history", "agent": self.scope["agent"], "seq": row["seq"]},
            )
            text = text if message is None else json.dumps(message)
        return CachedMessage(row["version"], text, message)

    async def _one(self, query: str, params: Params, reader: Reader | None) -> MessageRow | None:
        row = await (self._store if reader is None else reader).fetch_one(query, params)
        return None if row is None else MessageRow.from_row(row)

    async def _rows(
        self, query: str, params: Params, reader: Reader | None, *, long: bool = False
    ) -> list[MessageRow]:
        rows = await self._fetch(query, params, reader, long=long)
        return [MessageRow.from_row(row) for row in rows]

    async def _fetch(
        self, query: str, params: Params, reader: Reader | None, *, long: bool
    ) -> Sequence[Row]:
        if reader is not None:
            return await reader.fetch_all(query, params)
        if long:
            return await self._store.fetch_in_background(query, params)
        return await self._store.fetch_all(query, params)


def batches(rows: Sequence[MessageRow]) -> Iterator[list[MessageRow]]:
    """The rows in groups of at most 50 and at most 4 MiB of content (one row may be larger)."""
    batch: list[MessageRow] = []
    size = 0
    for row in rows:
        if batch and (len(batch) == BATCH_ROWS or size + row.bytes > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(row)
        size += row.bytes
    if batch:
        yield batch


def _broken(row: MessageRow) -> CorruptTreeError:
    return CorruptTreeError(
        f"The message tree is broken at {row.id!r}: its parent {row.parent_id!r} is missing "
        "or was added after it."
    )
