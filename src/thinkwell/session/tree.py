"""Writing the message tree of one session (spec/03 §2).

Every method takes the transaction it writes in; the caller owns it and decides what else commits
with it. Whatever can be refused is refused before the first write, so an error leaves the
transaction usable.

Invariants: a child is newer than its parent; `depth`, `cum_bytes` and `cum_tokens` of every row
are those of its path; the head is the pinned leaf, else the newest message, and every insert
makes the new message the head.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from thinkwell.core import json
from thinkwell.core.clock import Clock
from thinkwell.core.errors import ParentNotFoundError, SessionError
from thinkwell.messages.message import UIMessage
from thinkwell.session.draft import Draft, make_draft, make_new_draft
from thinkwell.session.history import History
from thinkwell.session.rows import AUTO, Appended, MessageRow, Parent
from thinkwell.store.base import Transaction

ChainMode: TypeAlias = Literal["append", "upsert"]


class MessageTree:
    """The writing side of one session's tree."""

    def __init__(self, history: History, clock: Clock) -> None:
        self.history = history
        self._scope = history.scope
        self._clock = clock

    def _changed(self, *, replaced: str | None = None, moved: bool = False) -> int:
        """The tree is about to be written to."""
        if (kept := self.history.kept) is not None:
            kept.note(replaced=replaced, moved=moved)
        return self.history.head_path.changed()

    async def append(self, tx: Transaction, message: UIMessage, parent: Parent = AUTO) -> Appended:
        """Add a message below `parent`. An id that is there already changes nothing."""
        return await self._insert(tx, make_new_draft(message), parent)

    async def update(self, tx: Transaction, message: UIMessage) -> bool:
        """Replace the content of a message in place. False, without a write, for an unknown id."""
        return await self._replace(tx, make_draft(message))

    async def upsert(self, tx: Transaction, message: UIMessage, parent: Parent = AUTO) -> Appended:
        """Update the message if its id is there (its place stays), else append it."""
        return await self._put(tx, make_new_draft(message), parent, "upsert")

    async def add(
        self,
        tx: Transaction,
        messages: Sequence[UIMessage],
        parent: Parent = AUTO,
        *,
        mode: ChainMode = "append",
    ) -> list[Appended]:
        """Write a chain, each message below the one before; known ids are kept or updated."""
        drafts = [make_new_draft(message) for message in messages]
        # Refused before the first write: a chain whose parent is unknown must not leave half of
        # itself.
        if drafts and isinstance(parent, str):
            await self._row_of_parent(tx, parent)
        results: list[Appended] = []
        above = parent
        for draft in drafts:
            results.append(await self._put(tx, draft, above, mode))
            above = draft.id
        return results

    async def delete(self, tx: Transaction, ids: Sequence[str]) -> int:
        """Remove messages; what hung under them moves to the nearest message that stays."""
        rows = await self.history.rows(ids, tx)
        if not rows:
            return 0
        head = await self.history.head(tx)
        self._changed(moved=True)
        # Group by group: what hangs below one deleted row must not move to another.
        for group in connected_groups(rows):
            gone = {**self._scope, "ids": json.dumps([row.id for row in group])}
            await tx.execute("shift_below_deleted", {**gone, "top": group[0].id})
            await tx.execute("relink_children", {**gone, "parent_id": group[0].parent_id})
            await tx.execute("delete_messages", gone)
            await tx.execute("delete_versions", gone)
        await self._move_head_from(tx, head, rows)
        return len(rows)

    async def prune(self, tx: Transaction, message_id: str) -> int:
        """Remove a message and everything below it; how many that were."""
        found = await tx.fetch_all("subtree_rows", {**self._scope, "id": message_id})
        if not found:
            return 0
        rows = [MessageRow.from_row(row) for row in found]
        head = await self.history.head(tx)
        ids = json.dumps([row.id for row in rows])
        self._changed(moved=True)
        await tx.execute("delete_messages", {**self._scope, "ids": ids})
        await tx.execute("delete_versions", {**self._scope, "ids": ids})
        await self._move_head_from(tx, head, rows)
        return len(rows)

    async def clear(self, tx: Transaction) -> int:
        """Remove every message of the session; how many that were."""
        self._changed(moved=True)
        count = await tx.execute("clear_messages", self._scope)
        await tx.execute("clear_versions", self._scope)
        await tx.execute("touch_session", self._scope)
        return count

    async def pin(self, tx: Transaction, message_id: str | None) -> None:
        """Make a message the head until the next insert; None lets the latest leaf be it again."""
        if message_id is not None and await self.history.row(message_id, tx) is None:
            raise SessionError(
                f"No message has the id {message_id!r}, so it cannot be the active leaf."
            )
        self._changed()
        await tx.execute("set_active_leaf", {**self._scope, "leaf": message_id})

    async def _put(
        self, tx: Transaction, draft: Draft, parent: Parent, mode: ChainMode
    ) -> Appended:
        # An update keeps the place of the message; only what is not there is appended.
        if mode == "upsert" and await self._replace(tx, draft):
            row = await self.history.row(draft.id, tx)
            if row is not None:
                return Appended(inserted=False, row=row)
        return await self._insert(tx, draft, parent)

    async def _insert(self, tx: Transaction, draft: Draft, parent: Parent) -> Appended:
        try:
            above = await self._row_of_parent(tx, parent)
        # The parent is gone but the message is there: it was stored before, and its place is its
        # own.
        except ParentNotFoundError:
            known = await self.history.row(draft.id, tx)
            if known is None:
                raise
            return Appended(inserted=False, row=known)
        place: dict[str, Any] = {
            "id": draft.id,
            "role": draft.role,
            "bytes": draft.bytes,
            "tokens": draft.tokens,
            "parent_id": above.id if above else None,
            "depth": (above.depth if above else 0) + 1,
            "cum_bytes": (above.cum_bytes if above else 0) + draft.bytes,
            "cum_tokens": (above.cum_tokens if above else 0) + draft.tokens,
        }
        written = await tx.fetch_one(
            "insert_message",
            {**self._scope, **place, "content": draft.content, "created_at": self._clock.now()},
        )
        if written is None:
            known = await self.history.row(draft.id, tx)
            if known is None:
                raise SessionError(f"Message {draft.id!r} was not written.")
            return Appended(inserted=False, row=known)
        await tx.execute("touch_session", self._scope)
        row = MessageRow(seq=written["seq"], version=1, **place)
        return Appended(inserted=True, row=row, content=draft.content, stamp=self._changed())

    async def _replace(self, tx: Transaction, draft: Draft) -> bool:
        old = await self.history.row(draft.id, tx)
        if old is None:
            return False
        self._changed(replaced=draft.id)
        target = {**self._scope, "id": draft.id}
        await tx.execute("keep_version", {**target, "replaced_at": self._clock.now()})
        await tx.execute(
            "replace_message",
            {
                **target,
                "role": draft.role,
                "content": draft.content,
                "bytes": draft.bytes,
                "tokens": draft.tokens,
            },
        )
        grown = {"bytes": draft.bytes - old.bytes, "tokens": draft.tokens - old.tokens}
        # Every row below counts this one in its sums.
        if any(grown.values()):
            await tx.execute("shift_descendants", {**target, **grown})
        return True

    async def _row_of_parent(self, tx: Transaction, parent: Parent) -> MessageRow | None:
        if parent is None:
            return None
        if isinstance(parent, MessageRow):
            return parent
        if not isinstance(parent, str):
            return await self.history.head(tx)
        row = await self.history.row(parent, tx)
        if row is None:
            raise ParentNotFoundError(parent)
        return row

    async def _move_head_from(
        self, tx: Transaction, head: MessageRow | None, deleted: Sequence[MessageRow]
    ) -> None:
        """If the head went: its parent is the head if nothing hangs there, else the latest leaf."""
        gone = {row.id: row for row in deleted}
        if head is None or head.id not in gone:
            return
        above = head.parent_id
        while above is not None and above in gone:
            above = gone.pop(above).parent_id  # each at most once: a broken tree may go in circles
        free = above is not None and await self._is_childless(tx, above)
        await tx.execute("set_active_leaf", {**self._scope, "leaf": above if free else None})

    async def _is_childless(self, tx: Transaction, message_id: str) -> bool:
        exists = await self.history.row(message_id, tx) is not None
        return exists and not await self.history.has_children(message_id, tx)


def connected_groups(rows: Sequence[MessageRow]) -> list[list[MessageRow]]:
    """The rows in groups that hang together, the top of each first. `rows` are oldest first."""
    groups: dict[str, list[MessageRow]] = {}
    for row in rows:
        group = groups.get(row.parent_id or "", [])
        group.append(row)
        groups[row.id] = group
    return [group for row_id, group in groups.items() if group[0].id == row_id]
