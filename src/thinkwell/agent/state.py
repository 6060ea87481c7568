"""The state of an agent: one JSON value, stored before it is shown."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from thinkwell.core import json
from thinkwell.store.base import Transaction

Commit = Callable[[Callable[[Transaction], Awaitable[None]]], Awaitable[None]]


class StateBox:
    """Holds the state and its way to the store and the clients."""

    def __init__(
        self, agent_id: str, value: Any, commit: Commit, show: Callable[[Any], None]
    ) -> None:
        self._agent_id = agent_id
        self._text = json.dumps(json.to_jsonable(value))
        self._commit = commit
        self._show = show

    @property
    def value(self) -> Any:
        """A copy: changing it changes nothing."""
        return json.loads(self._text)

    async def set(self, value: Any) -> None:
        """Store, then show. Raises `ValueError` for what JSON cannot hold, and changes nothing."""
        plain = json.to_jsonable(value)
        text = json.dumps(plain)

        async def store(tx: Transaction) -> None:
            await tx.execute("set_agent_state", {"id": self._agent_id, "state": text})

        await self._commit(store)
        self._text = text
        self._show(plain)
