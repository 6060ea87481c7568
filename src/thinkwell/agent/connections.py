"""The connections of one agent: how one opens, what comes in over it, how it closes.

Chat frames go to the chat, state and calls are served here, everything else is the app's own
(spec/01 §2, §3.3). Whatever a client sends, nothing is raised to the edge and the connection stays
usable.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterator
from functools import partial
from inspect import isawaitable
from typing import Any, NamedTuple, TypeAlias

from thinkwell.agent.agent import Agent
from thinkwell.agent.chat_frames import ChatFrames
from thinkwell.agent.connection import Connection, restrict
from thinkwell.agent.rpc import serve_call
from thinkwell.agent.state import Source, StateBox
from thinkwell.core import json
from thinkwell.core.authority import Subject
from thinkwell.core.errors import AgentDeletedError
from thinkwell.core.events import ClientConnected, ClientDisconnected, StateUpdated
from thinkwell.core.principal import Principal
from thinkwell.core.serving import serving
from thinkwell.core.tasks import TaskOwner, in_pieces
from thinkwell.core.user_code import call_hook, call_user, code_fields, in_hook, log_failure
from thinkwell.live.live import Live
from thinkwell.live.watchers import Watcher, Watchers
from thinkwell.turn.ask.authority import NotAllowed, demand
from thinkwell.turn.turns import Turns
from thinkwell.wire import encode
from thinkwell.wire.client_json import SHORT
from thinkwell.wire.decode import decode_in_pieces
from thinkwell.wire.frames import BadCall, BadState, NotProtocol, RpcCall, StateUpdate
from thinkwell.wire.http import HttpRequest

log = logging.getLogger("thinkwell.agent")

Act: TypeAlias = Callable[[], Any]
"""Something to do for a connection; may be async."""
MOST_UNDER_WAY = 1000
"""Calls and messages of one connection that may be under way at once."""
RPC, SET_STATE = "rpc", "set_state"
"""What is run for a connection and is no hook."""


class Chat(NamedTuple):
    """What makes an agent a chat agent."""

    turns: Turns
    live: Live


class Connections:
    """Who is connected to one agent."""

    def __init__(self, agent_id: str, agent: Agent, watchers: Watchers, tasks: TaskOwner) -> None:
        self.agent = agent
        self._agent_id = agent_id
        self._watchers = watchers
        self._tasks = tasks
        self._open: dict[Watcher, Connection] = {}
        self._deleted = False

    def __iter__(self) -> Iterator[Connection]:
        return iter([self._open[watcher] for watcher in self._watchers if watcher in self._open])

    def is_anothers(self, connection_id: str, principal: Principal | None) -> bool:
        """Whether somebody else is connected with that id, which clients choose themselves."""
        watcher = self._watchers.get(connection_id)
        connection = None if watcher is None else self._open.get(watcher)
        if connection is None:
            return False
        known = connection.principal
        return (known and known.id) != (principal and principal.id)

    async def open(
        self, watcher: Watcher, request: HttpRequest, chat: Chat | None, state: StateBox
    ) -> OpenConnection:
        """The connect sequence (§2.2); returns the handle for what the client sends."""
        self._refuse_if_deleted()
        connection = Connection(watcher, request)
        watcher.brief = request.query.get("thinkwell") == "1"
        await self._judge(watcher, connection)
        if chat is None:
            self._watchers.add(watcher)
        else:
            await chat.live.connect(watcher)
        self._open[watcher] = connection
        try:
            self._refuse_if_deleted()  # it may have gone while this one was judged
            self._greet(watcher, connection, state)
            await self.call_hook("on_connect", connection, request)
            self.agent.events.emit(ClientConnected, connection_id=watcher.id)
        except BaseException as error:
            self.forget(watcher)
            if isinstance(error, Exception):
                await self._call_on_error(error, connection)
            raise
        frames = None if chat is None else ChatFrames(chat.turns, chat.live, watcher, connection)
        return OpenConnection(self, watcher, connection, chat=frames, state=state)

    async def _judge(self, watcher: Watcher, connection: Connection) -> None:
        """What the agent decides about a connection before it is told anything (§2.3)."""
        agent, request = self.agent, connection.request

        async def ask(hook: str) -> Any:
            return await call_hook(hook, getattr(agent, hook), connection, request)

        tags = await ask("get_connection_tags")
        readonly = bool(await ask("should_connection_be_readonly"))
        with in_hook("get_connection_tags"):
            restrict(connection, readonly=readonly, tags=tuple(tags))
        watcher.protocol = bool(await ask("should_send_protocol_messages"))

    def _greet(self, watcher: Watcher, connection: Connection, state: StateBox) -> None:
        if not watcher.protocol:
            return
        agent, has_state = self.agent, state.defined
        if agent.send_identity_on_connect:
            watcher.send(encode.identity(agent.name, agent.agent_class, state_follows=has_state))
        if has_state:
            watcher.send(encode.state(state.value))
        watcher.send(encode.mcp_servers())
        for frame in agent._seats.greet(connection):  # pyright: ignore[reportPrivateUsage]
            watcher.send(frame)

    def send_away(self, code: int, reason: str) -> None:
        """The agent is deleted: everybody leaves, and whoever still comes is refused."""
        self._deleted = True
        for connection in self:
            connection.close(code, reason)

    def _refuse_if_deleted(self) -> None:
        if self._deleted:
            raise AgentDeletedError(self._agent_id)

    def forget(self, watcher: Watcher) -> None:
        """The socket is gone; turns go on."""
        watcher.gone = True
        self._watchers.remove(watcher)
        self._open.pop(watcher, None)

    def show_state(self, value: Any, typed: Any, source: Source) -> None:
        """Everybody who wants to know sees the new state, then the agent is told (§4.1)."""
        connection = None if source == "server" else source
        # By identity: the client may have come back under the same id, and was told the old state.
        self._watchers.send(
            encode.state(value),
            where=lambda w: w.protocol and (connection is None or self._open.get(w) != connection),
        )
        self.agent.events.emit(StateUpdated)
        self.call_hook_soon("on_state_changed", typed, source, connection=connection)

    def broadcast(self, message: Any, without: Collection[str]) -> None:
        """A message of the app's own to all, except some by id."""
        text = message if isinstance(message, str) else json.encode(message)
        self._watchers.send(text, where=lambda w: w.id not in without)

    # The agent's own code

    async def call_hook(self, hook: str, connection: Connection, *args: Any) -> None:
        """Call a hook for a connection, unless nobody overrides it, and wait for it."""
        if self.overrides(hook):
            await self.run(connection, partial(getattr(self.agent, hook), connection, *args), hook)

    def call_hook_soon(self, hook: str, *args: Any, connection: Connection | None) -> None:
        """Call a hook in the background, unless nobody overrides it."""
        if self.overrides(hook):
            self.start(connection, partial(getattr(self.agent, hook), *args), hook)

    async def run(self, connection: Connection | None, work: Act, what: str) -> None:
        """Run something for a connection: `agent.caller` is that connection meanwhile."""
        with serving(self._agent_id, connection):
            await (call_user if what in (RPC, SET_STATE) else call_hook)(what, work)

    def start(self, connection: Connection | None, work: Act, what: str) -> asyncio.Task[None]:
        """Run something in the background; what it raises goes to `on_error`."""
        return self._tasks.spawn(self._guard(connection, work, what), name=what)

    async def _guard(self, connection: Connection | None, work: Act, what: str) -> None:
        try:
            await self.run(connection, work, what)
        except Exception as error:  # noqa: BLE001 - logged there
            log_failure(log, what, error, {"agent": self._agent_id, **code_fields(error)})
            await self._call_on_error(error, connection)

    async def _call_on_error(self, error: Exception, connection: Connection | None) -> None:
        try:
            await call_hook("on_error", self.agent.on_error, error, connection)
        except Exception as failure:  # noqa: BLE001 - logged there
            log_failure(log, "on_error", failure, {"agent": self._agent_id, "hook": "on_error"})

    def overrides(self, hook: str) -> bool:
        """Whether the agent's class has a hook of its own."""
        return getattr(type(self.agent), hook) is not getattr(Agent, hook)


