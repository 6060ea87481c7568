"""Waking an agent: builds its collaborators and connects them.

The only place that knows them all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from random import random
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from thinkwell.agent.agent import Agent, AgentParts
from thinkwell.agent.connections import Chat, Connections, OpenConnection
from thinkwell.agent.http import handle_agent_request
from thinkwell.agent.instance import Instance, new_instance
from thinkwell.agent.kit import AgentKit
from thinkwell.agent.rpc import rpc_methods
from thinkwell.agent.state import StateBox
from thinkwell.agent.think import Think
from thinkwell.core.budgets import Budget
from thinkwell.core.bus import EventBus
from thinkwell.core.clock import Clock
from thinkwell.core.degradations import Degradations
from thinkwell.core.errors import (
    ConfigurationError,
    OwnershipLostError,
    StoreError,
    StoreUnavailableError,
    TurnError,
)
from thinkwell.core.events import AgentDamaged
from thinkwell.core.ids import new_id
from thinkwell.core.limits import NO_LIMIT
from thinkwell.core.tasks import CLOSING, TaskOwner
from thinkwell.core.threads import ThreadPool
from thinkwell.core.user_code import call_hook
from thinkwell.features.jobs.desk import JobDesk, NewDue
from thinkwell.features.jobs.jobs import Jobs
from thinkwell.features.schedules.starting import starting
from thinkwell.hooks.dispatch import HookLimits, Hooks
from thinkwell.hooks.feature import Feature
from thinkwell.hooks.seats import Seats, features_of
from thinkwell.hooks.time_limits import TimeLimits, limits_of
from thinkwell.hooks.values import ValueKind, returned
from thinkwell.journal.blobs import Blob
from thinkwell.journal.code_version import CodeVersion
from thinkwell.journal.crash_points import crash_here
from thinkwell.journal.group_commit import GroupCommit
from thinkwell.journal.joined_writes import write_soon
from thinkwell.journal.left_rows import LeftRows
from thinkwell.journal.storage import AGENT, Storage
from thinkwell.journal.store_health import Sleep
from thinkwell.journal.turn_log import Owner
from thinkwell.journal.turns import TurnRecord
from thinkwell.live.live import Live
from thinkwell.live.watchers import Sink, Watcher, Watchers
from thinkwell.models.gate import ModelGate
from thinkwell.models.resolve import ModelPool
from thinkwell.session.cache import MessageCache
from thinkwell.session.search.index import SearchIndex
from thinkwell.session.session import Session
from thinkwell.store.base import Reader, Store
from thinkwell.store.ownership import UNBORN, OwnedAgent, claim, claim_if_there
from thinkwell.tools.fingerprint import tools_fingerprint
from thinkwell.tools.tool import read_tools
from thinkwell.turn.ask.approval_desk import TurnApprovals
from thinkwell.turn.ask.authority import asking_for
from thinkwell.turn.ask.outcomes import resolve_outcome
from thinkwell.turn.ask.policy import Crowd
from thinkwell.turn.ask.retry import retry_turn
from thinkwell.turn.line.suspects import Suspects
from thinkwell.turn.line.take_over import TakeOver
from thinkwell.turn.parts import Parts, Recording
from thinkwell.turn.transcript import forget_transcript
from thinkwell.turn.turns import Turns
from thinkwell.wire.http import HttpRequest, HttpResponse

GONE = 4410
"""With this code a client does not come back: the agent it was connected to is deleted."""
DELETED = "The agent is deleted."
ERASED = "Whoever asked for this is erased."
RESTART = 1012
"""The close code after which a client comes back by itself."""


_SESSION = ValueKind(lambda value: isinstance(value, Session), "the session: `return session`")


class Shared:
    """What all agents of a host share."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        bus: EventBus,
        *,
        threads: ThreadPool | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.store = store
        self.clock = clock
        self.bus = bus
        self.sleep = sleep
        self.commits = GroupCommit(store, clock, bus=bus, sleep=sleep)
        self.models = ModelPool()
        self.gate: ModelGate | None = None
        """Where model calls wait, if the app limits them."""
        self.threads = threads or ThreadPool()
        self.messages = MessageCache()
        self.search = SearchIndex(store, partial(self.commits.insist, None), crash_here)
        self.crowd = Crowd()
        self.boot = 0
        """Which life of the process this is; the host knows once its store is open."""
        self.suspects = Suspects()
        self.app_version: str | None = None
        """What turn rows say about the app's code."""
        self.take_over = TakeOver(lambda: self.crowd.running)
        self.left_rows = LeftRows(store)
        """Where the journals of turns stand that a dead process has left."""
        self.draining = False
        """Whether the host stops, so that nothing may begin."""
        self.paused: dict[str, str] = {}
        """Agents that an operator has paused, and why; the host reads it at its start."""
        self.turns: WeakValueDictionary[str, Turns] = WeakValueDictionary()
        """The turns of each agent, from before its start: whoever holds them back reaches also an
        agent that is just starting."""
        self.new_due_job: NewDue = _nobody
        """Told of every job that waits; the host sets its runner."""
        self.budgets: Sequence[Budget] = ()
        """Those of all agents together."""
        self.features: Sequence[Feature] = ()
        """Templates of the features that every agent has."""
        self.agents: Callable[[type | str, str], Any] = _no_agents
        """A stub of an agent, by class and name."""
        self.recording: Recording | None = None
        """What stands in for the world, if the host is there to replay a turn."""
        self.owners: WeakValueDictionary[str, Owner] = WeakValueDictionary()
        """Who wrote last for each agent here, as long as anybody might still write."""


