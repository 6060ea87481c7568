"""What a turn needs from outside: its agent, its output, its collaborators.

`turn` imports nothing above it. The agent class is seen only through `AgentFace`, the watchers
only through `Audience`; `agent/wiring.py` hands in the real ones.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

import msgspec

from thinkwell.core.budgets import Budget, read_budgets
from thinkwell.core.bus import EventBus
from thinkwell.core.clock import Clock
from thinkwell.core.tasks import TaskOwner
from thinkwell.hooks.contexts import HookContext, TurnContext
from thinkwell.hooks.dispatch import Hooks
from thinkwell.hooks.recovery import ChatRecovery
from thinkwell.hooks.seats import Offered
from thinkwell.hooks.time_limits import TimeLimits
from thinkwell.journal.group_commit import GroupCommit
from thinkwell.journal.joined_writes import Together
from thinkwell.journal.left_rows import LeftRows
from thinkwell.journal.spending import ALL_AGENTS, HeldBudget
from thinkwell.journal.turn_log import Owner
from thinkwell.messages.message import Part, UIMessage
from thinkwell.models.base import Model
from thinkwell.models.gate import ModelGate
from thinkwell.models.prices import PriceBook
from thinkwell.session.session import Session
from thinkwell.store.base import Store
from thinkwell.tools.scope_registry import ScopeRegistry
from thinkwell.tools.tool import Tool
from thinkwell.turn.handle import TurnHandle
from thinkwell.turn.line.line import TurnLine
from thinkwell.turn.line.suspects import Suspects
from thinkwell.turn.line.take_over import TakeOver

if TYPE_CHECKING:
    from thinkwell.turn.ask.policy import Crowd
    from thinkwell.turn.ask.run_options import Options
    from thinkwell.turn.run.pending_call import PendingCall
    from thinkwell.turn.run.running import RunningTurn
    from thinkwell.turn.run.tool_policy import Ready, Settled


class AgentFace(Protocol):
    """The settings and overrides of an agent that a turn uses."""

    budget: Any
    max_steps: int
    on_max_steps: Literal["stop", "error", "answer"]
    max_retries: int
    send_reasoning: bool
    store_reasoning: bool
    tool_execution: Literal["parallel", "sequential"]
    chat_stream_stall_timeout: float
    max_tool_output_chars: int
    hydration_byte_budget: int
    time_limits: ClassVar[Mapping[str, Any]]
    expose_errors: bool
    chat_recovery: ChatRecovery | bool
    max_turn_chain: int
    message_concurrency: str | Mapping[str, Any]
    strict_hooks: bool

    def get_model(self) -> Any:
        """The model or its name."""
        ...

    def get_system_prompt(self) -> str | Awaitable[str]:
        """The system prompt."""
        ...

    def authorize_turn(self, ctx: TurnContext, /) -> Any:
        """Whether actions may run in this turn; may be async."""
        ...

    def repair_interrupted_tool_part(self, part: Part, /) -> Any:
        """What stands in the place of a call that never got its result; may be async."""
        ...

    def get_tools(self) -> Mapping[str, Tool] | Awaitable[Mapping[str, Tool]]:
        """Tools beside the decorated ones. Called once per attempt."""
        ...


class Audience(Protocol):
    """Who watches an agent's turns from outside.

    Contract: called after the commit that covers what is told; never raises.
    """

    def accepted(
        self, handle: TurnHandle, origin: str | None = None, *, crossed: bool = True
    ) -> None:
        """A turn is durable and waits; what becomes of it comes through its tail.

        `origin` is the connection that asked for it; `crossed`: that connection may show another
        list than the stored one.
        """
        ...

    async def show_input(self, but: str | None = None) -> None:
        """What waits has changed; the connection `but` knows."""
        ...

    async def show_asker(self, request_id: str) -> None:
        """A turn begins whose client may not show its question last, where the reply goes."""
        ...

    def recovering(self, request_id: str) -> None:
        """A turn that lost its model is begun anew."""
        ...

    def recovered(self, request_id: str) -> None:
        """A turn that was begun anew has ended before this start."""
        ...

    def updated(self, message: UIMessage) -> None:
        """A stored message has changed while no turn wrote it."""
        ...

    async def send_transcript(self) -> None:
        """Stored messages have changed beside the turns."""
        ...

    def remember_failure(self, request_id: str, error: str) -> None:
        """The last turn before this start failed: whoever connects is told."""
        ...

    def paused(self, reason: str | None) -> None:
        """An operator has paused the agent, and why; None: it goes on."""
        ...

    def model_waiting(self, request_id: str, model: str | None) -> None:
        """A turn waits for a free slot of a model; None: it does no longer."""
        ...

    def cleared(self, but: str | None) -> None:
        """The conversation is gone; the connection `but` has emptied its own list."""
        ...


class Offers(Protocol):
    """What features bring into turns: all that a turn knows of them, beside hooks among hooks."""

    def tools(self, turn: HookContext) -> Mapping[str, Offered]:
        """Tools for this turn, by name, and whose they are."""
        ...

    def find_tool(self, name: str) -> Tool | None:
        """One of their tools, outside of any turn."""
        ...

    def prompt(self, turn: HookContext) -> Sequence[str]:
        """Lines about what they can do."""
        ...

    async def forget(self, agent_id: str, limit: float | None) -> Together:
        """The conversation is being cleared; what they write then, for the clear's transaction."""
        ...


