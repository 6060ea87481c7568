"""The seat of a feature: `Feature`, what it may bring, and `Kit`, all it gets (DESIGN §3).

A feature brings an agent tools, lines of the prompt, hooks, calls, routes, jobs, frames and rows of
its own, in one object. Ours and those of others sit on the same seat.

What stands in `features = [...]` is a template: every agent that wakes gets a copy of its own
(`copy.copy`), with `kit` set, as `agent.<name>`. Settings go into `__init__`; what belongs to one
agent is made in `on_boot`, or all agents would share it. `seats.py` binds and asks them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar, Protocol, TypedDict, Unpack

from msgspec import Struct

from thinkwell.core.authority import Action, Subject
from thinkwell.core.bus import EventBus
from thinkwell.core.clock import Clock
from thinkwell.core.principal import Principal
from thinkwell.core.signal import Disposer
from thinkwell.hooks.contexts import HookContext
from thinkwell.hooks.jobs import JobHandler
from thinkwell.hooks.routes import Route
from thinkwell.journal.approval_rules import ApprovalRule
from thinkwell.journal.approvals import Approval
from thinkwell.journal.costs import CostBy, CostLine
from thinkwell.journal.decisions import Decision
from thinkwell.journal.jobs import Job
from thinkwell.journal.storage import Storage
from thinkwell.journal.submission import Submission
from thinkwell.journal.tail import TailEvent
from thinkwell.journal.turns import TurnRecord
from thinkwell.models.resolve import ModelPool
from thinkwell.session.changes import Change
from thinkwell.session.search.index import SearchIndex
from thinkwell.session.session import Session
from thinkwell.tools.tool import Tool, bind_tools
from thinkwell.wire.frames import ChatRequest
from thinkwell.wire.http import HttpRequest


class JobOptions(TypedDict, total=False):
    """What can be said about a job; see `agent.jobs.enqueue`."""

    due: datetime | float | None
    delay: timedelta | float | None
    key: str | None
    max_attempts: int
    base_delay: float
    max_delay: float


class Client(Protocol):
    """Somebody outside who asks for something: a `Connection`, or a `RouteRequest`."""

    @property
    def request(self) -> HttpRequest:
        """The request, or the one that opened the connection."""
        ...

    @property
    def principal(self) -> Principal | None:
        """Who it is, as the app's `auth` said."""
        ...

    @property
    def readonly(self) -> bool:
        """Whether it is read-only."""
        ...


class Unwoken(Protocol):
    """What a feature gets of an agent that is made and not awake yet."""

    @property
    def agent(self) -> Any:
        """The agent."""
        ...

    @property
    def own_tools(self) -> Mapping[str, Tool]:
        """The tools of the agent itself, by name."""
        ...

    def hears(self, event: str) -> bool:
        """Whether there is a hook for an event now."""
        ...


class KitApprovals(Protocol):
    """Calls that wait for somebody, what was decided, and rules. What `by` does is authorized."""

    async def pending(self) -> list[Approval]:
        """What waits, the oldest first. What has expired is decided by this look."""
        ...

    async def decisions(self, limit: int) -> list[Decision]:
        """What was decided, the newest first."""
        ...

    async def respond(self, id: str, *, approved: bool, reason: str | None) -> bool:
        """Answer a question. False if it waits no more."""
        ...

    async def expire(self, id: str) -> float | None:
        """Deny a question whose time is over. Seconds until then, if it is not; else None."""
        ...

    async def rules(self) -> list[ApprovalRule]:
        """The rules that are not revoked."""
        ...

    async def schema_now(self, tool_name: str) -> str | None:
        """The fingerprint of a tool's schema as it is now; None if there is no such tool."""
        ...

    async def allow(
        self,
        tool_name: str,
        arguments: Mapping[str, Any],
        *,
        principal: str | None,
        by: Client | None = None,
    ) -> ApprovalRule:
        """Allow calls from now on."""
        ...

    async def allow_always(
        self, id: str, *, arguments: Mapping[str, Any] | None, by: Client | None
    ) -> ApprovalRule | None:
        """Allow a call that waits, and those like it. None if it waits no more."""
        ...

    async def revoke(self, id: str, *, by: Client | None = None) -> bool:
        """A rule holds no longer. False if it did not anyway."""
        ...