class OpenConnection:
    """The edge's handle on one connection."""

    def __init__(
        self,
        connections: Connections,
        watcher: Watcher,
        connection: Connection,
        *,
        chat: ChatFrames | None,
        state: StateBox,
    ) -> None:
        self._connections = connections
        self._watcher = watcher
        self._connection = connection
        self._chat = chat
        self._state = state
        self._under_way = 0
        self._in_order = asyncio.Lock()

    async def receive(self, data: str | bytes) -> None:
        """Act on one message of the client."""
        try:
            await self._act(data)
        except Exception:  # whatever it was, the connection stays usable
            log.exception("a client frame could not be served", extra={"action": "receive"})

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """The socket is gone; turns go on."""
        connection = self._connection
        self._connections.forget(self._watcher)
        self._connections.agent.events.emit(
            ClientDisconnected, connection_id=self._watcher.id, code=code, reason=reason
        )
        self._connections.call_hook_soon(
            "on_close", connection, code, reason, connection=connection
        )

    async def _act(self, data: str | bytes) -> None:
        chat = self._chat if len(data) > SHORT else None
        stored = None if chat is None else await chat.stored_ids()
        frame = await in_pieces(decode_in_pieces(data, stored))
        match frame:
            case StateUpdate():
                await self._set_state(frame)
            case RpcCall():
                self._call(frame)
            case BadCall(id=call_id, reason=reason):
                self._watcher.send(encode.rpc_error(call_id, reason))
            case BadState(reason=reason):
                self._refuse_state(reason)
            case NotProtocol():
                self._pass_on(data)
            case _ if self._chat is None:
                self._pass_on(data)
            case _:
                await self._chat.act(frame)

    async def _set_state(self, frame: StateUpdate) -> None:
        connection = self._connection
        subject = Subject(read_only=connection.readonly, input=frame.state)
        try:
            await demand(self._connections.agent, "state", connection.principal, subject)
            await self._connections.run(
                connection, partial(self._state.set, frame.state, connection), SET_STATE
            )
        except NotAllowed as refused:
            self._refuse_state(str(refused))
        except Exception as error:
            log.info("a state was refused", exc_info=error, extra={"action": "state"})
            self._watcher.send(encode.state_error("State update rejected"))

    def _refuse_state(self, reason: str) -> None:
        self._watcher.send(encode.state_error(reason))
        if self._watcher.protocol and self._state.defined:  # it shows its own already
            self._watcher.send(encode.state(self._state.value))

    def _call(self, frame: RpcCall) -> None:
        if self._under_way >= MOST_UNDER_WAY:
            self._watcher.send(encode.rpc_error(frame.id, "Too many calls at once"))
            return
        agent, connection = self._connections.agent, self._connection
        self._start(partial(serve_call, agent, frame, self._watcher, connection), RPC)

    def _pass_on(self, data: str | bytes) -> None:
        if not self._connections.overrides("on_client_message"):
            return
        if self._under_way >= MOST_UNDER_WAY:
            log.warning("a message of a client is dropped: too many wait already")
            return
        self._start(partial(self._in_turn, data), "on_client_message")

    async def _in_turn(self, data: str | bytes) -> None:
        """The app's own messages reach it one after the other, beside everything else."""
        async with self._in_order:
            await _awaited(self._connections.agent.on_client_message(self._connection, data))

    def _start(self, work: Act, what: str) -> None:
        self._under_way += 1
        task = self._connections.start(self._connection, work, what)
        task.add_done_callback(self._one_less)

    def _one_less(self, _task: asyncio.Task[None]) -> None:
        self._under_way -= 1


async def _awaited(value: Any) -> Any:
    return await value if isawaitable(value) else value
