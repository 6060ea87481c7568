"""How a turn stands, for callers."""

from __future__ import annotations

from typing import Any

import msgspec

from thinkwell.journal.turns import StopReason, Trigger, TurnRecord, TurnStatus
from thinkwell.messages.usage import Usage


class TurnInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A view of a turn's row."""

    request_id: str
    trigger: Trigger
    status: TurnStatus
    attempt: int
    """How often it was begun: more than 1 after a crash."""
    error: str | None
    stop_reason: StopReason | None
    message_id: str | None
    """The id of its reply, once it has begun."""
    idempotency_key: str | None
    metadata: dict[str, Any] | None
    usage: Usage
    steps: int
    cancel_requested: str | None
    created_at: float
    started_at: float | None
    settled_at: float | None

    @classmethod
    def from_record(cls, record: TurnRecord) -> TurnInfo:
        """The view of a row."""
        return cls(**{name: getattr(record, name) for name in cls.__struct_fields__})
