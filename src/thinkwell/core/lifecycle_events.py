"""What the bus tells of agents, connections and the process itself (spec/04 §17)."""

from __future__ import annotations

from typing import Literal

from thinkwell.core.bus_event import BusEvent, TurnEvent


class StateUpdated(BusEvent, frozen=True, kw_only=True):
    """The state of an agent has changed and is stored."""

    type: Literal["state:update"] = "state:update"


class RpcCalled(BusEvent, frozen=True, kw_only=True):
    """A client calls a method, and may."""

    type: Literal["rpc"] = "rpc"
    method: str
    streaming: bool


class MessagesCleared(BusEvent, frozen=True, kw_only=True):
    """A conversation is forgotten."""

    type: Literal["message:clear"] = "message:clear"


class MessageCancelled(TurnEvent, frozen=True, kw_only=True):
    """Somebody wants a turn to stop, and that is stored."""

    type: Literal["message:cancel"] = "message:cancel"
    reason: str


class ClientConnected(BusEvent, frozen=True, kw_only=True):
    """A socket is open, and `on_connect` has been called."""

    type: Literal["connect"] = "connect"
    connection_id: str


class ClientDisconnected(BusEvent, frozen=True, kw_only=True):
    """It is closed."""

    type: Literal["disconnect"] = "disconnect"
    connection_id: str
    code: int
    reason: str


class AgentDestroyed(BusEvent, frozen=True, kw_only=True):
    """An agent is deleted with all it had stored."""

    type: Literal["destroy"] = "destroy"


class AgentActivated(BusEvent, frozen=True, kw_only=True):
    """An agent is awake."""

    type: Literal["agent:activated"] = "agent:activated"


class AgentPassivated(BusEvent, frozen=True, kw_only=True):
    """An agent sleeps, because nobody has used it for a while."""

    type: Literal["agent:passivated"] = "agent:passivated"


class HostBooted(BusEvent, frozen=True, kw_only=True):
    """A life of the process has begun."""

    type: Literal["host:boot"] = "host:boot"
    boot_id: int
    clean: bool
    """Whether the life before it was asked to stop; True for the first one."""
    agents_woken: int
    """How many have turns to go on with."""


class HostDraining(BusEvent, frozen=True, kw_only=True):
    """Nothing more begins, what runs may end."""

    type: Literal["host:drain"] = "host:drain"


class HookRedelivered(TurnEvent, frozen=True, kw_only=True):
    """The process died before the hooks at the end of a turn were done: they run again."""

    type: Literal["turn:hook_redelivered"] = "turn:hook_redelivered"
    hook: str
    left: int
    """How often they may still be tried if the process dies again."""
