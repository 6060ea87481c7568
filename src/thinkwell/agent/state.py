"""The state of an agent: one JSON value that every client sees (spec/01 §4).

A change is judged, stored, shown, then told to `on_state_changed`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, ForwardRef, Literal, Protocol, TypeAlias, TypeVar, get_args, get_origin

from thinkwell.agent.connection import Connection
from thinkwell.core import json
from thinkwell.core.errors import AgentDefinitionError, ReadonlyError
from thinkwell.core.tasks import run_to_the_end
from thinkwell.core.user_code import call_hook
from thinkwell.store.base import Commit, Transaction
from thinkwell.tools.typed import read_as
from thinkwell.turn.ask.authority import asking_for

log = logging.getLogger("thinkwell.agent")

Source: TypeAlias = "Connection | Literal['server']"
"""Who changed the state."""
Show: TypeAlias = Callable[[Any, Any, Source], None]
"""Shows a new state: as JSON to the clients, and as its type to the agent."""


class StateOwner(Protocol):
    """What an agent says about its state."""

    def validate_state_change(self, state: Any, source: Source, /) -> Any:
        """Raises to refuse; may be async."""
        ...


def shape_of(cls: type) -> Any:
    """`State` of a class that is a `Think[State]`; None if its state may be anything."""
    bases = [base for owner in cls.__mro__ for base in vars(owner).get("__orig_bases__", ())]
    for base in bases:
        shape = next(iter(get_args(base)), None)
        # A type variable belongs to a base class that leaves the type to those that derive from it.
        if not hasattr(get_origin(base), "initial_state") or isinstance(shape, TypeVar):
            continue
        if isinstance(shape, ForwardRef):
            raise AgentDefinitionError(
                f"{cls.__name__} names the type of its state in quotes: {shape.__forward_arg__!r}. "
                f"Write the type itself, and define it above {cls.__name__}."
            )
        return None if shape is Any else shape
    return None


def check_initial(cls: type) -> None:
    """Refuse an `initial_state` that could not be stored, when its class is made."""
    initial = vars(cls).get("initial_state")
    if isinstance(initial, type):
        raise AgentDefinitionError(
            f"{cls.__name__}.initial_state is the class {initial.__name__}. Give a state: "
            f"`initial_state = {initial.__name__}(...)`."
        )
    try:
        json.to_storable(initial)
    except ValueError as error:
        raise AgentDefinitionError(
            f"{cls.__name__}.initial_state cannot be stored: {error}. Give JSON data, a dataclass "
            "or a pydantic model."
        ) from None


def check_initial_fits(cls: Any) -> None:
    """Refuse an `initial_state` that is not of the type a class names, before an agent wakes.

    A class that only others derive from may leave it to them, so this waits until it is served.
    """
    shape = shape_of(cls)
    if shape is None:
        return
    try:
        read_as(shape, json.to_storable(cls.initial_state), f"{cls.__name__}.initial_state")
    except ValueError as error:
        if cls.initial_state is not None:
            raise AgentDefinitionError(str(error)) from None
        name = getattr(shape, "__name__", str(shape))
        raise AgentDefinitionError(
            f"{cls.__name__} has no initial_state, so its state could not be read as {name} until "
            f"one is set. Write `initial_state = {name}(...)`, or `Think[{name} | None]`."
        ) from None


class StateBox:
    """Holds the state and its way to the store and the clients."""

    def __init__(
        self,
        agent_id: str,
        owner: StateOwner,
        *,
        commit: Commit,
        show: Show,
    ) -> None:
        self._shape = shape_of(type(owner))
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

    def read(self) -> Any:
        """The state as the agent's own code sees it: of the type that its class names, if any.

        Raises `ValueError` if it does not fit, because it was stored by another version.
        """
        return self._typed(self.value)

    def _typed(self, value: Any) -> Any:
        return value if self._shape is None else read_as(self._shape, value, "The state")

    async def load(
        self, stored: str | None, initial: Any, *, store: bool = True
    ) -> ValueError | None:
        """Take what is stored; a broken state or none at all gives way to the initial one.

        Unless `store`, that one is only shown. A broken one stays in the store until another is
        set, for whoever can mend it; what is wrong with it is returned.
        """
        broken: ValueError | None = None
        if stored is not None:
            try:
                json.loads(stored)
            except ValueError as error:
                broken = error
            else:
                self._text = stored
                return None
        if initial is not None:
            text = json.dumps(json.to_storable(initial))
            self._typed(json.loads(text))  # a wrong one is told now, not to whoever reads it first
            if store and broken is None:
                await self._store(text)
            self._text = text
        return broken

    async def set(self, value: Any, source: Source = "server") -> None:
        """Judge, store, show. Raises what the validator raises, and changes nothing then."""
        asker = asking_for(self._agent_id) if source == "server" else None
        if asker is not None and asker.read_only:
            raise ReadonlyError  # whoever only may look cannot do it through a turn either (§2.6)
        plain = json.to_storable(value)
        text = json.dumps(plain)
        judge = self._owner.validate_state_change
        await call_hook("validate_state_change", judge, self._typed(json.loads(text)), source)
        await run_to_the_end(self._store_and_show(text, plain, source))

    async def _store_and_show(self, text: str, plain: Any, source: Source) -> None:
        await self._store(text)
        self._show(plain, self._typed(plain), source)

    async def _store(self, text: str) -> None:
        async def write(tx: Transaction) -> None:
            await tx.execute("set_agent_state", {"id": self._agent_id, "state": text})

        await self._commit(write)
        self._text = text
