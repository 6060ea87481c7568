"""The database file is its owner's alone (SECURITY.md)."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from thinkwell import App, Think
from thinkwell.core.errors import ConfigurationError
from thinkwell.store.sqlite import SqliteStore


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def test_a_new_file_its_log_its_index_its_lock_and_its_folder_are_private(tmp_path: Path):
    before = os.umask(0)
    try:
        store = SqliteStore(tmp_path / "new" / "x.db")
        await store.open()
        modes = {path.name: mode(path) for path in (tmp_path / "new").iterdir()}
        await store.close()
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(("x.db", "x.db-wal", "x.db-shm", "x.db.lock"), 0o600)
    assert mode(tmp_path / "new") == 0o700


async def test_an_existing_file_keeps_its_mode(tmp_path: Path):
    path = tmp_path / "x.db"
    path.touch()
    path.chmod(0o640)
    store = SqliteStore(path)
    await store.open()
    await store.close()
    assert mode(path) == 0o640


async def test_power_is_reachable_from_the_app(tmp_path: Path):
    class Quiet(Think):
        model = "demo"

    app = App(agents=[Quiet], store=f"sqlite:///{tmp_path}/x.db", durability="power")
    async with app:
        assert (await app.agent(Quiet, "x").run("hi")).status == "completed"
        store = app._host._store  # type: ignore[union-attr]
        assert store._durability == "power"  # type: ignore[attr-defined]


def test_another_durability_is_an_error_that_names_the_right_ones():
    class Quiet(Think):
        model = "demo"

    with pytest.raises(ConfigurationError, match='"process" or "power"'):
        App(agents=[Quiet], durability="disk")  # type: ignore[arg-type]
