"""What is kept of an ended turn's journal, byte for byte, and small (DESIGN §5)."""

from __future__ import annotations

import pytest

from thinkwell.core.errors import StoreError
from thinkwell.journal.packing import (
    DEFLATED,
    TOO_LONG,
    pack_events,
    pack_stream,
    unpack_events,
    unpack_stream,
)
from thinkwell.journal.reading import packed_journal
from thinkwell.journal.turn_log import LogEvent

SHORT = ['{"type":"start"}', '{"type":"text-delta","id":"t","delta":"héllo 😀"}']


def deltas(count: int) -> list[str]:
    return [f'{{"type":"text-delta","id":"text-0","delta":"word {i} "}}' for i in range(count)]


@pytest.mark.parametrize("bodies", [[], SHORT, deltas(200), deltas(40_000)])
def test_chunks_come_back_byte_for_byte_in_their_places(bodies: list[str]):
    assert unpack_stream(pack_stream(bodies)) == bodies


def test_a_short_stream_is_kept_as_it_is():
    assert pack_stream(SHORT) == f"[{','.join(SHORT)}]".encode()


def test_a_stream_of_200_deltas_takes_a_tenth():
    plain = sum(map(len, deltas(200)))
    packed = pack_stream(deltas(200))
    assert packed[:1] == DEFLATED
    assert len(packed) < plain / 10


def test_a_stream_that_would_take_long_to_compress_is_kept_as_it_is():
    long = ['{"delta":"%s"}' % ("x" * TOO_LONG)]
    assert len(pack_stream(long)) > TOO_LONG


def test_events_come_back_in_order_with_their_places():
    events = [LogEvent("attempt", 0, '{"attempt":1}'), LogEvent("model", 3, '{"a":[1,"]"]}')]
    assert unpack_events(pack_events(events)) == events


def test_a_row_of_an_older_release_has_its_chunks_and_no_events():
    row = {"format": 0, "chunks": f"[{','.join(SHORT)}]", "stream": None, "events": None}
    journal = packed_journal(row)
    assert (list(journal.bodies), journal.events) == (SHORT, ())


def test_a_row_of_a_newer_release_is_refused():
    row = {"format": 7, "chunks": "", "stream": b"[]", "events": b"[]"}
    with pytest.raises(StoreError, match="format 7"):
        packed_journal(row)
