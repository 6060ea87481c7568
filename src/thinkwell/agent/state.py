"""The state of an agent: one JSON value that every client sees (spec/01 §4).

A change is judged, stored, shown, then told to `on_state_changed`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Any, Literal, Protocol, TypeAlias

from thinkwell.agent.connection import Connection, served_by
from thinkwell.core import json
from thinkwell.core.errors import ReadonlyError
from thinkwell.store.base import Transaction
from thinkwell.turn.running import current_turn

log = logging.getLogger("thinkwell.agent")

Commit = Callable[[Callable[[Transaction], Awaitable[None]]], Awaitable[None]]
Source: TypeAlias = "Connection | Literal['server']"
"""Who changed the state."""


class StateOwner(Protocol):
    """What an agent says about its state."""

    def validate_state_change(self, state: Any, source: Source) -> Any:
        """Raises to refuse; may be async."""
        ...


class StateBox:
    """Holds the state and its way to the store and the clients."""

    def __init__(
        self,
        agent_id: str,
        owner: StateOwner,
        *,
        commit: Commit,
        show: Callable[[Any, Source], None],
    ) -> None:
        self._agent_id = agent_id
        self._owner = owner
        self._commit = commit
        self._show = show
        self._text: str | None = None

    @property
    def defined(self) -> bool:
        """Whether there is a state; null is one."""
        return self._text is not None

    @property
    def value(self) -> Any:
        """A copy: changing it changes nothing."""
        return None if self._text is None else json.loads(self._text)

    async def load(self, stored: str | None, initial: Any) -> None:
        """Take what is stored; a broken state or none at all gives way to the initial one."""
        if stored is not None:
            try:
                json.loads(stored)
            except ValueError:
                log.error("the stored state is broken", extra={"agent": self._agent_id})
            else:
                self._text = stored
                return
        if initial is not None:
            await self._store(json.encode(initial))

    async def set(self, value: Any, source: Source = "server") -> None:
        """Judge, store, show. Raises what the validator raises, and changes nothing then."""
        if source == "server":
            self._refuse_readonly()
        plain = json.to_jsonable(value)
        text = json.dumps(plain)
        judged = self._owner.validate_state_change(json.loads(text), source)
        if isawaitable(judged):
            await judged
        await self._store(text)
        self._show(plain, source)

    async def _store(self, text: str) -> None:
        async def write(tx: Transaction) -> None:
            await tx.execute("set_agent_state", {"id": self._agent_id, "state": text})

        await self._commit(write)
        self._text = text

    def _refuse_readonly(self) -> None:
        """Whoever only may look cannot change the state through a call or a turn (§2.6)."""
        caller, turn = served_by(self._agent_id), current_turn.get()
        if caller is not None and caller.readonly:
            raise ReadonlyError
        here = turn is not None and turn.active and turn.record.agent_id == self._agent_id
        if here and turn is not None and turn.record.read_only:
            raise ReadonlyError
