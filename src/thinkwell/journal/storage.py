"""Values that an agent or one of its features keeps: JSON under a key, outside the conversation.

Every owner has its own keys: the agent's code writes as `agent`, a feature under its name. A clear
leaves them; what belongs to the conversation is deleted in `on_clear`. Deleting the agent deletes
them.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

from thinkwell.core import json
from thinkwell.journal.group_commit import GroupCommit
from thinkwell.journal.joined_writes import as_one_commit, pending_values, write_soon
from thinkwell.journal.turn_log import Owner
from thinkwell.store.base import Store, Transaction

AGENT = "agent"
"""The owner of what an agent's own code keeps."""
LONGEST_KEY = 512
LARGEST_VALUE = 1_000_000
"""Bytes of one value as JSON: it is written while everybody waits."""
MOST_LISTED = 1000
_LAST = "\U0010ffff"
"""Sorts after every other character."""


class Storage:
    """The stored values of one owner. A value is anything JSON can hold."""

    def __init__(self, store: Store, commits: GroupCommit, owner: Owner, owned_by: str) -> None:
        self._store = store
        self._commits = commits
        self._owner = owner
        self._place = {"agent": owner.agent_id, "owner": owned_by}

    async def get(self, key: str, default: Any = None) -> Any:
        """The value under a key, as a copy, or `default`."""
        pending = self._pending()
        if key in pending:
            text = pending[key]
            return default if text is None else json.loads(text)
        row = await self._store.fetch_one("get_stored", {**self._place, "key": key})
        return default if row is None else json.loads(row["value"])

    async def set(self, key: str, value: Any) -> None:
        """Keep a value under a key. It is durable when this returns."""
        text = _checked(key, value)
        params = {**self._place, "key": key, "value": text}

        async def write(tx: Transaction) -> None:
            await tx.execute("set_stored", params)

        await write_soon(self._commits, self._owner, write)
        self._note(key, text)

    async def delete(self, key: str) -> None:
        """Forget a key; nothing happens if there is none."""
        params = {**self._place, "key": key}

        async def write(tx: Transaction) -> None:
            await tx.execute("delete_stored", params)

        await write_soon(self._commits, self._owner, write)
        self._note(key, None)

    async def list(
        self, prefix: str = "", *, after: str = "", limit: int = MOST_LISTED
    ) -> dict[str, Any]:
        """Keys with this beginning and their values, sorted by key, at most `limit`.

        `after` the last key of a list goes on with the next ones.
        """
        pending = {
            key: text
            for key, text in self._pending().items()
            if key.startswith(prefix) and key > after
        }
        # Each pending write may hide one row, so that many more are read.
        bounds = {"prefix": prefix, "stop": prefix + _LAST, "after": after}
        most = {"limit": limit + len(pending)}
        rows = await self._store.fetch_all("list_stored", {**self._place, **bounds, **most})
        found = {row["key"]: row["value"] for row in rows}
        if pending:
            known = {**found, **pending}
            found = {key: text for key in sorted(known) if (text := known[key]) is not None}
        return {key: json.loads(found[key]) for key in list(found)[:limit]}

    def together(self) -> AbstractAsyncContextManager[None]:
        """`async with storage.together():` commits all that is written inside as one, at its end.

        A block that raises writes nothing. Reads inside see what was there before, except in a `tx`
        tool, where they see what the call has written so far.
        """
        return as_one_commit(self._commits, self._owner)

    def _pending(self) -> dict[str, str | None]:
        """What the call of a `tx` tool has written so far, by key."""
        values = pending_values(self._owner.agent_id)
        if not values:
            return {}
        own = self._place["owner"]
        return {key: text for (owner, key), text in values.items() if owner == own}

    def _note(self, key: str, text: str | None) -> None:
        values = pending_values(self._owner.agent_id)
        if values is not None:
            values[self._place["owner"], key] = text


def _checked(key: str, value: Any) -> str:
    if not isinstance(key, str) or not 1 <= len(key) <= LONGEST_KEY:  # pyright: ignore[reportUnnecessaryIsInstance] - a user's
        raise ValueError(f"A key has 1 to {LONGEST_KEY} characters; {key!r:.40} does not.")
    text = json.dumps(json.to_storable(value))
    if len(text) > LARGEST_VALUE:
        raise ValueError(
            f"The value under {key!r} has {len(text)} bytes as JSON; at most {LARGEST_VALUE} fit. "
            "Keep it in several keys, or in a file."
        )
    return text