class Recording(Protocol):
    """Stands in for tools and passers-by while a turn is replayed (`turn/travel/recording.py`)."""

    def expect(self, call_ids: Sequence[str]) -> None:
        """These calls run side by side from now on."""
        ...

    def lane(self, call_id: str) -> AbstractAsyncContextManager[None]:
        """Around everything that is done about one call."""
        ...

    async def in_order(self, call_id: str) -> None:
        """Wait until the outcome of this call is the one that was told next."""
        ...

    async def outcome(self, turn: RunningTurn, call: PendingCall, ready: Ready) -> Settled | None:
        """What came of a call; None if the tool is to run."""
        ...

    def options(self, recalled: Options) -> Options:
        """What `run` was given for the turn, with what its row could not keep."""
        ...

    def approval_id(self, call_id: str) -> str | None:
        """The id under which a person was asked about a call."""
        ...

    def steered(self, steps: int) -> bool:
        """Whether the turn made room for another one after so many steps."""
        ...


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """The collaborators of one agent's turns."""

    agent: AgentFace
    agent_ref: Any
    """The agent as hooks and tools see it."""
    own_tools: Mapping[str, Tool]
    """The decorated tools of the class."""
    offers: Offers
    """What features bring."""
    owner: Owner
    store: Store
    commits: GroupCommit
    session: Session
    hooks: Hooks
    bus: EventBus
    clock: Clock
    boot: int
    """Which life of the process this is."""
    code: str
    """The code that runs here, as turn rows name it (`journal/code_version.py`)."""
    suspects: Suspects
    take_over: TakeOver
    """Where turns wait that were found at a start."""
    left_rows: LeftRows
    """Where their journals stand."""
    audience: Audience
    line: TurnLine
    crowd: Crowd
    """How many turns clients wait for."""
    scopes: ScopeRegistry
    tasks: TaskOwner
    """Runs and keeps what outlives its turn."""
    new_due_job: Callable[[str, float], None]
    """Tells the runner, after the commit, whose job waits and when it is due."""
    limits: TimeLimits
    """What the agent's `time_limits` say."""
    in_thread: Callable[..., Awaitable[Any]]
    """Runs a sync tool beside the event loop."""
    sleep: Callable[[float], Awaitable[object]]
    random: Callable[[], float]
    """From 0 to 1, for waits that must differ."""
    """How a retry waits."""
    resolve_model: Callable[[Any], Model]
    """Turns what `get_model` returned into a model."""
    load_model: Callable[[Any], Awaitable[Model]]
    """The same for the model of a turn, which may have to be imported first."""
    prices: PriceBook
    """What models cost."""
    app_budgets: Sequence[Budget] = ()
    """Budgets of all agents together."""
    gate: ModelGate | None = None
    """Where model calls wait for their limits; None if there are none."""
    recording: Recording | None = None
    """What stands in for the world, if this is a replay."""


def held_budgets(parts: Parts) -> Sequence[HeldBudget]:
    """The budgets that the agent's turns are under: its own, then the app's.

    Whoever asks looks first whether there are any, so that turns without one do not even ask. A
    replay calls no model, so it is under none.
    """
    if parts.recording is not None:
        return ()
    own = parts.agent.budget
    given = read_budgets(own, f"{type(parts.agent_ref).__name__}.budget") if own else ()
    agent_class = parts.owner.agent_id.partition("/")[0]
    return (
        *(HeldBudget(each, agent_class) for each in given),
        *(HeldBudget(each, ALL_AGENTS) for each in parts.app_budgets),
    )
