"""An app whose agents can search, and ways to fill it."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

from thinkwell import App, Think
from thinkwell.core.ids import new_id
from thinkwell.features import Search
from thinkwell.messages import UIMessage
from thinkwell.session.search.index import SearchIndex
from thinkwell.store.sqlite import SqliteStore
from thinkwell.testing import ScriptedModel


class Talker(Think):
    model: Any = ScriptedModel(["Noted."] * 200)
    features = [Search(clients=True)]
    search: Search

    async def fill(self, texts: Sequence[str], parent: str | None = None) -> list[str]:
        """A chain of messages, by turns of user and assistant; their ids."""
        chain = [said(text, "assistant" if i % 2 else "user") for i, text in enumerate(texts)]
        await self.session.add_messages(chain, *([parent] if parent else []))
        return [message["id"] for message in chain]


def said(text: str, role: Any = "user", message_id: str | None = None) -> UIMessage:
    return {
        "id": message_id or new_id(),
        "role": role,
        "parts": [{"type": "text", "text": text}],
    }


@asynccontextmanager
async def talking(path: Path | None = None, **options: Any) -> AsyncIterator[Any]:
    """One agent of an app on a file, awake."""
    url = "sqlite://:memory:" if path is None else f"sqlite:///{path}"
    async with App(agents=[Talker], store=url, **options) as app:
        yield app.agent(Talker)


def texts(hits: Sequence[Any]) -> list[str]:
    return [hit.text for hit in hits]


def rows(path: Path, sql: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as file:
        return file.execute(sql).fetchall()


@asynccontextmanager
async def store_at(path: Path) -> AsyncIterator[tuple[SqliteStore, SearchIndex]]:
    """The store and its index, without an app."""
    store = SqliteStore(path)
    await store.open()

    async def commit(work: Any, /) -> Any:
        async with store.transaction() as tx:
            return await work(tx)

    try:
        yield store, SearchIndex(store, commit)
    finally:
        await store.close()
