"""Ours with the probes of the durability figures: the file `thinkwell serve` is given for them.

`BENCH_STAMPS` names a file that gets a line `<what> <agent> <clock>` for the first delta of every
agent in this life of the process and for every job that begins. `BENCH_STATEMENTS` names one that
holds the number of SQL statements run so far. `BENCH_JOURNAL=discard` puts a sink in the place of
the journal: chunks reach clients in the same groups, nothing writes them to the store, and nothing
is packed when a turn ends.
"""

from __future__ import annotations

import mmap
import os
import sqlite3
import struct
import time
from pathlib import Path
from typing import Any

from benchmarks.subjects.served import Served
from thinkwell import App
from thinkwell.agent import wiring
from thinkwell.journal.group_commit import GroupCommit, Written
from thinkwell.store.base import Transaction
from thinkwell.turn.end import settle

COUNT = struct.Struct("Q")


class Stamps:
    """Appends lines to a file; every line is one write, so that a kill cuts none in two."""

    def __init__(self, path: str | None) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self._file = None if path is None else os.open(path, flags)

    def write(self, what: str, name: str, clock: float) -> None:
        """Something has happened."""
        if self._file is not None:
            os.write(self._file, f"{what} {name} {clock!r}\n".encode())


stamps = Stamps(os.environ.get("BENCH_STAMPS"))


class Durable(Served, name="served"):
    """Stamps its first delta and its jobs."""

    async def on_chunk(self, ctx: Any) -> None:
        if not self.chunks:
            stamps.write("delta", self.name, time.monotonic())
        self.chunks += 1

    async def work(self, payload: Any) -> None:
        """A job. The wall clock: that is what schedules go by."""
        stamps.write("job", self.name, time.time())


class DiscardingSink(GroupCommit):
    """A journal that keeps nothing. Whatever is not a chunk is stored as ever."""

    async def _flush(self) -> None:
        async with self._one_at_a_time:
            if self._waiting:
                self._tell(self._taken(), (), self._clock.monotonic())

    async def _write_waiting(self, tx: Transaction) -> list[Written]:
        return self._taken()

    def _taken(self) -> list[Written]:
        return [Written(log, len(log.bodies), len(log.events)) for log in self._waiting]


async def pack_nothing(*_: object, **__: object) -> None:
    """For the journal of an ended turn."""


def count_statements(path: Path) -> None:
    """Have every connection that is opened from now on count what it runs."""
    path.write_bytes(COUNT.pack(0))
    with path.open("r+b") as file:
        memory = mmap.mmap(file.fileno(), COUNT.size)
    connect = sqlite3.connect

    def count(_: str) -> None:
        COUNT.pack_into(memory, 0, COUNT.unpack_from(memory)[0] + 1)

    def counted(*args: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*args, **options)
        connection.set_trace_callback(count)
        return connection

    sqlite3.connect = counted


if os.environ.get("BENCH_JOURNAL") == "discard":
    wiring.GroupCommit = DiscardingSink
    settle.pack_journal = pack_nothing
if counted := os.environ.get("BENCH_STATEMENTS"):
    count_statements(Path(counted))
app = App(agents=[Durable])
