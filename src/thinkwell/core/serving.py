"""For which client the current code works: set around every call and message of a connection."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple, Protocol

from thinkwell.core.principal import Principal


class Served(Protocol):
    """A client that something is done for."""

    @property
    def principal(self) -> Principal | None:
        """Who it is."""
        ...

    @property
    def readonly(self) -> bool:
        """Whether it is read-only."""
        ...


class ServedFor(NamedTuple):
    """Somebody who asked for something that is done later, when they may have left."""

    principal: Principal | None
    readonly: bool


_serving: ContextVar[tuple[str, Served] | None] = ContextVar("serving", default=None)


@contextmanager
def serving(agent_id: str, client: Served | None) -> Generator[None]:
    """What runs inside works for this client of this agent."""
    token = _serving.set(None if client is None else (agent_id, client))
    try:
        yield
    finally:
        _serving.reset(token)


def served_by(agent_id: str) -> Served | None:
    """The client of that agent for which the current code works, if any."""
    now = _serving.get()
    return now[1] if now is not None and now[0] == agent_id else None