class Kit(Protocol):
    """All that a feature gets of the agent it belongs to.

    What is done without `by` is trusted like the agent's own code. With `by` it is that client's
    act: `authorize` is asked, limits hold, and a refusal raises `NotAllowed`, which calls and
    routes turn into an answer.
    """

    @property
    def agent(self) -> Any:
        """The agent."""
        ...

    @property
    def storage(self) -> Storage:
        """Values of this feature for this agent; they outlive the process."""
        ...

    @property
    def session(self) -> Session:
        """The message tree. Raises `TurnError` for an agent without chat."""
        ...

    @property
    def events(self) -> EventBus:
        """What happens inside, to hear and to tell."""
        ...

    @property
    def clock(self) -> Clock:
        """Where the time comes from."""
        ...

    @property
    def models(self) -> ModelPool:
        """Makes a model of what a user wrote as one: `kit.models.resolve("openai-chat:gpt-4o")`."""
        ...

    @property
    def search_index(self) -> SearchIndex:
        """What was said, indexed: for all agents of the app. It does not ask who may look."""
        ...

    @property
    def approvals(self) -> KitApprovals:
        """Calls that wait for somebody. Raises `TurnError` for an agent without chat."""
        ...

    @property
    def budgets(self) -> Any:
        """How the budgets stand, and more for one of them (`turn/ask/budget_desk.py`)."""
        ...

    def agents(self, cls: type | str, name: str = "default") -> Any:
        """A stub of another agent of the app, by class or by its name in URLs."""
        ...

    def broadcast(self, message: Any, *, without: Collection[str] = ()) -> None:
        """Send text, or anything else as JSON, to all who are connected."""
        ...

    def fire(self, event: str, context: Struct) -> None:
        """Call the hooks of an event that does not belong to a turn, in the background.

        What they raise is reported as `hook:error`.
        """
        ...

    # Turns

    async def admit(
        self,
        input: Any,
        *,
        by: Client | None = None,
        request_id: str | None = None,
        idempotency_key: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> Submission:
        """Accept a turn and return at once: it runs whatever happens. Read it with `tail`.

        The same id or key again gives the first one, with `accepted=False`.
        """
        ...

    def tail(
        self, request_id: str, start: int = 0, *, silence: float | None = None
    ) -> AsyncGenerator[TailEvent]:
        """Follow a turn, running or ended, from a chunk on. Leaving stops nothing.

        After `silence` seconds in which nothing happened comes one `Chunks` without any. Raises
        `TurnNotFoundError`.
        """
        ...

    async def wait(self, request_id: str) -> TurnRecord:
        """How a turn has ended, once the hooks of its end are through. Leaving stops nothing.

        Raises `TurnNotFoundError`, and `HostClosedError` if the app stops first: the turn goes on
        at its next start.
        """
        ...

    async def find(self, request_id: str) -> TurnRecord | None:
        """How a turn stands; None if there is none."""
        ...

    def line(self) -> Sequence[TurnRecord]:
        """The turn that runs and those that wait, in order."""
        ...

    async def turns_of(self, message_id: str) -> Sequence[TurnRecord]:
        """The turns that wrote an answer, oldest first: the first one and its continuations."""
        ...

    async def call_times(self, request_ids: Sequence[str]) -> Mapping[str, float]:
        """How many seconds the tool calls of these turns took, by call id."""
        ...

    async def costs_by(self, by: CostBy, *, since: float) -> list[CostLine]:
        """What the turns that ended since then have cost, the dearest line first."""
        ...

    async def rearrange(self, *changes: Change, call: str) -> None:
        """Change the message tree while no turn runs or waits: all of `changes`, or none.

        Then every client shows the active path anew. Raises `TurnActiveError`, which names `call`.
        """
        ...

    # Jobs

    async def enqueue(self, job: str, payload: Any = None, **options: Unpack[JobOptions]) -> Job:
        """Have one of this feature's jobs done, at least once: now, later, after a crash.

        The options are those of `agent.jobs.enqueue`.
        """
        ...

    def keep_awake(self) -> Disposer:
        """The agent does not go to sleep until this is disposed of. Costs nothing meanwhile."""
        ...

    # What a client does

    async def send(self, asked: ChatRequest, by: Client) -> Submission | None:
        """A chat request with the client's whole list.

        A list that ends with an answer brings outcomes of its calls; None if it cannot go on yet.
        Raises `Refusal` for messages that are none, with the words of `on_chat_error`, and if the
        agent is busy and its policy drops what comes then; nothing is stored.
        """
        ...

    async def answer(self, tool_call_id: str, by: Client, **answer: Any) -> bool:
        """A tool's result (`output=` or `error=`), or a decision (`approved=`, `reason=`).

        False if nothing waited for it.
        """
        ...

    async def cancel(
        self, request_id: str, by: Client, reason: str = "stopped by the user"
    ) -> bool:
        """Stop a turn that runs or waits. False if it does neither."""
        ...

    async def transcript(self) -> bytes:
        """What every client should show, as a JSON list: the active path, then what waits."""
        ...

    async def authorize(self, action: Action, by: Client, subject: Subject | None = None) -> None:
        """Ask the agent whether a client may do this. Raises `NotAllowed`."""
        ...


class Feature:
    """Something an agent can do. Subclass it, name it, override what you need.

    A raise in `on_boot` keeps the agent from waking, one in `tools` or `prompt` fails the turn; the
    error names the feature. What `greet`, `on_clear`, `on_delete` and `on_close` raise is logged.
    """

    name: ClassVar[str]
    """Its namespace: the feature `notes` is `agent.notes`."""
    namespace: ClassVar[bool] = True
    """Whether it is found on the agent, under its name. False: it only brings things."""
    kit: Kit
    """Set before `on_boot`."""

    def on_made(self, unwoken: Unwoken) -> None:
        """The agent is made and not awake: there is no kit yet. Only for agents that chat.

        For a namespace that can be used before the start, as `create_agent` allows.
        """

    async def on_boot(self, kit: Kit) -> None:
        """The agent wakes. Called before `on_start`: read stored values here."""

    def tools(self, turn: HookContext) -> Mapping[str, Tool | Callable[..., Any]]:  # noqa: ARG002 - for overriding methods
        """Tools to offer in this turn, by name: the methods with `@tool`, if it is not overridden.

        Called once per attempt; must not block.
        """
        return bind_tools(self)

    def prompt(self, turn: HookContext) -> str | None:  # noqa: ARG002
        """Its lines in the part of the system prompt that says what the agent can do."""
        return None

    def hooks(self) -> Mapping[str, Callable[..., Any]]:
        """Hooks by event, called after the class's own. Asked once, before `on_boot`.

        Methods with `@hook`, or with the name of an event, are called without being listed.
        """
        return {}

    def calls(self) -> Mapping[str, Callable[..., Any]]:
        """What clients may call, by the name they use, beside the methods with `@rpc`."""
        return {}

    def routes(self) -> Sequence[Route]:
        """HTTP below the agent's address."""
        return ()

    def jobs(self) -> Mapping[str, JobHandler]:
        """What `kit.enqueue` can have done, by name."""
        return {}

    def greet(self, connection: Any) -> Sequence[str]:  # noqa: ARG002
        """Frames for a client that connects, after identity and state."""
        return ()

    def page(self, cls: type) -> Mapping[str, Any]:  # noqa: ARG002
        """What the page at `/` is told about agents of this class: JSON data by name.

        Asked of the template, once, when the app is made.
        """
        return {}

    async def on_clear(self) -> None:
        """The conversation is being forgotten. Stored values stay unless they are deleted here."""

    async def on_delete(self) -> None:
        """The agent is being deleted. Its stored values go by themselves."""

    async def on_close(self) -> None:
        """The agent goes to sleep, or the app stops."""


class Without:
    """Stands in `features` for those of a base class that are left out, by their names."""

    def __init__(self, *names: str) -> None:
        self.names = names
