"""Faults of the disk beside those in `tests/turns/test_full_disk.py` (DESIGN §8.17, spec/04 §1):
a disk that turns read-only, a torn frame in the log, a log that is gone.
"""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.turns.support import running, until_event, untyped
from thinkwell import Think
from thinkwell.core.errors import NOT_STORED
from thinkwell.messages.message import text_of
from thinkwell.store.sqlite import SqliteStore
from thinkwell.testing import pause

HEADER, FRAME = 32, 24
"""Bytes of the header of a write-ahead log, and of each frame in it before its page."""


class Clerk(Think):
    pass


def loose(value: Any) -> Any:
    """The insides of an object."""
    return value


class TestAReadOnlyDisk:
    async def test_new_work_is_refused_and_what_was_accepted_is_answered_once_it_writes_again(
        self, tmp_path: Path
    ):
        store = SqliteStore(tmp_path / "thinkwell.db")
        gate = pause()
        async with running(Clerk, [gate, "answered"], "later", store=store) as stage:
            loose(stage.host)._shared.commits.health._sleep = lambda _: asyncio.sleep(0.001)
            client = await stage.connect()
            await client.ask("hi", "q1")
            await gate.reached()
            # What SQLite raises here is what it raises on a disk that was mounted read-only.
            loose(store)._link._connection.execute("PRAGMA query_only = ON").fetchall()
            gate.open()
            await until_event(stage, "store:failing")
            assert stage.host.not_ready() == "store"
            await client.ask("me too", "q2")
            (refused,) = client.ends("q2")
            assert refused["body"] == NOT_STORED
            assert client.ends("q1") == []
            loose(store)._link._connection.execute("PRAGMA query_only = OFF").fetchall()
            await client.until_end("q1")
            assert text_of(await stage.answer()) == "answered"
            assert len(stage.model.requests) == 1


async def killed(folder: Path) -> Path:
    """A database as `kill -9` leaves it: three answered questions, and the log beside it."""
    path, left = folder / "thinkwell.db", folder / "left.db"
    async with running(Clerk, "one", "two", "three", store=SqliteStore(path)) as stage:
        for question in ("1", "2", "3"):
            await stage.agent.run(question)
        for suffix in ("", "-wal"):
            (folder / f"left.db{suffix}").write_bytes(
                (folder / f"thinkwell.db{suffix}").read_bytes()
            )
    return left


def page_size(path: Path) -> int:
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as link:
        return int(link.execute("PRAGMA page_size").fetchone()[0])


class TestATornLog:
    @pytest.mark.parametrize("damage", ["cut", "garbled"])
    async def test_everything_before_the_torn_frame_is_there_and_the_agent_goes_on(
        self, tmp_path: Path, damage: str
    ):
        left = await killed(tmp_path)
        log = left.with_name("left.db-wal")
        raw = bytearray(log.read_bytes())
        frame = FRAME + page_size(left)
        frames = (len(raw) - HEADER) // frame
        torn = HEADER + (frames - 1) * frame + FRAME + 100
        if damage == "cut":
            del raw[torn:]
        else:
            raw[torn : torn + 64] = b"\xff" * 64
        log.write_bytes(raw)
        async with running(Clerk, "again", "more", store=SqliteStore(left)) as stage:
            await untyped(stage)._turns.wait_until_idle()
            said = [text_of(message) for message in await stage.messages()]
            # Only the last commit was in the torn frame: the end of the third turn at most.
            assert said[:5] == ["1", "one", "2", "two", "3"]
            # On a busy machine its words were committed before its end: then it goes on after them.
            assert said[5] in ("three", "again", "threeagain")
            assert (await stage.agent.run("4")).status == "completed"
        with closing(sqlite3.connect(left)) as link:
            assert link.execute("PRAGMA integrity_check").fetchone() == ("ok",)

    async def test_a_log_that_is_gone_leaves_what_was_moved_into_the_file(self, tmp_path: Path):
        left = await killed(tmp_path)
        left.with_name("left.db-wal").unlink()
        async with running(Clerk, "fine", store=SqliteStore(left)) as stage:
            assert (await stage.agent.run("hi")).status == "completed"


DROP = """
import ctypes, sys
# Permission bits count for root too without its capabilities. No exec follows: it would give them
# back.
class Head(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]
assert ctypes.CDLL(None).capset(ctypes.byref(Head(0x20080522, 0)), (ctypes.c_uint32 * 6)()) == 0
from thinkwell.cli.main import main
main(sys.argv[1:])
"""


@pytest.mark.parametrize("what", ["folder", "file"])
def test_a_start_on_a_read_only_disk_ends_with_the_path_and_the_reason(tmp_path: Path, what: str):
    folder, app = tmp_path / "data", tmp_path / "app.py"
    folder.mkdir()
    database = folder / "thinkwell.db"
    app.write_text(
        "from thinkwell import App, Think\n\n\nclass Clerk(Think):\n    model = 'demo'\n\n\n"
        "app = App(agents=[Clerk])\n"
    )
    if what == "file":
        with closing(sqlite3.connect(database)) as file:
            file.execute("PRAGMA user_version = 0")
            file.execute("CREATE TABLE other (x)")
            file.commit()
        database.chmod(0o444)
    before = database.read_bytes() if what == "file" else None
    folder.chmod(0o555)
    try:
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                DROP,
                "serve",
                app,
                "--port",
                "0",
                "--store",
                f"sqlite:///{database}",
            ],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        folder.chmod(0o755)
    assert done.returncode == 1
    assert f"Cannot open the store {database}" in done.stderr
    assert "Permission denied" in done.stderr
    assert "Traceback" not in done.stderr
    assert (database.read_bytes() if database.exists() else None) == before
