"""Keeping the index: what was said since its mark, and what has changed since it was indexed.

Entries are made from stored messages only, in the order these were written; a mark for each class
of agents is moved by the transaction that writes the entries. So a process that dies leaves a
mark, never a gap: whoever comes next goes on from there. Deletions and changes are noted by
triggers in the transaction that makes them (`search_again`), and hidden from every search until
they are worked off.

Texts are read and cut in a thread. The loop only runs short transactions: each takes in about as
much as it can in a millisecond or two.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from thinkwell.core import json
from thinkwell.session.search.askers import read_askers
from thinkwell.session.search.entries import MessageEntries, make_entries, read_source
from thinkwell.session.search.find import Lookup, SearchHit, find, is_shared
from thinkwell.store.base import Commit, Row, Store, Transaction

SLICE, SLICE_BYTES = 100, 256_000
"""Messages, and bytes of them, that are read at once."""
WRITE = 3000
"""Characters that one transaction takes into the index."""
TAKEN_OUT = 8
"""Messages that one transaction takes out of it."""
MERGED = 8
"""Pages that one transaction merges."""
FEW = 20
"""Messages after which the index is not merged: the last turns, which a search takes in itself."""
MOST_PIECES = 64
"""Transactions after which it is merged all the same. Each leaves a piece, and FTS5 merges a
thousand of them by itself, all in one transaction."""
AT_SEARCH = 8
"""Slices that a search may index before it looks: the last few turns, not a backfill."""


def _nobody_watches(_point: str) -> None:
    """No test wants to kill the process here."""


class SearchIndex:
    """The index of one store. What is asked of it at the same time is done one after another."""

    def __init__(
        self, store: Store, commit: Commit, crash_here: Callable[[str], None] = _nobody_watches
    ) -> None:
        """`crash_here` hears the names of the places at which a test may kill the process."""
        self._store = store
        self._commit = commit
        self._crash_here = crash_here
        self._one_at_a_time = asyncio.Lock()
        self._marks: dict[str, int] = {}
        self._pieces = MOST_PIECES  # an earlier process may have left as many

    async def catch_up(self, classes: Sequence[str], slices: int = AT_SEARCH) -> bool:
        """Index what is new and what has changed. False if that was not all of it."""
        async with self._one_at_a_time:
            for _ in range(slices):
                if await self._changed_slice():
                    continue
                for cls in classes:
                    if await self._new_slice(cls):
                        break
                else:
                    return True
            return False

    async def find(self, asked: Lookup) -> list[SearchHit]:
        """What fits best, as far as it is indexed."""
        return await find(self._store, asked)

    async def is_shared(self, agent: str, whose: str) -> bool:
        """Whether somebody else has said something to an agent."""
        return await is_shared(self._store, agent, whose)

    async def purge(self) -> None:
        """Take out everything that is deleted or has changed, until nothing of it is left in the
        index, in whatever piece of it.
        """
        async with self._one_at_a_time:
            more = True
            while more:
                more = await self._changed_slice()
            await self._merge(-MERGED)  # all of it into one, not just what is worth it

    async def _merge(self, pages: int = MERGED) -> None:
        """Merge the pieces that transactions left, or searches would have to look at each."""
        for query in ("merge_words", "merge_parts"):
            more = await self._commit(partial(_merge_pages, query, pages))
            while more:
                more = await self._commit(partial(_merge_pages, query, MERGED))
        self._pieces = 0

    async def _new_slice(self, cls: str) -> bool:
        """Index the next messages of a class. False if there are none."""
        newest_row = await self._store.fetch_one("newest_message", {})
        newest = 0 if newest_row is None else newest_row["seq"]
        mark = await self._mark(cls)
        if mark >= newest:
            return False
        # Between `/` and the character after it: every name of the class, by the order of texts.
        named = {"after": mark, "upto": newest, "first": f"{cls}/", "last": f"{cls}0"}
        rows = await self._store.fetch_in_background("search_ahead", {**named, "limit": SLICE})
        seqs = _as_many_as_fit(rows)
        upto = seqs[-1] if seqs and (len(rows) == SLICE or len(seqs) < len(rows)) else newest
        made = await self._make(seqs)
        for piece in _in_pieces(made):
            last = piece[-1]
            done = last.seq if last.whole else last.seq - 1
            await self._commit(partial(_write, piece, cls=cls, mark=done))
            self._marks[cls] = done
            self._pieces += 1
            self._crash_here("x0")
            await asyncio.sleep(0)
        await self._commit(partial(_set_mark, cls, upto))
        self._marks[cls] = upto
        if len(seqs) > FEW or self._pieces >= MOST_PIECES:
            await self._merge()
        self._crash_here("x1")
        return True

    async def _changed_slice(self) -> bool:
        """Index some messages again that have changed or gone. False if there are none."""
        rows = await self._store.fetch_in_background("search_changed", {"limit": SLICE})
        seqs = _as_many_as_fit(rows)
        made = {entries.seq: entries for entries in await self._make(seqs)}
        for start in range(0, len(seqs), TAKEN_OUT):
            # Entries first, the note last: a process that dies between finds the note.
            for seq in seqs[start : start + TAKEN_OUT]:
                entries = made.get(seq)
                if entries is None or not entries.rows:
                    continue
                for piece in _in_pieces([entries]):
                    await self._commit(partial(_write, piece, again=True))
                    self._pieces += 1
                    await asyncio.sleep(0)
            gone = [s for s in seqs[start : start + TAKEN_OUT] if s not in made or not made[s].rows]
            if gone:
                await self._commit(partial(_take_out, gone, made))
                self._pieces += 1
            self._crash_here("x2")
            await asyncio.sleep(0)
        if seqs and self._pieces >= MOST_PIECES:
            await self._merge()
        return bool(seqs)

    async def _mark(self, cls: str) -> int:
        if cls not in self._marks:
            row = await self._store.fetch_one("search_mark", {"class": cls})
            self._marks[cls] = 0 if row is None else row["upto"]
        return self._marks[cls]

    async def _make(self, seqs: Sequence[int]) -> list[MessageEntries]:
        """The entries of stored messages, oldest first."""
        if not seqs:
            return []
        named = {"seqs": json.dumps(list(seqs))}
        rows = await self._store.fetch_in_background("search_sources", named)
        sources = await asyncio.to_thread(lambda: [read_source(row) for row in rows])
        askers = await read_askers(self._store, sources)
        return await asyncio.to_thread(
            lambda: [
                make_entries(source, askers[source.agent, source.session])
                for source in sorted(sources, key=lambda source: source.seq)
            ]
        )


class _Piece:
    """Some entries of one message: the first of them replace what was there."""

    __slots__ = ("entries", "first", "rows", "seq", "whole")

    def __init__(
        self,
        entries: MessageEntries,
        rows: Sequence[Mapping[str, Any]],
        *,
        first: bool,
        whole: bool,
    ) -> None:
        self.entries = entries
        self.seq = entries.seq
        self.rows = rows
        self.first = first
        self.whole = whole


def _as_many_as_fit(rows: Sequence[Row]) -> list[int]:
    """The first messages that are not too much to read at once, one at least."""
    seqs: list[int] = []
    room = SLICE_BYTES
    for row in rows:
        room -= row["bytes"]
        if room < 0 and seqs:
            break
        seqs.append(row["seq"])
    return seqs


def _in_pieces(made: Sequence[MessageEntries]) -> Iterator[list[_Piece]]:
    """What one transaction writes after another."""
    piece: list[_Piece] = []
    room = WRITE
    for entries in made:
        rows = entries.rows
        for number in range(max(len(rows), 1)):
            one, last = rows[number : number + 1], number >= len(rows) - 1
            room -= sum(len(row["text"]) + len(row["lead"]) for row in one) + 100
            if room < 0 and piece:
                yield piece
                piece, room = [], WRITE
            piece.append(_Piece(entries, one, first=number == 0, whole=last))
    if piece:
        yield piece


async def _write(
    pieces: Sequence[_Piece],
    tx: Transaction,
    *,
    cls: str | None = None,
    mark: int = 0,
    again: bool = False,
) -> None:
    """Write entries, and how far their class is indexed.

    What has changed since it was read is noted instead, and read again.
    """
    seqs = {seq for piece in pieces for seq in piece.entries.versions}
    rows = await tx.fetch_all("search_versions", {"seqs": json.dumps(list(seqs))})
    now = {row["seq"]: row["version"] for row in rows}
    for piece in pieces:
        seq, entries = piece.seq, piece.entries
        if piece.first:
            await _drop(tx, seq)
        stale = any(now.get(each) != version for each, version in entries.versions.items())
        if stale or entries.held:
            await tx.execute("index_again", {"seq": seq})
            continue
        for row in piece.rows:
            await tx.execute("add_search_entry", row)
        if piece.first:
            for above in entries.leads:
                await tx.execute("add_search_lead", {"above": above, "seq": seq})
        if again and piece.whole:
            await tx.execute("indexed_again", {"seq": seq})
    if cls is not None:
        await tx.execute("set_search_mark", {"class": cls, "upto": mark})


async def _take_out(
    seqs: Sequence[int], made: Mapping[int, MessageEntries], tx: Transaction
) -> None:
    """Messages that are gone, or have no text any more."""
    rows = await tx.fetch_all("search_versions", {"seqs": json.dumps(list(seqs))})
    now: Mapping[int, int] = {row["seq"]: row["version"] for row in rows}
    for seq in seqs:
        await _drop(tx, seq)
        entries = made.get(seq)
        if now.get(seq) == (None if entries is None else entries.versions[seq]):
            await tx.execute("indexed_again", {"seq": seq})


async def _drop(tx: Transaction, seq: int) -> None:
    await tx.execute("drop_search_entries", {"seq": seq})
    await tx.execute("drop_search_leads", {"seq": seq})


async def _set_mark(cls: str, upto: int, tx: Transaction) -> None:
    await tx.execute("set_search_mark", {"class": cls, "upto": upto})


async def _merge_pages(query: str, pages: int, tx: Transaction) -> bool:
    """Merge a piece of the index. False if there was nothing to merge."""
    before = await tx.fetch_one("changes_so_far", {})
    await tx.execute(query, {"pages": pages})
    after = await tx.fetch_one("changes_so_far", {})
    return before is not None and after is not None and after["count"] - before["count"] >= 2