def _nobody(_agent_id: str, _due_at: float) -> None:
    """Without a runner, jobs wait for the next process that has one."""


class Activation:
    """One agent awake."""

    def __init__(
        self,
        agent: Agent,
        *,
        connections: Connections,
        state: StateBox,
        chat: Chat | None,
        tasks: TaskOwner,
        desk: JobDesk,
        seats: Seats,
    ) -> None:
        self.agent = agent
        self.desk = desk
        """Its jobs, as the runner knows them."""
        self._connections = connections
        self._state = state
        self._chat = chat
        self._turns = None if chat is None else chat.turns
        self._tasks = tasks
        self._seats = seats
        self._users = 0

    @contextmanager
    def in_use(self) -> Generator[Agent]:
        """Keeps the agent awake while somebody outside calls it."""
        self._users += 1
        try:
            yield self.agent
        finally:
            self._users -= 1

    @property
    def idle(self) -> bool:
        """Whether nobody is connected or calls, and nothing runs."""
        used = self._users or self.desk.kept_awake or any(self._connections)
        return not (used or self.busy or self._tasks.busy)

    @property
    def owes_hooks(self) -> bool:
        """Whether turns of an earlier life owe the hooks of their end."""
        return self._turns is not None and bool(self._turns.owed)

    async def deliver_owed_hooks(self) -> None:
        """Run those hooks, turn by turn."""
        if self._turns is not None:
            await self._turns.deliver_owed()

    async def connect(self, connection_id: str, request: HttpRequest, sink: Sink) -> OpenConnection:
        """The connect sequence; returns the handle for what the client sends."""
        if self._connections.is_anothers(connection_id, request.principal):
            connection_id = new_id()  # or it would silence the other one's tab
        watcher = Watcher(connection_id, sink)
        return await self._connections.open(watcher, request, self._chat, self._state)

    async def handle_request(self, request: HttpRequest) -> HttpResponse:
        """Answer an HTTP request."""
        return await handle_agent_request(self.agent, self._turns, request)

    async def retry_turn(self, request_id: str) -> str:
        """Run a turn again that ended badly; the id of the new one."""
        return await retry_turn(self._chatting(), request_id)

    async def goes_on(self, request_id: str) -> bool:
        """Whether a turn has not ended, or did so only now."""
        record = await self._chatting().find(request_id)
        return record is not None and (not record.settled or record.status == "completed")

    async def resolve_outcome(self, call: str, **said: Any) -> bool:
        """Say what came of a call, by its id or its key. False if its outcome is known."""
        return await resolve_outcome(self._chatting().parts, call, **said)

    async def cancel_turn(self, request_id: str, reason: str) -> bool:
        """Stop a turn. False if it neither runs nor waits."""
        return await self._chatting().cancel(request_id, reason)

    def approvals(self) -> TurnApprovals:
        """Calls that wait for somebody."""
        return TurnApprovals(self._chatting())

    @property
    def agent_id(self) -> str:
        """Class and name."""
        return f"{self.agent.agent_class}/{self.agent.name}"

    async def wait_until_still(self) -> None:
        """Until no turn runs, and none will begin by itself."""
        if self._turns is not None:
            await self._turns.line.wait_until_still()

    @property
    def stands_still(self) -> bool:
        """Whether its turns wait for an operator, so that nobody has to wait for them."""
        return self._turns is not None and self._turns.line.stands_still()

    async def until_over(self, request_id: str) -> TurnRecord:
        """The row of a turn once it is over."""
        return await self._chatting().until_over(request_id)

    def _chatting(self) -> Turns:
        if self._turns is None:
            raise TurnError(f"{type(self.agent).__name__} has no turns: it does not chat.")
        return self._turns

    @property
    def busy(self) -> bool:
        """Whether a turn runs or waits."""
        return self._turns is not None and self._turns.busy

    async def wait_until_idle(self) -> None:
        """Until no turn runs and none waits."""
        if self._turns is not None:
            await self._turns.wait_until_idle()

    @property
    def at_rest(self) -> bool:
        """Whether nothing runs here and nobody calls, be clients connected or not. Turns that are
        held back count as rest: they are stored, and begin after the next start.
        """
        if self._turns is not None and self._turns.line.parked:
            return not self._users and self._tasks.count == 1  # the worker of the line
        return not (self._users or self.busy or self._tasks.busy)

    def hold_turns(self) -> None:
        """A person is about to be erased: the turn that runs ends, and none begins."""
        if self._turns is not None:
            self._turns.line.held_by.add("erasing")

    def release_turns(self) -> None:
        """Turns may begin again, as far as nothing else holds them."""
        if self._turns is not None:
            self._turns.line.held_by.discard("erasing")
            self._turns.line.wake()

    async def end_work_of(self, principal_id: str, store: Reader) -> None:
        """Stop the turns and jobs of a person who is erased."""
        named = {"agent": self.desk.agent_id, "principal": principal_id}
        for row in await store.fetch_all("unsettled_of_principal", named):
            await self.cancel_turn(row["id"], ERASED)
        for row in await store.fetch_all("running_jobs_of_principal", named):
            await self.desk.cancel(row["id"], ERASED)

    async def restart(self) -> None:
        """Stop, and have clients come back: they then see what is stored by then."""
        for connection in self._connections:
            connection.close(RESTART, "The agent starts again.")
        await self.stop()

    async def delete(self, jobs_ended: Callable[[float], Awaitable[None]]) -> None:
        """Stop for good: its features hear of it, what runs is ended, its clients are sent away.

        `jobs_ended` waits so long for handlers that were told to stop. A process that dies here
        has deleted nothing: what ran was stopped, and the agent is still there.
        """
        await self._seats.delete()
        if self._turns is not None:
            await self._turns.reset()
            self._turns.parts.audience.cleared(None)
        for job in await self.agent.jobs.list(status="running", limit=NO_LIMIT):
            await self.desk.cancel(job.id, DELETED)
        grace = limits_of(getattr(self.agent, "time_limits", {})).grace
        await jobs_ended(2 * grace + CLOSING)  # one to stop by itself, one after the cancel
        self._connections.send_away(GONE, DELETED)
        if self._turns is not None:
            self._turns.close(deleted=True)
        await self.stop()

    async def stop(self, within: float = CLOSING) -> None:
        """Stop at once. Unsettled turns stay unsettled and go on at the next start.

        What has not ended `within` so many seconds is left behind.
        """
        if self._turns is not None:
            self._turns.close()
        loop = asyncio.get_running_loop()
        until = loop.time() + within
        await self._tasks.close(within)
        await self._seats.close(max(until - loop.time(), 0.0))
        self.agent.events.close()


