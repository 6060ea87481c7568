"""Waking an agent: builds its collaborators and connects them.

The only place that knows them all.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from inspect import isawaitable
from typing import Any

from thinkwell.agent.inbound import ChatConnection
from thinkwell.agent.making import Made
from thinkwell.agent.state import StateBox
from thinkwell.agent.think import Think
from thinkwell.agent.turns import Turns
from thinkwell.core import json
from thinkwell.core.bus import EventBus
from thinkwell.core.clock import Clock
from thinkwell.core.errors import StoreError
from thinkwell.core.tasks import TaskOwner
from thinkwell.hooks.dispatch import Hooks
from thinkwell.journal.group_commit import GroupCommit
from thinkwell.journal.turn_log import Owner
from thinkwell.journal.turns import excuse_attempts
from thinkwell.live.watchers import Sink, Watcher
from thinkwell.models.resolve import ModelPool
from thinkwell.session.session import Session
from thinkwell.store.base import Store
from thinkwell.store.ownership import claim
from thinkwell.turn.face import Parts
from thinkwell.wire import encode


class Surroundings:
    """What all agents of a host share."""

    def __init__(self, store: Store, clock: Clock, bus: EventBus) -> None:
        self.store = store
        self.clock = clock
        self.bus = bus
        self.commits = GroupCommit(store, clock)
        self.models = ModelPool()


class Activation:
    """One agent awake."""

    def __init__(self, agent: Think, turns: Turns, tasks: TaskOwner) -> None:
        self.agent = agent
        self.turns = turns
        self._tasks = tasks

    async def connect(self, connection_id: str, sink: Sink) -> ChatConnection:
        """The connect sequence (spec/01 §2.2); returns the handle for what the client sends."""
        watcher = Watcher(connection_id, sink)
        await self.turns.live.connect(watcher)
        agent = self.agent
        has_state = agent.state is not None
        watcher.send(encode.identity(agent.name, agent.agent_class, state_follows=has_state))
        if has_state:
            watcher.send(encode.state(agent.state))
        watcher.send(encode.mcp_servers())
        return ChatConnection(self.turns, watcher)

    async def stop(self) -> None:
        """Stop at once. Unsettled turns stay unsettled and go on at the next start."""
        self.turns.close()
        await self._tasks.close()
        parts = self.turns.parts
        with suppress(StoreError):  # a store that is gone leaves nothing to excuse
            await parts.commits.run(
                parts.owner, lambda tx: excuse_attempts(tx, parts.owner.agent_id)
            )


async def wake(
    cls: type[Think], name: str, around: Surroundings, made: Made | None = None
) -> Activation:
    """Claim the agent, make it unless it is `made` already, run `configure_session` and
    `on_start`, then take up unsettled turns.
    """
    agent_id = f"{cls.agent_class}/{name}"
    owned = await claim(
        around.store, agent_id, cls=cls.agent_class, name=name, now=around.clock.now()
    )
    owner = Owner(agent_id, owned.epoch)
    made = made or Made(cls, name)
    agent = made.agent
    tasks = TaskOwner(agent_id)
    turns = Turns(tasks, owned.generation)

    async def write(work: Any) -> Any:
        return await around.commits.run(owner, work)

    session = Session(around.store, agent_id, write=write, clock=around.clock)
    configured = agent.configure_session(session)
    agent.session = await configured if isawaitable(configured) else configured
    state = cls.initial_state if owned.state is None else json.loads(owned.state)
    agent._state = StateBox(agent_id, state, write, lambda value: _show_state(turns, value))  # pyright: ignore[reportPrivateUsage]
    agent._turns = turns  # pyright: ignore[reportPrivateUsage]
    hooks = Hooks(made.hooks, around.bus, strict=agent.strict_hooks)
    turns.wire(
        Parts(
            agent=agent,
            agent_ref=agent,
            own_tools=made.own_tools,
            owner=owner,
            store=around.store,
            commits=around.commits,
            session=agent.session,
            hooks=hooks,
            bus=around.bus,
            clock=around.clock,
            output=turns,
            scopes=made.scopes,
            sleep=asyncio.sleep,
            resolve_model=around.models.resolve,
        )
    )
    made.tell_scopes_to(
        lambda event, context: tasks.spawn(hooks.observe_end(event, context), name=event)
    )
    await agent.on_start()
    await turns.recover()
    return Activation(agent, turns, tasks)


def _show_state(turns: Turns, value: Any) -> None:
    turns.live.watchers.send(encode.state(value))
