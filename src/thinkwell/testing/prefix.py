"""Does an agent leave its provider's prompt cache alone?"""

from __future__ import annotations

import itertools
from typing import Any, cast

import msgspec

from thinkwell.agent.think import Think
from thinkwell.core import json
from thinkwell.host.stub import AgentStub
from thinkwell.journal.events import ModelAsked, read_events
from thinkwell.journal.prefix import BlockReader, RequestBlocks, first_change
from thinkwell.journal.turns import TurnRecord
from thinkwell.models.base import ModelRequest
from thinkwell.store.base import Reader
from thinkwell.turn.recorded_requests import journal_of, recorded_requests, turn_before

_LONGEST = 300


class _Request(msgspec.Struct, frozen=True):
    turn: str
    step: int
    blocks: RequestBlocks
    request: ModelRequest


async def assert_prefix_stable(agent: Any) -> None:
    """Fail if a model request of this agent does not begin as the one before it did.

    Providers cache a request from its beginning (tools, prompt, messages) and charge a fraction for
    what they know. A prompt with the time of day in it, or tools in another order, loses that. Run
    two turns or more, then call this: it names the first block that changed, before and after.
    """
    requests = await _requests(*_where(agent))
    if len(requests) < 2:
        raise AssertionError(
            f"assert_prefix_stable needs two model requests to compare, and there is "
            f"{len(requests)}. Run at least two turns of the agent first."
        )
    for before, now in itertools.pairwise(requests):
        block = first_change(before.blocks, now.blocks)
        if block is not None:
            raise AssertionError(
                f"{block} changed between step {before.step} of turn {before.turn} and step "
                f"{now.step} of turn {now.turn}, so the provider's cache is lost from there on.\n"
                f"before: {_shown(before.request, block)}\nnow:    {_shown(now.request, block)}"
            )


def _where(agent: Any) -> tuple[Reader, str]:
    """The store and the id of an agent, or of what stands for it. Looks behind the scenes."""
    if not isinstance(agent, AgentStub | Think):
        raise TypeError(
            f"assert_prefix_stable takes an agent, as app.agent(Assistant) gives it, not {agent!r}."
        )
    inside = cast("Any", agent)
    if isinstance(agent, AgentStub):
        return inside._host()._store, inside._address.id
    return inside._turns.parts.store, inside._turns.parts.owner.agent_id


async def _requests(store: Reader, agent_id: str) -> list[_Request]:
    row = await store.fetch_one("newest_turn", {"agent": agent_id})
    record = None if row is None else TurnRecord.from_row(row)
    found: list[_Request] = []
    while record is not None:
        journal = await journal_of(store, record)
        if journal is None:
            break
        reader = BlockReader()
        asked = [event for event in read_events(journal) if isinstance(event, ModelAsked)]
        recorded = await recorded_requests(store, record)
        made = [
            _Request(record.request_id, event.step, blocks, each.request)
            for event, each in zip(asked, recorded, strict=True)
            if (blocks := reader.read(event)) is not None
        ]
        found = made + found
        record = await turn_before(store, record)
    return found


def _shown(request: ModelRequest, block: str) -> str:
    if block == "tools":
        told: Any = request.tools
    elif block.startswith("message "):
        place = int(block.removeprefix("message "))
        told = request.messages[place] if place < len(request.messages) else "(nothing)"
    else:
        told = request.system
    text = told if isinstance(told, str) else json.dumps(told)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
