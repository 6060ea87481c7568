"""One write transaction on SQLite, as a small class because it runs once per commit of every agent.

The block holds the store's lock from BEGIN to COMMIT. It commits when the block ends and rolls
back when the block raises, cancellation included. Under `durability="power"` the commit waits for
the disk in a thread; a caller cancelled meanwhile sees its cancellation after the commit is
through.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from thinkwell.core.errors import StoreError
from thinkwell.store.base import Params, Row
from thinkwell.store.sqlite_link import SqliteLink
from thinkwell.store.threads import WorkerThread


class SqliteTransaction:
    """`async with` it; its methods work inside the block only."""

    __slots__ = ("_committer", "_link", "_open")

    def __init__(self, link: SqliteLink, committer: WorkerThread | None) -> None:
        self._link = link
        self._committer = committer
        self._open = False

    async def __aenter__(self) -> SqliteTransaction:
        link = self._link
        link.refuse_own_transaction("transaction")
        await link.lock.acquire()
        try:
            link.begin()
        except BaseException:
            link.lock.release()
            raise
        self._open = True
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open = False
        link = self._link
        try:
            if kind is not None:
                link.rollback()
            elif self._committer is None:
                link.commit()
            else:
                await self._committer.run(link.commit)
        finally:
            # Also when the commit raised: whoever waits must not wait for a transaction that is
            # over.
            link.end(committed=kind is None)

    async def fetch_all(self, query: str, params: Params, /) -> Sequence[Row]:
        """Every row of the named query."""
        return self._live().fetch_all(query, params)

    async def fetch_one(self, query: str, params: Params, /) -> Row | None:
        """The first row of the named query, or None."""
        return self._live().fetch_one(query, params)

    async def execute(self, query: str, params: Params, /) -> int:
        """Run the named query and return how many rows it changed."""
        return self._live().execute(query, params)

    async def execute_many(self, query: str, rows: Sequence[Params], /) -> None:
        """Run the named query once per row."""
        self._live().execute_many(query, rows)

    def savepoint(self) -> SqliteSavepoint:
        """A part that fails alone."""
        return SqliteSavepoint(self._live())

    def _live(self) -> SqliteLink:
        if self._open:
            return self._link
        raise StoreError(
            "A transaction was used outside its block. Keep every call inside "
            "`async with store.transaction() as tx:`."
        )


class SqliteSavepoint:
    """`async with` it inside a transaction; one at a time."""

    __slots__ = ("_link",)

    def __init__(self, link: SqliteLink) -> None:
        self._link = link

    async def __aenter__(self) -> None:
        self._link.set_savepoint()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._link.leave_savepoint(undo=kind is not None)
