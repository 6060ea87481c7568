"""The session of one agent as its users see it: read the history, write messages.

Owned here: the names of spec/03 §2 and §12 and the way a write reaches the database. Each write
is one unit of work handed to `write`; the turn's journal passes its group commit there, a session
on its own opens a transaction per call. The methods that take a transaction come from
`MessageTree` and are for callers that commit messages together with something else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from thinkwell.core import json
from thinkwell.core.bus import EventBus
from thinkwell.core.clock import Clock, SystemClock
from thinkwell.core.errors import SearchUnsupportedError
from thinkwell.messages.message import UIMessage
from thinkwell.session.cache import CachedMessage, MessageCache
from thinkwell.session.context import ContextMethods
from thinkwell.session.history import History
from thinkwell.session.rows import (
    AUTO,
    Appended,
    MessageRow,
    Parent,
    RecentHistory,
    RowStats,
    StoredMessage,
)
from thinkwell.session.search.find import SearchHit, SearchMode
from thinkwell.session.tree import ChainMode, MessageTree
from thinkwell.store.base import Commit, Reader, Store, Transaction, Work

if TYPE_CHECKING:
    from thinkwell.session.blocks.ports import Join, Ports

T = TypeVar("T")
Chain: TypeAlias = Sequence[UIMessage] | Callable[[list[UIMessage]], Sequence[UIMessage]]
"""Messages to add, or a function that makes them from the current history."""


class Session(MessageTree, ContextMethods):
    """One conversation of an agent. The id `""` is the agent's own; others are separate trees."""

    def __init__(
        self,
        store: Store,
        agent_id: str,
        session_id: str = "",
        *,
        write: Commit | None = None,
        cache: MessageCache | None = None,
        clock: Clock | None = None,
        join: Join | None = None,
        bus: EventBus | None = None,
    ) -> None:
        self.cache = MessageCache() if cache is None else cache
        super().__init__(
            History(store, agent_id, session_id, cache=self.cache), clock or SystemClock()
        )
        self._store = store
        self._partial: UIMessage | None = None
        self.searching: Callable[..., Awaitable[list[SearchHit]]] | None = None
        """Looks something up; the feature `Search` sets it."""
        self._write: Commit = write or self._in_own_transaction
        self._join = join
        self._bus = bus
        self.when_remembering: Callable[[], object] = _nothing
        """Told when the session gets its first context block."""

    def _block_ports(self) -> Ports:
        from thinkwell.session.blocks.ports import Ports

        return Ports(
            store=self._store,
            agent_id=self._scope["agent"],
            session_id=self._scope["session"],
            clock=self._clock,
            join=self._join or self._join_nothing,
            bus=self._bus or EventBus(),
        )

    def _begun_to_remember(self) -> None:
        self.when_remembering()

    async def _replies(self) -> list[UIMessage]:
        path = await self.get_stored_history()
        return [stored.message for stored in path if stored.message["role"] == "assistant"]

    async def _replace_message(self, message: UIMessage, tx: Transaction) -> None:
        await self.update(tx, message)

    async def _join_nothing(
        self, work: Work[object], afterwards: Callable[[], object] | None = None, /
    ) -> None:
        await self._write(work)
        if afterwards is not None:
            afterwards()

    def remember(self, written: Sequence[Appended]) -> None:
        """Messages whose transaction has committed: the next read finds them in the cache."""
        for each in written:
            if each.inserted:
                entry = CachedMessage(each.row.version, each.content, json.loads(each.content))
                self.cache.put(each.row.seq, entry)
                self.history.head_path.extend(each)
                if self.history.kept is not None:
                    self.history.kept.extend(each)

    @contextmanager
    def showing(self, partial: UIMessage | None) -> Generator[None]:
        """While the hooks of a failed turn run, who reads the conversation finds its reply in it.

        The reply is durable in the turn's journal; the tree gets it together with the turn's end.
        `get_head` and `get_stored_history` speak of the tree, so they do not show it.
        """
        self._partial = partial
        try:
            yield
        finally:
            self._partial = None

    @property
    def partial(self) -> UIMessage | None:
        """The reply of a turn that has failed and is about to be stored."""
        return self._partial

    async def append_message(self, message: UIMessage, parent: Parent = AUTO) -> Appended:
        """Add a message below `parent`: the head (`AUTO`), nothing (None), or a message by id."""
        return await self._write(lambda tx: self.append(tx, message, parent))

    async def update_message(self, message: UIMessage) -> bool:
        """Replace a message's content in place; False for an unknown id."""
        return await self._write(lambda tx: self.update(tx, message))

    async def upsert_message(self, message: UIMessage, parent: Parent = AUTO) -> Appended:
        """Update the message if its id is known, else append it."""
        return await self._write(lambda tx: self.upsert(tx, message, parent))

    async def add_messages(
        self, messages: Chain, parent: Parent = AUTO, *, mode: ChainMode = "append"
    ) -> list[Appended]:
        """Write a chain of messages, or what a function makes of the current history. No turn.

        The function is called again if something else was written before its messages were.
        """
        if not callable(messages):
            return await self._write(lambda tx: self.add(tx, messages, parent, mode=mode))
        # Users' code is not run inside a transaction, where everybody would wait for it.
        while True:
            stamp = self.history.head_path.stamp
            # What is stored, not what is shown beside it: a function may give all of it back.
            made = messages([_copy(stored) for stored in await self.get_stored_history()])
            added = await self._write(
                partial(self._add_at, stamp, messages=made, parent=parent, mode=mode)
            )
            if added is not None:
                return added

    async def _add_at(
        self,
        stamp: int,
        tx: Transaction,
        *,
        messages: Sequence[UIMessage],
        parent: Parent,
        mode: ChainMode,
    ) -> list[Appended] | None:
        """Add them unless the tree was written to since `stamp`."""
        if self.history.head_path.stamp != stamp:
            return None
        return await self.add(tx, messages, parent, mode=mode)

    async def delete_messages(self, ids: Sequence[str]) -> int:
        """Remove just these messages; their children move up. How many were there."""
        return await self._write(lambda tx: self.delete(tx, ids))

    async def delete_branch(self, message_id: str) -> int:
        """Remove a message and everything below it. How many that were."""
        return await self._write(lambda tx: self.prune(tx, message_id))

    async def clear_messages(self) -> int:
        """Remove every message of this session. How many that were."""
        return await self._write(self.clear)

    async def set_active_leaf(self, message_id: str | None) -> None:
        """Go on from this message: the next append hangs under it. None: the latest leaf."""
        await self._write(lambda tx: self.pin(tx, message_id))

    async def get_history(
        self, leaf_id: str | None = None, *, reader: Reader | None = None
    ) -> list[UIMessage]:
        """The messages from the root to a leaf (default: the head), as copies; [] if unknown."""
        rows = await self.history.path(leaf_id, reader)
        messages: list[UIMessage] = [_copy(m) for m in await self.history.load(rows, reader)]
        if self._partial is None or leaf_id is not None or reader is not None:
            return messages
        if messages and messages[-1]["id"] == self._partial["id"]:  # it went on in a stored reply
            messages.pop()
        return [*messages, json.loads(json.dumps(self._partial))]

    async def get_stored_history(
        self, leaf_id: str | None = None, *, reader: Reader | None = None
    ) -> list[StoredMessage]:
        """The same path as records with versions and sizes. Their messages must not be changed."""
        return await self.history.load(await self.history.path(leaf_id, reader), reader)

    async def get_recent_history(
        self,
        max_bytes: int,
        min_recent: int = 1,
        *,
        leaf_id: str | None = None,
        reader: Reader | None = None,
    ) -> RecentHistory:
        """The end of the path within a budget; its cost does not depend on what lies above."""
        return await self.history.recent(
            leaf_id, max_bytes=max_bytes, min_recent=min_recent, reader=reader
        )

    async def get_message(
        self, message_id: str, *, reader: Reader | None = None
    ) -> UIMessage | None:
        """One message as a copy, or None."""
        if reader is None and self._partial is not None and self._partial["id"] == message_id:
            return json.loads(json.dumps(self._partial))
        return await self._message_of(await self.history.row(message_id, reader), reader)

    async def get_head(self, *, reader: Reader | None = None) -> MessageRow | None:
        """Where the conversation stands, without content."""
        return await self.history.head(reader)

    async def get_latest_leaf(self, *, reader: Reader | None = None) -> UIMessage | None:
        """The newest message as a copy, or None."""
        return await self._message_of(await self.history.latest_leaf(reader), reader)

    async def get_branches(
        self, message_id: str | None, *, reader: Reader | None = None
    ) -> list[UIMessage]:
        """The alternatives below a message in creation order; None gives those of the beginning."""
        rows = await self.history.children(message_id, reader)
        return [_copy(stored) for stored in await self.history.load(rows, reader)]

    async def get_path_length(
        self, leaf_id: str | None = None, *, reader: Reader | None = None
    ) -> int:
        """How many messages the path to a leaf (default: the head) has."""
        row = await self.history.leaf(leaf_id, reader)
        return 0 if row is None else row.depth

    async def get_history_row_stats(self, *, reader: Reader | None = None) -> list[RowStats]:
        """Id, role and size of every message of the head's path, without reading contents."""
        rows = await self.history.path(reader=reader)
        return [RowStats(id=row.id, role=row.role, bytes=row.bytes) for row in rows]

    async def search(
        self, query: str, limit: int = 20, mode: SearchMode = "all", **filters: Any
    ) -> list[SearchHit]:
        """What was said in this conversation, in all branches, the best first.

        `filters` are those of `agent.search`. Raises `SearchUnsupportedError` without `Search`.
        """
        if self.searching is None:
            raise SearchUnsupportedError
        found = {"session": self.history.scope["session"], **filters}
        return await self.searching(query, limit=limit, mode=mode, **found)

    async def _message_of(self, row: MessageRow | None, reader: Reader | None) -> UIMessage | None:
        loaded = await self.history.load([row], reader) if row is not None else []
        return _copy(loaded[0]) if loaded else None

    async def _in_own_transaction(self, work: Work[T], /) -> T:
        async with self._store.transaction() as tx:
            return await work(tx)


def _nothing() -> None:
    """Nobody wants to know."""


def _copy(stored: StoredMessage) -> UIMessage:
    return json.loads(stored.text)
