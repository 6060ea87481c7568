"""Long texts that many turns have in common (prompts, tool schemas), stored once by their hash.

`blobs` holds a text once for the whole app; `blob_uses` says which agents refer to it. So a clear
takes along what only this agent referred to, and what nobody has used for as long as journals are
kept goes with them. A use is written once a day, not with every turn.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from thinkwell.store.base import Reader, Transaction

_DAY = 24 * 3600.0
_REMEMBERED = 20_000
"""Uses that are known to be written; then all are forgotten, which costs a write each."""


class Blob(msgspec.Struct, frozen=True):
    """A text and its hash."""

    hash: str
    text: str

    @classmethod
    def of(cls, text: str) -> Blob:
        """The blob of a text."""
        return cls(hashlib.blake2b(text.encode(), digest_size=16).hexdigest(), text)


class BlobStore:
    """Writes blobs in the transaction of the event that refers to them, each use once a day.

    Contract: one transaction at a time; `committed` follows a `write` whose transaction is done.
    """

    def __init__(self) -> None:
        self._written: set[tuple[str, str, int]] = set()
        self._fresh: Sequence[tuple[str, str, int]] = ()

    async def write(self, tx: Transaction, used: Sequence[tuple[str, Blob]], now: float) -> None:
        """Keep the blobs that agents use, as far as they are not known to be there."""
        day = int(now // _DAY)
        fresh = {
            key: blob
            for agent, blob in used
            if (key := (agent, blob.hash, day)) not in self._written
        }
        self._fresh = tuple(fresh)
        if fresh:
            rows: list[dict[str, Any]] = [
                {"agent": key[0], "hash": blob.hash, "body": blob.text, "used_at": now}
                for key, blob in fresh.items()
            ]
            await tx.execute_many("keep_blob", rows)
            await tx.execute_many("use_blob", rows)

    def committed(self) -> None:
        """What was written last is there to stay: it need not be written again today."""
        if len(self._written) > _REMEMBERED:
            self._written.clear()
        self._written.update(self._fresh)
        self._fresh = ()

    def forget(self, agent_id: str) -> None:
        """A clear has dropped what this agent refers to."""
        self._written = {key for key in self._written if key[0] != agent_id}


async def drop_unused_blobs(tx: Transaction, *, before: float, limit: int) -> int:
    """Forget a piece of the uses before then, with the texts that nobody else uses; how many.

    A use is written once a day: `before` is a day earlier than for the journals themselves.
    """
    rows = await tx.fetch_all("old_blob_uses", {"before": before - _DAY, "limit": limit})
    uses = [{"agent": row["agent"], "hash": row["hash"]} for row in rows]
    await tx.execute_many("drop_blob_use", uses)
    await tx.execute_many("drop_unused_blob", [{"hash": use["hash"]} for use in uses])
    return len(uses)


async def read_blob(reader: Reader, digest: str) -> str | None:
    """The text with that hash, if it is still kept."""
    row = await reader.fetch_one("blob_by_hash", {"hash": digest})
    return None if row is None else row["body"]
