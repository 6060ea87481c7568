"""Versions of context blocks as rows: read one, write the next one in the caller's transaction.

A change is decided on the row that counts at that moment, in the transaction that writes it: two
calls that append at the same time lose nothing, and no limit is passed by two that fit alone.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from thinkwell.core.block_errors import BlockLimitError, ConflictError
from thinkwell.session.blocks.records import Author, BlockPlace, BlockVersion, version_of
from thinkwell.session.blocks.writes import (
    KEPT,
    appended,
    brought_back,
    check_content,
    undone,
)
from thinkwell.store.base import Reader, Transaction

MOST_ENTRIES = 1_000
"""Entries of one block: a search reads them all."""

Action: TypeAlias = Literal["replace", "append", "delete"]


class BlockWrite(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody wants of a block or an entry."""

    place: BlockPlace
    action: Action
    content: str = ""
    description: str | None = None
    max_tokens: int | None = None
    expected: int | None = None
    """The version that must still count; None: whatever counts."""


class Hand(msgspec.Struct, frozen=True, kw_only=True):
    """Who writes, and when."""

    agent_id: str
    author: Author
    now: float


async def current(reader: Reader, place: BlockPlace) -> BlockVersion | None:
    """The version that counts."""
    row = await reader.fetch_one("read_block", place.params)
    return None if row is None else version_of(row)


async def entries(reader: Reader, place: BlockPlace) -> list[BlockVersion]:
    """The entries of a block, by key."""
    rows = await reader.fetch_all("list_block_entries", _block(place, limit=MOST_ENTRIES))
    return [version_of(row) for row in rows]


async def count_entries(reader: Reader, place: BlockPlace) -> int:
    """How many there are."""
    row = await reader.fetch_one("count_block_entries", _block(place))
    return 0 if row is None else int(row["entries"])


def _block(place: BlockPlace, **more: int) -> dict[str, object]:
    return {"agent": place.agent, "session": place.session, "label": place.label, **more}


async def history(reader: Reader, place: BlockPlace, limit: int) -> list[BlockVersion]:
    """The versions that are kept, the newest first."""
    rows = await reader.fetch_all("list_block_versions", {**place.params, "limit": limit})
    return [version_of(row) for row in rows]


def decide(write: BlockWrite, found: BlockVersion | None) -> str | None:
    """The next content. Raises `ConflictError` or `BlockLimitError` (pure)."""
    label, number = write.place.label, 0 if found is None else found.version
    if write.expected is not None and write.expected != number:
        raise ConflictError(label, write.expected, number)
    if write.action == "delete":
        return None
    before = (found.content or "") if found is not None else ""
    content = appended(before, write.content) if write.action == "append" else write.content
    return check_content(label, content, write.max_tokens)


async def carry_out(tx: Transaction, write: BlockWrite, hand: Hand) -> BlockVersion:
    """Write the next version."""
    found = await current(tx, write.place)
    content = decide(write, found)
    is_new = write.place.key and content is not None and (found is None or found.content is None)
    if is_new and (there := await count_entries(tx, write.place)) >= MOST_ENTRIES:
        raise BlockLimitError(write.place.label, there + 1, MOST_ENTRIES, "the number of entries")
    description = write.description or (found.description if found is not None else None)
    return await _add(tx, write.place, hand, found, content=content, description=description)


async def bring_back(
    tx: Transaction, place: BlockPlace, wanted: int | None, hand: Hand
) -> BlockVersion:
    """Write a former version once more; None: the one before the last change."""
    found = await current(tx, place)
    version = undone(found) if wanted is None else wanted
    row = await tx.fetch_one("read_block_version", {**place.params, "version": version})
    former = None if row is None else version_of(row)
    content, restored = brought_back(place.label, version, former)
    description = None if former is None else former.description
    return await _add(
        tx, place, hand, found, content=content, description=description, restored=restored
    )


async def _add(
    tx: Transaction,
    place: BlockPlace,
    hand: Hand,
    found: BlockVersion | None,
    *,
    content: str | None,
    description: str | None = None,
    restored: int | None = None,
) -> BlockVersion:
    made = BlockVersion(
        label=place.label,
        key=place.key,
        version=1 if found is None else found.version + 1,
        content=content,
        description=description,
        agent=hand.agent_id,
        source=hand.author.source,
        principal=hand.author.principal,
        turn=hand.author.turn,
        tool_call_id=hand.author.tool_call_id,
        restored=restored,
        changed_at=hand.now,
    )
    fields = {name: getattr(made, name) for name in made.__struct_fields__}
    await tx.execute("write_block", {**fields, **place.params, "writer": made.agent})
    if made.version > KEPT:
        await tx.execute("trim_block", {**place.params, "upto": made.version - KEPT})
    return made
