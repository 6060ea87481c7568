"""What the records of finished turns take on disk, beside the messages.

A conversation as people have it: questions of a sentence or two, answers of a paragraph, a tool
call in every second turn. The words are random, because repeated ones would compress too well.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks.report import Row, times
from thinkwell import App, Retention, Think, tool
from thinkwell.agent.wiring import Shared
from thinkwell.core.bus import EventBus
from thinkwell.core.clock import SystemClock
from thinkwell.host.upkeep import Upkeep
from thinkwell.store.sqlite import SqliteStore
from thinkwell.testing import ScriptedModel, call

TURNS = 200
RECORDS = ("turns", "journal", "packed_journals", "tool_calls", "blobs", "blob_uses")
NOW = Retention(journals=0, message_versions=0, turns=0, tool_calls=0, jobs=0, decisions=0)
"""Everything is past its age at once."""
MOST_PIECES = 1_000


def words(seed: int, count: int) -> str:
    """A text that compresses about as badly as a real one."""
    rng = random.Random(seed)
    letters = "abcdefghijklmnopqrstuvwxyz"
    return " ".join("".join(rng.choices(letters, k=rng.randint(2, 9))) for _ in range(count))


class Librarian(Think):
    """Looks things up and notes some of them down."""

    model: Any = ScriptedModel([])

    @tool(effect="pure")
    async def look(self, what: str) -> str:
        """Look something up."""
        return f"{what}: {words(len(what), 60)}"

    @tool
    async def note(self, what: str) -> str:
        """Note something down."""
        return f"noted: {what}"


def script() -> list[Any]:
    """What the model says, step by step."""
    steps: list[Any] = []
    for turn in range(TURNS):
        if turn % 4 == 1:
            steps.append([call("look", {"what": words(turn, 15)})])
        if turn % 4 == 3:
            steps.append([call("note", {"what": words(turn, 15)})])
        steps.append(words(10_000 + turn, 60 + turn % 4 * 20))
    return steps


async def storage_rows(folder: Path) -> Sequence[Row]:
    """Bytes of the records, of those of the messages: when the turns have ended, and cleaned up."""
    path = folder / "storage.db"
    Librarian.model = ScriptedModel(script())
    async with App(agents=[Librarian], store=f"sqlite:///{path}") as app:
        agent = app.agent(Librarian, "desk")
        for turn in range(TURNS):
            await agent.run(words(20_000 + turn, 12))
    fresh = sizes(path)
    await clean_up(path)
    kept = sizes(path)
    what = f"turns + journal + ledger of {TURNS} turns, of the messages (bytes)"
    return [size_row(f"{what}: just ended", fresh, None), size_row(f"{what}: cleaned up", kept, 1)]


async def clean_up(path: Path) -> None:
    """What the upkeep does once everything is past its age."""
    store = SqliteStore(path)
    await store.open()
    shared = Shared(store, SystemClock(), EventBus())
    upkeep = Upkeep(shared, NOW)
    for _ in range(MOST_PIECES):
        if (await upkeep.drop_old_rows()).delay > 0:
            break
    else:
        raise RuntimeError("the clean-up does not come to an end")
    await shared.commits.close()
    await store.close()


def sizes(path: Path) -> Mapping[str, int]:
    """The bytes that rows take, by table, those of its indexes included."""
    found: dict[str, int] = {}
    with closing(sqlite3.connect(path)) as file:
        owner = dict(file.execute("SELECT name, tbl_name FROM sqlite_schema").fetchall())
        for name, size in file.execute("SELECT name, SUM(payload) FROM dbstat GROUP BY name"):
            table = owner.get(name, name)
            found[table] = found.get(table, 0) + size
    return found


def size_row(what: str, bytes_of: Mapping[str, int], limit: float | None) -> Row:
    """All records as a multiple of the messages."""
    records, messages = sum(bytes_of.get(table, 0) for table in RECORDS), bytes_of["messages"]
    ratio = records / messages
    shown = f"{times(ratio)}: {records / 1000:,.0f} kB beside {messages / 1000:,.0f} kB"
    return Row(what=what, shown=shown, value=ratio, limit=limit)
