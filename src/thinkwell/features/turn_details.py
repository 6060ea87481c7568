"""How an answer was made: steps, tokens, times. For people who look at a conversation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from thinkwell.hooks.feature import Feature
from thinkwell.hooks.rpc import rpc
from thinkwell.journal.turns import TurnRecord, TurnStatus
from thinkwell.messages.usage import Usage


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


class TurnFacts(Feature):
    """Facts about the turns behind a message."""

    name = "turn_details"

    def calls(self) -> Mapping[str, Callable[..., Any]]:
        """What clients may call."""
        return {"getTurnDetails": self.get}

    @rpc(read_only=True)
    async def get(self, message_id: str) -> TurnDetails | None:
        """How an answer was made; None for a message no turn wrote."""
        records = await self.kit.turns_of(message_id)
        if not records:
            return None
        times = await self.kit.call_times([record.request_id for record in records])
        now = self.kit.clock.now()
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
