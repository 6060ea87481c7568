"""The state of an agent: one JSON value that every client sees (spec/01 §4).

A change is judged, stored, shown, then told to `on_state_changed`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Literal, Protocol, TypeAlias

from thinkwell.agent.connection import Connection
from thinkwell.core import json
from thinkwell.core.errors import ReadonlyError
from thinkwell.core.tasks import run_to_the_end
from thinkwell.core.user_code import call_user
from thinkwell.store.base import Commit, Transaction
from thinkwell.turn.ask.authority import asking_for

log = logging.getLogger("thinkwell.agent")

Source: TypeAlias = "Connection | Literal['server']"
"""Who changed the state."""


class StateOwner(Protocol):
    """What an agent says about its state."""

    def validate_state_change(self, state: Any, source: Source, /) -> Any:
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

    async def load(self, stored: str | None, initial: Any, *, store: bool = True) -> None:
        """Take what is stored; a broken state or none at all gives way to the initial one.

        Unless `store`, that one is only shown.
        """
        if stored is not None:
            try:
                json.loads(stored)
            except ValueError:
                log.error("the stored state is broken", extra={"agent": self._agent_id})
            else:
                self._text = stored
                return
        if initial is not None:
            text = json.encode(initial)
            if store:
                await self._store(text)
            self._text = text

    async def set(self, value: Any, source: Source = "server") -> None:
        """Judge, store, show. Raises what the validator raises, and changes nothing then."""
        asker = asking_for(self._agent_id) if source == "server" else None
        if asker is not None and asker.read_only:
            raise ReadonlyError  # whoever only may look cannot do it through a turn either (§2.6)
        plain = json.to_jsonable(value)
        text = json.dumps(plain)
        judge = self._owner.validate_state_change
        await call_user("validate_state_change", judge, json.loads(text), source)
        await run_to_the_end(self._store_and_show(text, plain, source))

    async def _store_and_show(self, text: str, plain: Any, source: Source) -> None:
        await self._store(text)
        self._show(plain, source)

    async def _store(self, text: str) -> None:
        async def write(tx: Transaction) -> None:
            await tx.execute("set_agent_state", {"id": self._agent_id, "state": text})

        await self._commit(write)
        self._text = text