async def wake(
    cls: type[Agent],
    name: str,
    shared: Shared,
    instance: Instance | None = None,
    *,
    create: bool = True,
) -> Activation:
    """Claim the agent, run `configure_session` and `on_start`, then take up unsettled turns.

    `instance` is an agent that was made before, with hooks and scopes it has already.
    """
    agent_id = f"{cls.agent_class}/{name}"
    if (before := shared.owners.get(agent_id)) is not None:
        before.over = True  # also one without a row, which no epoch keeps from writing
    owned = await _claim(cls, name, shared, create=create)
    owner = shared.owners[agent_id] = Owner(agent_id, owned.epoch)
    if instance is None and issubclass(cls, Think):
        instance = Instance(cls, name)
    agent = new_instance(cls, name) if instance is None else instance.agent
    tasks, watchers = TaskOwner(agent_id), Watchers()
    connections = Connections(agent_id, agent, watchers, tasks)
    write = partial(shared.commits.run, owner)
    state = StateBox(agent_id, agent, commit=write, show=connections.show_state)
    degradations = Degradations(agent_id, shared.bus, shared.clock)
    if broken := await state.load(owned.state, cls.initial_state, store=owned.epoch != UNBORN):
        degradations.note("state", broken)
    desk = _desk_of(agent, owner, shared)
    turns = None if instance is None else Turns(tasks, owned.generation)
    chat = turns and Chat(turns, Live(watchers, turns.transcript, turns.find_ended))
    storage = partial(Storage, shared.store, shared.commits, owner)
    agent.events.attach(shared.bus, agent_id)
    seats = _seat_features(agent, turns, storage, shared)
    parts = AgentParts(state, connections, seats, Jobs(desk), storage(AGENT), degradations, turns)
    agent._wire(parts)  # pyright: ignore[reportPrivateUsage] - nobody else may
    if instance is not None and chat is not None:
        await _wire_chat(instance, chat, seats, owner, shared=shared)
    hooks = None if instance is None else instance.hooks
    seats.connect(hooks, desk.handlers, rpc_methods(cls))
    if chat is not None:
        chat.live.unreadable = partial(degradations.note, "transcript-hydration")
        shared.turns[agent_id] = chat.turns
        _hold_if_asked(chat.turns, shared.paused.get(agent_id), draining=shared.draining)
    await _start(agent, seats, chat, degradations)
    if chat is not None and chat.turns.owed:
        shared.new_due_job(agent_id, shared.clock.now())
    return Activation(
        agent, connections=connections, state=state, chat=chat, tasks=tasks, desk=desk, seats=seats
    )


