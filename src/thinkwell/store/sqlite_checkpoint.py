"""Moves the write-ahead log into the database, away from the event loop.

SQLite's automatic checkpoints run inside a commit and make that commit slow, so they are off and
this does their work: on a connection and a thread of its own, when the log file has grown past a
limit, or when it holds content that was erased.

Invariant: the log does not grow without end. Writers that never pause keep a plain checkpoint
from finishing; past `HARD_FACTOR` times the limit the last bit is therefore done while no
transaction is open. The file size tells the truth because `journal_size_limit` equals the limit:
a restarted log is cut to it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

from thinkwell.core.errors import StoreError
from thinkwell.core.tasks import TaskOwner
from thinkwell.store.threads import WorkerThread

LOG_LIMIT_BYTES = 4 * 1024 * 1024
HARD_FACTOR = 4
EMPTY_TIMEOUT_MS = 20
"""How long writers may wait for a reader that keeps the log from being emptied."""
EMPTY_RETRY = 0.2

log = logging.getLogger("thinkwell.store")


class Checkpointer:
    """Watches the log of one database file. Used from the event loop."""

    def __init__(
        self,
        path: Path,
        connect: Callable[[], sqlite3.Connection],
        *,
        limit: int = LOG_LIMIT_BYTES,
    ) -> None:
        self._wal = path.with_name(path.name + "-wal")
        self._connect = connect
        self._limit = limit
        self._worker = WorkerThread("thinkwell-checkpoint")
        self._tasks = TaskOwner("checkpoint")
        self._due = asyncio.Event()
        self._erased = False
        self._connection: sqlite3.Connection | None = None

    def start(self, lock: asyncio.Lock) -> None:
        """Begin to watch. `lock` is held by whoever has a transaction open."""
        self._tasks.spawn(self._watch(lock), name="watch")

    def look(self) -> None:
        """There were commits: see soon whether the log is too large."""
        self._due.set()

    def empty_soon(self) -> None:
        """The log holds what was erased: cut it to nothing as soon as no reader needs it."""
        self._erased = True
        self._due.set()

    async def run_if_large(self, lock: asyncio.Lock) -> None:
        """One look at the log: nothing, a checkpoint beside the writers, or one while they wait."""
        if await self._worker.run(self._size) <= self._limit:
            return
        await self._worker.run(lambda: self._checkpoint("PASSIVE"))
        if await self._worker.run(self._size) > self._limit * HARD_FACTOR:
            async with lock:
                await self._worker.run(lambda: self._checkpoint("PASSIVE"))

    async def rewrite(self, lock: asyncio.Lock) -> None:
        """Write the database anew and empty the log. Raises `StoreError` if the disk is full."""
        async with lock:
            await self._worker.run(self._vacuum)
        while True:
            async with lock:
                if await self._worker.run(self._truncate):
                    return
            await asyncio.sleep(EMPTY_RETRY)  # a reader still needs the old pages

    async def close(self) -> None:
        """Empty the log and stop. The caller makes sure that nobody writes any more."""
        await self._tasks.close()
        try:
            await self._worker.run(self._finish)
        finally:
            self._worker.stop()

    async def _watch(self, lock: asyncio.Lock) -> None:
        while True:
            await self._due.wait()
            self._due.clear()
            try:
                if self._erased:
                    await self._empty(lock)
                else:
                    await self.run_if_large(lock)
            except (sqlite3.Error, OSError):
                # The data is safe in the log; the next look tries again.
                log.exception("checkpoint failed", extra={"action": "store:checkpoint"})
                await asyncio.sleep(EMPTY_RETRY)

    async def _empty(self, lock: asyncio.Lock) -> None:
        """Move everything beside the writers; only the end of it, and the cut, while they wait."""
        self._erased = emptied = False
        try:
            await self._worker.run(lambda: self._checkpoint("PASSIVE"))
            async with lock:
                emptied = await self._worker.run(self._truncate)
        finally:
            if not emptied:  # a reader needs it still, or the disk is full
                self.empty_soon()
        if not emptied:
            await asyncio.sleep(EMPTY_RETRY)

    def _vacuum(self) -> None:
        if self._connection is None:
            self._connection = self._connect()
        try:
            self._connection.execute("VACUUM")
        except sqlite3.Error as error:
            raise StoreError(f"The file could not be rewritten: {error}") from error

    def _truncate(self) -> bool:
        if self._connection is None:
            self._connection = self._connect()
        self._connection.execute(f"PRAGMA busy_timeout = {EMPTY_TIMEOUT_MS}").fetchall()
        (busy, _, _) = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return busy == 0

    def _size(self) -> int:
        try:
            return os.stat(self._wal).st_size
        except FileNotFoundError:
            return 0

    def _checkpoint(self, mode: str) -> None:
        if self._connection is None:
            self._connection = self._connect()
        self._connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchall()

    def _finish(self) -> None:
        try:
            self._checkpoint("TRUNCATE")
        except sqlite3.Error:
            log.exception("the last checkpoint failed", extra={"action": "store:close"})
        if self._connection is not None:
            self._connection.close()
            self._connection = None
