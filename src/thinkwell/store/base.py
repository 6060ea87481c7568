"""What a store is: named queries inside transactions, on one schema for every driver.

Owned here: the two Protocols and the record types. Drivers live in their own files (`sqlite.py`);
SQL lives in `queries/*.sql`, one comment each. Callers name a query and hand in its parameters;
they never write SQL and never rely on a store method not suspending.

Contract:
- `transaction()` is serialisable against every other one; it commits when the block ends and
  rolls back when the block raises, cancellation included.
- A returned transaction block means: the writes survive `kill -9`.
- Rows are read by column name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeAlias, TypeVar

T = TypeVar("T")
Params = Mapping[str, Any]


class Row(Protocol):
    """One row, read by column name."""

    def __getitem__(self, key: str, /) -> Any: ...


class Reader(Protocol):
    """Runs named queries that return rows."""

    async def fetch_all(self, query: str, params: Params, /) -> Sequence[Row]:
        """Every row of the named query."""
        ...

    async def fetch_one(self, query: str, params: Params, /) -> Row | None:
        """The first row of the named query, or None."""
        ...


class Transaction(Reader, Protocol):
    """One write transaction. Valid only inside its `async with` block."""

    async def execute(self, query: str, params: Params, /) -> int:
        """Run the named query and return how many rows it changed."""
        ...

    async def execute_many(self, query: str, rows: Sequence[Params], /) -> None:
        """Run the named query once per row."""
        ...

    def savepoint(self) -> AbstractAsyncContextManager[None]:
        """A part that fails alone: if the block raises, its writes are gone and the rest stays."""
        ...


Work: TypeAlias = Callable[[Transaction], Awaitable[T]]
"""What is done inside one transaction, together or not at all."""


class Commit(Protocol):
    """Carries out a work in a transaction and returns once that is committed.

    Contract: what the work raises comes out here and none of its writes stay.
    """

    async def __call__(self, work: Work[T], /) -> T:
        """Run `work` and return its result after the commit."""
        ...


class Store(Reader, Protocol):
    """One database for all agents of an app."""

    async def open(self) -> None:
        """Lock the database, bring its schema up to date.

        Raises `StoreLockedError`, `SchemaTooNewError`.
        """
        ...

    async def close(self) -> None:
        """Checkpoint and release. Idempotent."""
        ...

    def check(self) -> None:
        """Raise `StoreUnavailableError` if what is written now would be lost. Quick."""
        ...

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """A write transaction: commits when the block ends, rolls back when the block raises."""
        ...

    async def scrub(self) -> None:
        """Content was erased: have it leave the files too, soon and away from the event loop."""
        ...

    async def rewrite(self) -> None:
        """Write the database anew, so that nothing is left of what was deleted from it.

        Returns when the files hold what is stored and nothing else. Everybody who writes waits.
        """
        ...

    async def shrink(self) -> bool:
        """Give back a piece of the space that nothing uses, if that is much. Whether more is left.

        Quick; whoever wants all of it back calls again.
        """
        ...

    async def fetch_in_background(self, query: str, params: Params, /) -> Sequence[Row]:
        """A long read, away from the event loop, on a connection of its own."""
        ...


async def commit_alone(store: Store, work: Work[T], /) -> T:
    """Commit a work to a store that no host serves: nobody else writes, so nothing is grouped."""
    async with store.transaction() as tx:
        return await work(tx)