async def _claim(cls: type[Agent], name: str, shared: Shared, *, create: bool) -> OwnedAgent:
    agent_id = f"{cls.agent_class}/{name}"
    try:
        return await (claim if create else claim_if_there)(
            shared.store, agent_id, cls=cls.agent_class, name=name, now=shared.clock.now()
        )
    except StoreUnavailableError as error:
        shared.commits.health.failed(error)
        raise


async def _start(agent: Agent, seats: Seats, chat: Chat | None, degradations: Degradations) -> None:
    """Features, then `on_start`, then turns: each finds what came before it.

    Code of the app that fails keeps the agent asleep; rows that cannot be read do not.
    """
    try:
        await seats.boot()
        with starting():
            await call_hook("on_start", agent.on_start)
        if chat is not None:
            await _recover(chat.turns, degradations)
    except BaseException:
        await seats.close(CLOSING)  # the next try begins with new ones
        raise


def _hold_if_asked(turns: Turns, paused: str | None, *, draining: bool) -> None:
    """Nothing begins in an agent that an operator has paused, nor while the host stops."""
    if paused is not None:
        turns.pause(paused)
    if draining:
        turns.line.held_by.add("draining")


async def _recover(turns: Turns, degradations: Degradations) -> None:
    """Take up unsettled turns, as far as they can be read. The others stay as they are."""
    parts = turns.parts
    try:
        damaged = await turns.recover()
    except (StoreUnavailableError, OwnershipLostError):
        raise
    except StoreError as error:
        parts.bus.emit(AgentDamaged, agent=parts.owner.agent_id, error=error)
        degradations.note("durable-work-recovery", error)
        return
    if damaged:
        text = f"These turns could not be read and have ended: {', '.join(damaged)}."
        degradations.note("durable-work-recovery", StoreError(text))


def _seat_features(
    agent: Agent, turns: Turns | None, storage: Callable[[str], Storage], shared: Shared
) -> Seats:
    """The features of an agent, each with a kit and stored values of its own."""
    return Seats(
        agent,
        features_of(type(agent), shared.features),
        lambda name: AgentKit(name, agent, turns, storage=storage(name), shared=shared),
    )


def _seat_blocks(seats: Seats) -> None:
    """A session has its first context block. Agents without one never load the code."""
    from thinkwell.features.context_blocks.feature import ContextBlocks

    seats.seat(ContextBlocks())


