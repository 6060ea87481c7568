"""One client that is connected to an agent now, as the agent's own code sees it."""

from __future__ import annotations

from typing import Any

from thinkwell.core import json
from thinkwell.core.principal import Principal
from thinkwell.core.serving import served_by
from thinkwell.live.watchers import Watcher
from thinkwell.wire.http import HttpRequest

NORMAL_CLOSE = 1000
MOST_TAGS, LONGEST_TAG = 10, 256


class Connection:
    """A connected client. Gone after a reconnect: the same client then has a new one."""

    __slots__ = ("_readonly", "_state", "_tags", "_watcher", "request")

    def __init__(self, watcher: Watcher, request: HttpRequest) -> None:
        self._watcher = watcher
        self._readonly = False
        self._state: Any = None
        self._tags: tuple[str, ...] = (watcher.id,)
        self.request = request
        """The upgrade request: its query, headers and principal."""

    def __repr__(self) -> str:
        return f"<connection {self.id!r}>"

    @property
    def id(self) -> str:
        """The client's own id; it keeps it over reconnects."""
        return self._watcher.id

    @property
    def principal(self) -> Principal | None:
        """Who this is, as the app's `auth` said."""
        return self.request.principal

    @property
    def readonly(self) -> bool:
        """Whether it is read-only."""
        return self._readonly

    @property
    def tags(self) -> tuple[str, ...]:
        """Its id, then what `get_connection_tags` said."""
        return self._tags

    @property
    def state(self) -> Any:
        """What the app keeps about this connection, until it closes."""
        return self._state

    def set_state(self, state: Any) -> None:
        """Keep something about this connection; the client does not see it."""
        self._state = state

    def send(self, message: Any) -> None:
        """Send a message of your own: text as it is, anything else as JSON."""
        self._watcher.send(message if isinstance(message, str) else json.encode(message))

    def close(self, code: int = NORMAL_CLOSE, reason: str = "") -> None:
        """Close it. The client comes back by itself unless the code is 1008 or 4000 to 4999."""
        self._watcher.sink.close(code, reason)


def restrict(connection: Connection, *, readonly: bool, tags: tuple[str, ...]) -> None:
    """What was decided about a connection before it was told anything (spec/01 §2.3, §2.7)."""
    for tag in tags:
        if not 1 <= len(tag) <= LONGEST_TAG:
            raise ValueError(f"A tag has 1 to {LONGEST_TAG} characters; {tag[:20]!r} does not.")
    if len(tags) >= MOST_TAGS:
        raise ValueError(f"A connection has at most {MOST_TAGS} tags, its id among them.")
    connection._readonly = readonly  # pyright: ignore[reportPrivateUsage] - nobody else may
    connection._tags = (connection.id, *tags)  # pyright: ignore[reportPrivateUsage]


def caller_of(agent_id: str) -> Connection | None:
    """The connection of that agent for which the current code works, if any."""
    client = served_by(agent_id)
    return client if isinstance(client, Connection) else None
