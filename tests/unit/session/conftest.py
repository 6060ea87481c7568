"""A session on a store in memory, and short ways to write and read it."""

from __future__ import annotations

import pytest

from thinkwell.messages.message import UIMessage, user_message
from thinkwell.session.session import Session
from thinkwell.store.sqlite import SqliteStore


@pytest.fixture
async def store():
    store = SqliteStore(":memory:")
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def session(store) -> Session:
    return Session(store, "assistant/alice")


@pytest.fixture
def put(session):
    """Append messages by id, each with its id as text."""

    async def put(*ids: str, **options) -> None:
        for message_id in ids:
            await session.append_message(text(message_id), **options)

    return put


def text(message_id: str, content: str | None = None) -> UIMessage:
    return user_message(message_id, message_id if content is None else content)


def ids(messages) -> list[str]:
    return [message["id"] for message in messages]