def _no_agents(cls: type | str, name: str) -> Any:
    raise ConfigurationError(f"There is no agent {cls!r} named {name!r}: nobody serves it.")


def _desk_of(agent: Agent, owner: Owner, shared: Shared) -> JobDesk:
    return JobDesk(
        owner.agent_id,
        agent,
        reader=shared.store,
        write=partial(shared.commits.run, owner),
        insist=partial(shared.commits.insist, owner),
        clock=shared.clock,
        bus=shared.bus,
        new_due=shared.new_due_job,
        epoch=lambda: owner.epoch,  # it gets one with its first write
        asking=asking_for,
        built_in=_built_in(Think if isinstance(agent, Think) else Agent),
        when_born=partial(setattr, owner, "born"),
    )


_codes: WeakKeyDictionary[type, tuple[str | None, str]] = WeakKeyDictionary()


def _code_of(cls: type[Think], version: str | None) -> str:
    """The code of a class, as turn rows name it; made once."""
    known = _codes.get(cls)
    if known is not None and known[0] == version:
        return known[1]
    fixed = cls.get_system_prompt is Think.get_system_prompt
    prompt: object = cls.system_prompt if fixed else None  # a property gives one to each agent
    tools = {mark.name or f.__name__: s.input_schema for f, mark, s in read_tools(cls).values()}
    code = CodeVersion(
        app=version,
        prompt=Blob.of(prompt).hash if isinstance(prompt, str) else None,
        tools=tools_fingerprint(tools) if tools else None,
    ).encode()
    _codes[cls] = version, code
    return code


@cache
def _built_in(base: type[Agent]) -> frozenset[str]:
    return frozenset(dir(base))


def _hooks_of(
    instance: Instance, owner: Owner, shared: Shared, *, limits: TimeLimits, tasks: TaskOwner
) -> Hooks:
    return Hooks(
        instance.hooks,
        shared.bus,
        agent_id=owner.agent_id,
        strict=instance.agent.strict_hooks,
        limits=HookLimits(hook=limits.hook, grace=limits.grace, owner=tasks),
    )


def _session_of(owner: Owner, shared: Shared) -> Session:
    return Session(
        shared.store,
        owner.agent_id,
        write=partial(shared.commits.run, owner),
        clock=shared.clock,
        cache=shared.messages,
        join=partial(write_soon, shared.commits, owner),
        bus=shared.bus,
    )


async def _wire_chat(
    instance: Instance, chat: Chat, seats: Seats, owner: Owner, *, shared: Shared
) -> None:
    """Give a chat agent its session and its turns."""
    turns = chat.turns
    agent, session = instance.agent, _session_of(owner, shared)
    session.when_remembering = partial(_seat_blocks, seats)
    configured = await call_hook("configure_session", agent.configure_session, session)
    agent.session = returned(f"{type(agent).__name__}.configure_session()", configured, _SESSION)
    limits = limits_of(agent.time_limits)
    hooks = _hooks_of(instance, owner, shared, limits=limits, tasks=turns.tasks)
    chat.live.watchers.emptied = partial(forget_transcript, agent.session)
    turns.wire(
        Parts(
            agent=agent,
            agent_ref=agent,
            own_tools=instance.own_tools,
            offers=seats,
            owner=owner,
            store=shared.store,
            commits=shared.commits,
            session=agent.session,
            hooks=hooks,
            bus=shared.bus,
            clock=shared.clock,
            boot=shared.boot,
            code=_code_of(type(agent), shared.app_version),
            suspects=shared.suspects,
            take_over=shared.take_over,
            left_rows=shared.left_rows,
            audience=chat.live,
            line=turns.line,
            crowd=shared.crowd,
            scopes=instance.scopes,
            tasks=turns.tasks,
            new_due_job=lambda agent_id, due_at: shared.new_due_job(agent_id, due_at),
            limits=limits,
            in_thread=partial(shared.threads.run, owner.agent_id),
            sleep=shared.sleep,
            random=random,
            resolve_model=shared.models.resolve,
            load_model=shared.models.load,
            gate=shared.gate,
            prices=shared.models.prices,
            app_budgets=shared.budgets,
            recording=shared.recording,
        )
    )
