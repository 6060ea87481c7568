"""A life of the process begins: what the lives before it tell, and whose work has to go on."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from thinkwell.agent.wiring import Shared
from thinkwell.core.bus import EventBus
from thinkwell.core.errors import StoreError, StoreUnavailableError
from thinkwell.core.events import AgentDamaged
from thinkwell.host.starts import Starts
from thinkwell.journal.boots import SOON, Boot, begin_boot, suspects_of
from thinkwell.journal.starts import deadly_starts
from thinkwell.journal.turns import agents_with_work, all_agents, has_work
from thinkwell.store.base import Store
from thinkwell.turn.line.suspects import Suspects

log = logging.getLogger("thinkwell.host")

_START = {"action": "start"}


async def begin_life(store: Store, shared: Shared) -> Starts:
    """Write down that this life of the process begins, and what the last two tell."""
    keys: set[tuple[str, str]] = set()
    before: Sequence[Boot] = ()
    deaths: Mapping[str, int] = {}
    try:
        shared.boot, before = await begin_boot(store, shared.clock.now())
        deaths = await deadly_starts(store)
        keys = await suspects_of(store, before)
    except StoreUnavailableError as error:
        shared.commits.health.failed(error)
    except (StoreError, ValueError):  # damage to one turn must not keep the others waiting
        log.critical("the lives before this one cannot be read", exc_info=True, extra=_START)
    if keys:
        log.warning(
            "the process died twice soon after its start; turns that ran at both run one after "
            "another now",
            extra={"action": "start", "turns": sorted(keys)},
        )
    monotonic = shared.clock.monotonic
    shared.suspects = Suspects(keys, until=monotonic() + SOON, monotonic=monotonic)
    return Starts(store, shared.boot, before=before, deaths=deaths, monotonic=monotonic)


async def agents_to_wake(store: Store, bus: EventBus) -> list[str]:
    """Whose turns must go on. Where the index is damaged, each agent is asked alone."""
    try:
        return await agents_with_work(store)
    except StoreError:
        log.critical("a part of the store cannot be read", exc_info=True, extra=_START)
    found: list[str] = []
    for agent_id in await all_agents(store):
        try:
            if await has_work(store, agent_id):
                found.append(agent_id)
        except StoreError as error:
            log.critical("an agent cannot be read", exc_info=True, extra=_START)
            bus.emit(AgentDamaged, agent=agent_id, error=error)
    return found
