"""Forking a turn: a new agent that goes on from one of its steps, under another model or prompt.

One transaction writes the new agent with the conversation, the turn up to that step, and the ledger
of its source. Then it is woken, and takes the turn up as after a crash. If the process dies before
that, the next start does it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from thinkwell.agent.agent import Agent
from thinkwell.agent.wiring import Activation, Shared
from thinkwell.core import json
from thinkwell.core.errors import ConfigurationError, TurnError
from thinkwell.core.ids import new_id
from thinkwell.hooks.feature import Feature
from thinkwell.host.client import AgentAddress, check_agent_name
from thinkwell.journal.ledger import LedgerRow, read_calls
from thinkwell.journal.turns import Chosen, Forked, TurnRecord, turns_of_message
from thinkwell.messages.message import UIMessage
from thinkwell.models.resolve import ModelLike
from thinkwell.session.versions import plant_path, read_end_of_path
from thinkwell.store.base import Store, Transaction
from thinkwell.store.deleting import has_rows
from thinkwell.turn.travel.case import Case
from thinkwell.turn.travel.export import make_case
from thinkwell.turn.travel.planting import fresh, plant
from thinkwell.turn.travel.prefix import count_steps, cut_journal

ForkTools: TypeAlias = Literal["ask", "deny", "live"]
"""What becomes of calls that the source did not make: a person is asked, they fail, or they run."""
_WHOLE = 1_000_000


class Fork(msgspec.Struct, frozen=True, kw_only=True):
    """A new agent that goes on with the past of another one."""

    agent: str
    """Class and name of the new agent."""
    request_id: str | None = None
    """Its turn; None if only the conversation was forked."""


class ForkOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a fork goes on."""

    name: str | None = None
    at: int | str = 0
    model: str | tuple[str, ...] | None = None
    system_prompt: str | None = None
    tools: ForkTools = "ask"


class Forks:
    """The part of a host that `app.turns` and the command line use."""

    _store: Store
    _shared: Shared
    _classes: dict[str, type[Agent]]

    def _check_served(self, address: AgentAddress) -> None:
        raise NotImplementedError

    async def agent(self, address: AgentAddress, *, create: bool = True) -> Activation:
        """The agent, awake."""
        raise NotImplementedError

    @property
    def store(self) -> Store:
        """Where everything is kept; for reading."""
        return self._store

    @property
    def features(self) -> Sequence[Feature]:
        """What every agent here has beside its own features."""
        return self._shared.features

    def class_of(self, address: AgentAddress) -> type[Agent]:
        """The class of an agent that is served here."""
        self._check_served(address)
        return self._classes[address.class_name]

    def lend(self, model: ModelLike) -> str | tuple[str, ...]:
        """The name under which a model can be stored with a turn."""
        return self._shared.models.lend(model)

    async def fork(self, record: TurnRecord, options: ForkOptions) -> Fork:
        """Make an agent that goes on from a step of a turn, and wake it."""
        self._check_served(AgentAddress.of(record.agent_id))
        fork = await write_fork(self._store, record, options, self._shared.clock.now())
        await self.agent(AgentAddress.of(fork.agent))
        return fork


def check_options(options: ForkOptions) -> None:
    """Raise `ConfigurationError` for what no fork can be made with."""
    if options.tools not in ("ask", "deny", "live"):
        raise ConfigurationError(f'fork(tools={options.tools!r}): choose "ask", "deny" or "live".')
    if options.name is not None:
        check_agent_name(options.name, lambda text: f"fork(name={text})")
    if isinstance(options.at, int) and options.at < 0:
        raise ConfigurationError(f"fork(at={options.at}): steps count from 0.")


async def write_fork(store: Store, record: TurnRecord, options: ForkOptions, now: float) -> Fork:
    """Store the new agent. Whoever wakes it lets it go on."""
    check_options(options)
    source = AgentAddress.of(record.agent_id)
    name = options.name or f"{source.name}-fork-{new_id()[-6:]}"
    target = AgentAddress(source.class_name, name)
    if await has_rows(store, target.id):
        raise TurnError(f"There is an agent {target.id} already. Give the fork another name.")
    if isinstance(options.at, str):
        await _write_conversation(store, record.agent_id, target, options.at, now=now)
        return Fork(agent=target.id)
    case = await make_case(store, record)
    _check_step(case, options.at)
    forked = fresh(case, target.id, new_id(), now=now)
    chosen = forked.chosen or Chosen()
    forked = msgspec.structs.replace(
        forked,
        trigger="programmatic",
        chosen=msgspec.structs.replace(
            chosen,
            model=options.model or chosen.model,
            system=options.system_prompt,
            fork=Forked(turn=forked.request_id, tools=options.tools),
        ),
    )
    calls = await _effects(store, record)
    prefix = cut_journal(case.journal, options.at) if options.at else None
    async with store.transaction() as tx:
        await _make_agent(tx, target, case.state, now)
        await _copy_memory(tx, record.agent_id, target)
        await plant(tx, case, forked, now=now, prefix=prefix, calls=calls)
    return Fork(agent=target.id, request_id=forked.request_id)


def _check_step(case: Case, at: int) -> None:
    whole = count_steps(case.journal)
    turn = case.turn
    over = turn.status == "completed" and turn.stop_reason not in ("approval", "client_tool")
    last = whole - 1 if over else whole
    if at > max(last, 0):
        raise TurnError(
            f"The turn {turn.request_id} cannot go on at step {at}: it has the steps 0 to "
            f"{max(whole - 1, 0)}. Choose at=0 to at={max(last, 0)}."
        )


async def _effects(store: Store, record: TurnRecord) -> tuple[LedgerRow, ...]:
    """Every call that has a result, of all turns that wrote the reply, in order."""
    turns = [record]
    if record.message_id is not None:
        turns = await turns_of_message(store, record.agent_id, record.message_id) or turns
    rows: list[LedgerRow] = []
    for turn in turns:
        rows += await read_calls(store, turn.agent_id, turn.request_id)
        if turn.request_id == record.request_id:
            break
    return tuple({row.call_id: row for row in rows if row.settled}.values())


async def _write_conversation(
    store: Store, source: str, target: AgentAddress, leaf: str, *, now: float
) -> None:
    scope = {"agent": source, "session": ""}
    path: Sequence[UIMessage] = await read_end_of_path(store, scope, leaf, count=_WHOLE)
    if not path:
        raise TurnError(f"{source} has no message {leaf!r}.")
    async with store.transaction() as tx:
        await _make_agent(tx, target, None, now)
        await _copy_memory(tx, source, target)
        await plant_path(tx, {"agent": target.id, "session": ""}, path, depth=1, now=now)


async def _copy_memory(tx: Transaction, source: str, target: AgentAddress) -> None:
    """Context blocks as they are now, with their history."""
    for query in ("copy_blocks", "copy_prompts"):
        await tx.execute(query, {"agent": source, "target": target.id})


async def _make_agent(tx: Transaction, target: AgentAddress, state: Any, now: float) -> None:
    named = {"id": target.id, "class": target.class_name, "name": target.name, "now": now}
    await tx.fetch_one("claim_agent", named)
    if state is not None:
        await tx.execute("set_agent_state", {"id": target.id, "state": json.dumps(state)})
