"""The stream of a turn as clients meet it: one that runs, one that is over, and their frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from thinkwell.core import json
from thinkwell.journal.turns import TurnRecord
from thinkwell.wire import encode

START_STEP = json.dumps({"type": "start-step"})


class TerminalRecord(msgspec.Struct, frozen=True):
    """The error the last turn ended with; told to whoever connects until the next turn."""

    request_id: str
    text: str


class Recovery(msgspec.Struct, frozen=True):
    """Whether a turn that was cut is still to go on (spec/01 §12.1)."""

    request_id: str
    pending: bool

    def frame(self) -> str:
        """How clients are told."""
        return encode.chat_recovering(self.pending, self.request_id)


def end_frame(record: TurnRecord, error: str | None, *, replay: bool = False) -> str:
    """How a stream ended, for its readers."""
    if error is not None:
        return encode.error_done(
            record.request_id,
            error,
            message_ids=record.message_ids,
            continuation=record.continuation,
        )
    return encode.done(
        record.request_id,
        message_ids=record.message_ids,
        outcome=record.status,  # pyright: ignore[reportArgumentType] - the turn is settled
        continuation=record.continuation,
        replay=replay,
    )


def replay(record: TurnRecord, bodies: Mapping[int, str]) -> list[str]:
    """Chunks by their numbers, for one reader."""
    return [
        encode.replay_chunk(record.request_id, body, seq, continuation=record.continuation)
        for seq, body in bodies.items()
    ]


def news(bodies: Sequence[str]) -> dict[int, str]:
    """The chunks of a continuation for a client that was shown the transcript just now.

    Before its first step it tells the outcomes of earlier calls: the transcript has them, and in a
    message that begins anew their cards would stand a second time.
    """
    first_step = bodies.index(START_STEP) if START_STEP in bodies else 0
    return {seq: body for seq, body in enumerate(bodies) if seq == 0 or seq >= first_step}
