"""How the journal of an ended turn is stored: one row, with two columns that are read alone.

Stored format 1 (`packed_journals.format`), change only with a new number:

- `stream`: the chunks as one JSON array, byte for byte as they were told. A chunk's number is its
  place in the array.
- `events`: what else the journal held, as a JSON array of `[kind, seq, body]` in the order it
  happened; `seq` says how many chunks stand before it. `journal/events.py` names the kinds.

A column longer than `WORTH_IT` bytes is deflated (raw, no header) behind the byte `DEFLATED`; a
JSON array begins with `[`, so the first byte tells the two apart. Format 0 is older: the chunks
as JSON text in `chunks`, no events.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence

import msgspec

from thinkwell.journal.turn_log import KEPT, LogEvent, TurnLog
from thinkwell.journal.turns import TurnRecord
from thinkwell.store.base import Transaction

FORMAT = 1
DEFLATED = b"\x01"
WORTH_IT = 512
"""Bytes from which on a column is compressed: a short turn pays nothing for it."""
TOO_LONG = 1024 * 1024
"""Bytes from which on it is not: the transaction that ends a turn must not hold up the others."""
_WINDOW, _MEMORY = -13, 6
"""An eighth of zlib's usual tables. Setting those up costs four times what compressing a turn of
200 deltas does (60 µs against 15), and the result is as small: chunks repeat what stands just
before them.
"""

_raw_list = msgspec.json.Decoder(list[msgspec.Raw])
_event_list = msgspec.json.Decoder(list[tuple[str, int, msgspec.Raw]])


async def pack_journal(
    tx: Transaction, record: TurnRecord, turn_log: TurnLog, *, now: float, hidden: bool = True
) -> None:
    """Keep the whole journal in one row; without chunks nobody was to see unless `hidden`."""
    left_out = (KEPT,) if hidden else (KEPT, "hidden")
    events = [event for event in turn_log.events if event.kind not in left_out]
    await tx.execute(
        "pack_journal",
        {
            "agent": record.agent_id,
            "turn": record.request_id,
            "settled_at": now,
            "format": FORMAT,
            "stream": pack_stream(turn_log.bodies),
            "events": pack_events(events),
        },
    )


def pack_stream(bodies: Iterable[str]) -> bytes:
    """The column `stream` of these chunks."""
    return _squeeze(f"[{','.join(bodies)}]".encode())


def unpack_stream(column: bytes) -> list[str]:
    """The chunks in a column `stream`, each as its JSON text."""
    return split_array(_expand(column))


def pack_events(events: Iterable[LogEvent]) -> bytes:
    """The column `events` of these events. Kinds are our own words and need no escaping."""
    parts = [f'["{event.kind}",{event.seq},{event.body}]' for event in events]
    return _squeeze(f"[{','.join(parts)}]".encode())


def unpack_events(column: bytes) -> Sequence[LogEvent]:
    """The events in a column `events`, oldest first."""
    return [
        LogEvent(kind, seq, bytes(body).decode())
        for kind, seq, body in _event_list.decode(_expand(column))
    ]


def split_array(text: str | bytes) -> list[str]:
    """The items of a JSON array, each as its own text."""
    return [bytes(raw).decode() for raw in _raw_list.decode(text)]


def _squeeze(data: bytes) -> bytes:
    if not WORTH_IT <= len(data) < TOO_LONG:
        return data
    squeezer = zlib.compressobj(1, zlib.DEFLATED, _WINDOW, _MEMORY)
    return DEFLATED + squeezer.compress(data) + squeezer.flush()


def _expand(column: bytes) -> bytes:
    return zlib.decompress(column[1:], -15) if column[:1] == DEFLATED else column
