"""`Agent`: one addressable, durable instance: a class, a name, a state, its connections.

A facade: bodies delegate. The host makes instances; users override the hooks below. Every hook may
be `def` or `async def`; one that is not overridden is not called.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple

from thinkwell.agent.connection import Connection, caller_of
from thinkwell.agent.definition import (
    check_class,
    class_name_of,
    missing_member,
    unknown_options,
)
from thinkwell.agent.state import Source, StateBox
from thinkwell.core.authority import Action, Subject, may_by_default
from thinkwell.core.bus import AgentEvents
from thinkwell.core.degradations import Degradations
from thinkwell.core.principal import Principal
from thinkwell.core.user_code import MaybeAsync
from thinkwell.features.jobs.jobs import Jobs
from thinkwell.features.schedules.schedules import Schedules
from thinkwell.hooks.feature import Feature, Without
from thinkwell.hooks.seats import Seats
from thinkwell.journal.storage import Storage
from thinkwell.wire.http import HttpRequest

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from thinkwell.agent.connections import Connections
    from thinkwell.turn.turns import Turns

    # `Think` without brackets is `Think[Any]`; Python itself knows defaults from 3.13 on.
    StateT = TypeVar("StateT", default=Any)
else:
    from typing import TypeVar

    StateT = TypeVar("StateT")


class AgentParts(NamedTuple):
    """What an agent gets when it wakes."""

    state: StateBox
    connections: Connections
    seats: Seats
    jobs: Jobs
    storage: Storage
    degradations: Degradations
    turns: Turns | None
    """Of an agent that chats."""


class Agent(Generic[StateT]):
    """Base of every agent. Subclass `Think` for chat. `Agent[State]` says what its state is."""

    initial_state: ClassVar[Any] = None
    """State of an agent that has none yet; None means no state at all."""
    send_identity_on_connect: ClassVar[bool] = True
    """Whether clients are told the class and name they are connected to."""

    features: ClassVar[Sequence[Feature | Without]] = (Schedules(),)
    """What the agent can beside its turns, each an object that becomes a namespace of the agent.
    Those of base classes stay; `Without("http_run")` leaves one out."""

    agent_class: ClassVar[str] = "agent"
    """The class in kebab case, as in URLs."""

    # Namespaces: the agent gets them when it wakes.

    jobs: Jobs
    """Durable calls of this agent's methods: now, later, and again after a crash."""
    schedules: Schedules
    """Calls of this agent's methods for later, in line, or again and again."""
    storage: Storage
    """Values of your own that outlive the process, by key. A clear leaves them."""
    events: AgentEvents
    """What happens inside this agent: `subscribe(fn, "hook:*")`."""

    _name: str
    _state: StateBox
    _connections: Connections
    _seats: Seats
    _turns: Turns  # of one that chats

    def __init_subclass__(
        cls, *, name: str | None = None, own_names: Collection[str] = (), **options: Any
    ) -> None:
        """Give the class its stable name and check what it defines.

        `own_names` are names in its body that look like a misspelt hook or setting and are none.
        """
        try:
            super().__init_subclass__(**options)
        except TypeError as error:
            if "takes no keyword arguments" in str(error):  # nobody along the bases knew them
                raise unknown_options(cls, options) from None
            raise
        cls.agent_class = class_name_of(cls, name)
        check_class(cls, own_names)

    if not TYPE_CHECKING:  # or every misspelt member would pass

        def __getattr__(self, member: str) -> Any:
            """Explain what is missing. Only asked for what is not there."""
            if hasattr(type(self), member):
                return object.__getattribute__(self, member)  # a property: what it raised itself
            raise missing_member(self, member)

    def _wire(self, parts: AgentParts) -> None:
        """Take the parts. Before the agent's own code runs: all of it may use them."""
        self._state, self._connections = parts.state, parts.connections
        self._seats, self.jobs, self.storage = parts.seats, parts.jobs, parts.storage
        self._degradations = parts.degradations
        if parts.turns is not None:
            self._turns = parts.turns

    @property
    def name(self) -> str:
        """The name of this instance."""
        return self._name

    # State

    @property
    def state(self) -> StateT:
        """The state clients see. Change it with `await self.set_state(...)`."""
        return self._state.read()

    if not TYPE_CHECKING:  # for type checkers it cannot be assigned

        @state.setter
        def state(self, value: Any) -> None:  # noqa: ARG002 - refused, whatever it is
            raise AttributeError(
                "`self.state = ...` would reach nobody. Write `await self.set_state(...)`, which "
                "stores it and shows it to every client."
            )

    async def set_state(self, state: StateT) -> None:
        """Store a new state, then show it to every connected client.

        Raises what `validate_state_change` raises, `ReadonlyError` in a call or turn of a read-only
        client, and `ValueError` if the value does not fit the `State` of a `Think[State]`.
        """
        await self._state.set(state)

    def validate_state_change(self, state: StateT, source: Source, /) -> MaybeAsync[None]:
        """A state is about to be stored; `source` is the connection, or `"server"`.

        Raise to refuse it.
        """

    def on_state_changed(self, state: StateT, source: Source, /) -> MaybeAsync[None]:
        """A new state is stored and shown. What this raises changes nothing."""

    # Who may

    def authorize(self, action: Action, principal: Principal | None, subject: Subject, /) -> Any:
        """Whether a client may do something; `subject` says what it is about.

        May be async. Whatever it raises refuses. What your own code does is not asked about.
        """
        return may_by_default(action, principal, subject)

    # Connections

    @property
    def caller(self) -> Connection | None:
        """The connection whose call or message is served right now."""
        return caller_of(f"{self.agent_class}/{self._name}")

    def get_connections(self, tag: str | None = None) -> list[Connection]:
        """Who is connected, or those with a tag."""
        return [c for c in self._connections if tag is None or tag in c.tags]

    def broadcast(self, message: Any, *, without: Collection[str] = ()) -> None:
        """Send a message of your own to all connections: text, or anything else as JSON.

        `without` names connections by id that do not get it.
        """
        self._connections.broadcast(message, without)

    def get_connection_tags(
        self,
        connection: Connection,  # noqa: ARG002 - for overriding methods
        request: HttpRequest,  # noqa: ARG002
        /,
    ) -> MaybeAsync[Sequence[str]]:
        """Words to find a connection by. Called before it is told anything."""
        return ()

    def should_connection_be_readonly(
        self,
        connection: Connection,  # noqa: ARG002 - for overriding methods
        request: HttpRequest,  # noqa: ARG002
        /,
    ) -> MaybeAsync[bool]:
        """Whether this connection is read-only. Called before anything is sent to it."""
        return False

    def should_request_be_readonly(self, request: HttpRequest, /) -> MaybeAsync[bool]:  # noqa: ARG002
        """Whether this request is read-only. Called for requests that would change something."""
        return False

    def should_send_protocol_messages(
        self,
        connection: Connection,  # noqa: ARG002 - for overriding methods
        request: HttpRequest,  # noqa: ARG002
        /,
    ) -> MaybeAsync[bool]:
        """Whether this connection is told identity, state and MCP servers. Chat it always is."""
        return True

    def on_connect(self, connection: Connection, request: HttpRequest, /) -> MaybeAsync[None]:
        """A client is connected and knows what it has to. A raise closes the connection."""

    def on_close(self, connection: Connection, code: int, reason: str, /) -> MaybeAsync[None]:
        """A client is gone."""

    def on_client_message(self, connection: Connection, data: str | bytes, /) -> MaybeAsync[None]:
        """A client sent something that is not part of the protocol."""

    def on_request(self, request: HttpRequest, /) -> Any:
        """An HTTP request below this agent's address.

        Return an `HttpResponse`, text, bytes or JSON data; None means there is nothing here.
        """

    def on_error(self, error: Exception, connection: Connection | None, /) -> MaybeAsync[None]:
        """One of the hooks about state and connections raised. It has been logged."""

    async def on_start(self) -> None:
        """Called when the agent wakes, before any turn runs, recovered ones included."""
