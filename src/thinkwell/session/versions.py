"""Messages as they were: what a message said before it was replaced.

An answer grows with every continuation, and an app may change any message. A journal refers to
messages by id and version; `MessageTree` keeps what it replaces, for as long as journals are kept.
A message that is deleted takes its versions along.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from thinkwell.core import json
from thinkwell.core.errors import StoreError
from thinkwell.messages.message import UIMessage
from thinkwell.messages.validate import read_stored
from thinkwell.session.draft import make_draft
from thinkwell.store.base import Params, Reader, Transaction


class PastMessage(msgspec.Struct, frozen=True):
    """One version of a message."""

    message: UIMessage
    bytes: int


async def drop_old_versions(tx: Transaction, *, before: float, limit: int) -> int:
    """Drop a piece of what was replaced before then; how many versions."""
    rows = await tx.fetch_all("old_versions", {"before": before, "limit": limit})
    names = ("agent", "session", "id", "version")
    await tx.execute_many("drop_version", [{name: row[name] for name in names} for row in rows])
    return len(rows)


async def read_past_path(
    reader: Reader, scope: Params, leaf: str, *, count: int, versions: Mapping[int, int]
) -> list[PastMessage]:
    """The last `count` messages of the path to `leaf`, in the versions named by their places.

    Raises `StoreError` if one of them is no longer there.
    """
    limits = {"leaf": leaf, "max_bytes": 0, "min_recent": count}
    rows = await reader.fetch_all("recent_rows", {**scope, **limits})
    ids = [row["id"] for row in rows][::-1]
    if len(ids) != count:
        raise StoreError(f"The path to the message {leaf!r} is no longer what it was.")
    named = {**scope, "ids": json.dumps(ids)}
    texts: dict[tuple[str, int], str] = {}
    for query in ("message_versions", "message_contents"):
        for row in await reader.fetch_all(query, named):
            texts[row["id"], row["version"]] = row["content"]
    return [
        _past(texts, message_id, versions.get(place, 1)) for place, message_id in enumerate(ids)
    ]


async def read_end_of_path(
    reader: Reader, scope: Params, leaf: str, *, count: int
) -> list[UIMessage]:
    """The last messages of the path to `leaf` as they are now, at most `count`."""
    limits = {"leaf": leaf, "max_bytes": 0, "min_recent": count}
    rows = await reader.fetch_all("recent_rows", {**scope, **limits})
    ids = [row["id"] for row in rows][::-1]
    named = {**scope, "ids": json.dumps(ids)}
    texts = {row["id"]: row["content"] for row in await reader.fetch_all("message_contents", named)}
    found = (read_stored(texts[each])[0] for each in ids if each in texts)
    return [message for message in found if message is not None]


async def plant_path(
    tx: Transaction, scope: Params, messages: Sequence[UIMessage], *, depth: int, now: float
) -> None:
    """Write the end of a path into a session that is empty, where it stood in its own.

    What is above its first message is not there; old messages are still known as old by their
    depth, so that a model is sent of them what it was sent then.
    """
    parent, total_bytes, total_tokens = None, 0, 0
    for place, message in enumerate(messages):
        draft = make_draft(message)
        total_bytes, total_tokens = total_bytes + draft.bytes, total_tokens + draft.tokens
        await tx.execute(
            "insert_message",
            {
                **scope,
                "id": draft.id,
                "parent_id": parent,
                "role": draft.role,
                "depth": depth + place,
                "bytes": draft.bytes,
                "tokens": draft.tokens,
                "cum_bytes": total_bytes,
                "cum_tokens": total_tokens,
                "created_at": now,
                "content": draft.content,
            },
        )
        parent = draft.id


def _past(texts: Mapping[tuple[str, int], str], message_id: str, version: int) -> PastMessage:
    text = texts.get((message_id, version))
    message = None if text is None else read_stored(text)[0]
    if text is None or message is None:
        raise StoreError(f"Version {version} of the message {message_id!r} is no longer kept.")
    return PastMessage(message, len(text.encode()))
