"""A session on a real file, and a look at what is stored beside it."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

from thinkwell.core.bus import EventBus
from thinkwell.session.session import Session
from thinkwell.store.sqlite import SqliteStore
from thinkwell.testing import ScriptedModel

AGENT = "assistant/ann"


@asynccontextmanager
async def opened(
    path: Path, session_id: str = "", *, agent: str = AGENT, bus: EventBus | None = None
) -> AsyncIterator[Session]:
    """A session of its own on this file."""
    store = SqliteStore(path)
    await store.open()
    try:
        yield Session(store, agent, session_id, bus=bus)
    finally:
        await store.close()


def rows(path: Path, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    """What is committed."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as file:
        return file.execute(sql, values).fetchall()


def prompts_of(model: ScriptedModel) -> list[str]:
    """The system prompt of each request."""
    return [request.system for request in model.requests]
