"""What clients of every chat agent may call beside chatting: branches, and facts about turns."""

from __future__ import annotations

import msgspec

from thinkwell.agent.rpc import CHOOSES_BRANCH
from thinkwell.core.errors import SessionError, TurnActiveError
from thinkwell.hooks.rpc import rpc
from thinkwell.journal.ledger import call_times
from thinkwell.journal.turns import TurnRecord, TurnStatus, turns_of_message, unsettled_turns
from thinkwell.messages.message import UIMessage
from thinkwell.messages.usage import Usage
from thinkwell.messages.visible import visible_message
from thinkwell.session.session import Session
from thinkwell.store.base import Transaction
from thinkwell.turn.turns import Turns


class ToolTime(msgspec.Struct, frozen=True, rename="camel"):
    """How long a tool call took."""

    duration_ms: float


class TurnDetails(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What is known about how an answer was made; continuations are counted in."""

    request_id: str
    """The turn that wrote it last."""
    status: TurnStatus
    steps: int
    usage: Usage
    started_at: float | None
    duration_ms: float
    """Time in which its turns ran, without the time between them."""
    tools: dict[str, ToolTime]
    """By call id."""


class ClientCalls:
    """Calls that come with every chat agent."""

    session: Session
    _turns: Turns

    @rpc(name="getBranches", read_only=True)
    async def get_branches(self, message_id: str | None = None) -> list[UIMessage]:
        """The alternatives below a message, oldest first; None gives those of the beginning."""
        return [visible_message(m) for m in await self.session.get_branches(message_id)]

    @rpc(name=CHOOSES_BRANCH)
    async def set_active_leaf(self, message_id: str) -> None:
        """Go on from the newest message below this one; every client shows that branch."""
        parts = self._turns.parts
        await parts.commits.run(parts.owner, lambda tx: self._choose(tx, message_id))
        await parts.audience.send_transcript()
        self._turns.changed()

    async def _choose(self, tx: Transaction, message_id: str) -> None:
        if await unsettled_turns(tx, self._turns.parts.owner.agent_id):
            raise TurnActiveError("set_active_leaf")
        newest = await self.session.history.newest_below(message_id, tx)
        if newest is None:
            raise SessionError(
                f"No message has the id {message_id!r}, so it cannot be the active leaf."
            )
        await self.session.pin(tx, newest.id)

    @rpc(name="getTurnDetails", read_only=True)
    async def get_turn_details(self, message_id: str) -> TurnDetails | None:
        """How an answer was made; None for a message no turn wrote."""
        parts = self._turns.parts
        records = await turns_of_message(parts.store, parts.owner.agent_id, message_id)
        if not records:
            return None
        turns = [record.request_id for record in records]
        times = await call_times(parts.store, parts.owner.agent_id, turns)
        now = parts.clock.now()
        return TurnDetails(
            request_id=records[-1].request_id,
            status=records[-1].status,
            steps=sum(record.steps for record in records),
            usage=sum((record.usage for record in records), start=Usage()),
            started_at=records[0].started_at,
            duration_ms=sum(_ran_for(record, now) for record in records) * 1000,
            tools={call: ToolTime(seconds * 1000) for call, seconds in times.items()},
        )


def _ran_for(record: TurnRecord, now: float) -> float:
    if record.started_at is None:
        return 0.0
    return (now if record.settled_at is None else record.settled_at) - record.started_at
