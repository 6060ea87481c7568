"""Following a turn: any number of readers, and none is heard of again once it has left."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from thinkwell.core.errors import HostClosedError
from thinkwell.features.http_chat.tail import batches, last_chunks
from thinkwell.journal.tail import Chunks, Ended, Started, TailEvent, Updated
from thinkwell.journal.turn_log import Owner, TurnLog
from thinkwell.journal.turns import TurnRecord
from thinkwell.messages.message import user_message
from thinkwell.turn.end.end_turn import SAFE_ERROR
from thinkwell.turn.handle import TurnHandle

OWNER = Owner("a/x", 1)


def record(status: str = "accepted", **fields: object) -> TurnRecord:
    values = {"agent_id": "a/x", "request_id": "q", "trigger": "http-chat", "generation": 0}
    return TurnRecord(**{**values, "status": status, **fields})


def started(*bodies: str) -> tuple[TurnHandle, TurnLog]:
    handle, log = TurnHandle(record()), TurnLog(OWNER, "q", bodies)
    handle.begin(log)
    return handle, log


def write(log: TurnLog, *bodies: str) -> None:
    """Append chunks and make them durable."""
    log.bodies.extend(bodies)
    events, log.events_written = log.events[log.events_written :], len(log.events)
    log.advance(len(log.bodies), events)


def listen(handle: TurnHandle, start: int = 0) -> list[TailEvent]:
    heard: list[TailEvent] = []
    handle.follow(heard.append, start)
    return heard


DONE = Ended(record("completed"))


async def test_every_reader_hears_of_everything():
    """14.5: also those that came before the turn began"""
    handle = TurnHandle(record())

    async def read() -> list[str]:
        found = [batch async for batch in batches(handle.tail())]
        assert found.pop() == DONE.record
        return [body for batch in found if not isinstance(batch, TurnRecord) for body in batch]

    readers = [asyncio.ensure_future(read()) for _ in range(3)]
    await asyncio.sleep(0)
    log = TurnLog(OWNER, "q")
    handle.begin(log)
    for body in ("1", "2"):
        await asyncio.sleep(0)
        write(log, body)
    await handle.end(DONE)
    async with asyncio.timeout(30):
        assert await asyncio.gather(*readers) == [["1", "2"]] * 3


async def test_a_tail_has_no_gap_and_no_double_wherever_it_joins():
    """DESIGN §1: replay, then follow"""
    handle = TurnHandle(record())
    heard = [listen(handle)]
    log = TurnLog(OWNER, "q")
    handle.begin(log)
    for number in range(9):
        log.append(str(number))
        if number % 3 == 2:
            log.advance(number)  # one chunk stays behind, uncommitted
        heard.append(listen(handle))
    log.advance(len(log.bodies))
    await handle.end(DONE)
    heard.append(listen(handle))
    for events in heard:
        assert isinstance(events[0], Started)
        assert events[-1] == DONE
        batches = [event for event in events if isinstance(event, Chunks)]
        assert [body for batch in batches for body in batch.bodies] == [*map(str, range(9))]
        assert [batch.first for batch in batches[1:]] == [batch.upto for batch in batches[:-1]]


async def test_a_reader_may_begin_at_any_chunk():
    handle, log = started("0", "1", "2")
    heard = listen(handle, start=2)
    write(log, "3")
    assert heard == [Started(record(), 3), Chunks(2, ["2"]), Chunks(3, ["3"])]


async def test_the_place_where_an_answer_is_complete_is_told_to_all():
    handle, log = started()
    heard = listen(handle)
    write(log, "text")
    log.append_event("model", "{}")
    write(log)
    write(log, "tool")
    assert heard[1:] == [Chunks(0, ["text"]), Chunks(1, [], (1,)), Chunks(1, ["tool"])]
    assert listen(handle)[1:] == [Chunks(0, ["text", "tool"], (1,))]


async def test_a_message_that_changes_beside_the_stream_is_told_in_its_place():
    handle, log = started()
    heard = listen(handle)
    write(log, "0")
    handle.tell(Updated(user_message("m", "hi")))
    assert heard[1:] == [Chunks(0, ["0"]), Updated(user_message("m", "hi"))]


async def test_a_reader_that_left_hears_nothing_and_may_leave_again():
    handle, log = started()
    heard: list[TailEvent] = []
    leave = handle.follow(heard.append)
    leave()
    leave()
    write(log, "1")
    await handle.end(DONE)
    assert heard == [Started(record())]


async def test_a_reader_that_leaves_while_it_is_told_does_not_disturb_the_others():
    handle, log = started()
    leave = handle.follow(lambda event: leave() if isinstance(event, Chunks) else None)
    heard = listen(handle)
    write(log, "a")
    assert heard[1:] == [Chunks(0, ["a"])]


async def test_an_end_waits_for_what_a_reader_still_has_to_do():
    """DESIGN §1: then frames, then the slot is free"""
    handle, _ = started()
    order: list[str] = []

    async def send() -> None:
        await asyncio.sleep(0)
        order.append("sent")

    handle.follow(lambda event: send() if isinstance(event, Ended) else None)
    handle.follow(lambda event: order.append("heard") if isinstance(event, Ended) else None)
    await handle.end(DONE)
    assert order == ["sent", "heard"]


async def test_chunks_that_wait_for_a_slow_reader_come_together():
    handle, log = started()
    async with aclosing(handle.tail()) as tail:
        assert await anext(tail) == Started(record())
        write(log, "0")
        write(log, "1")
        handle.tell(Updated(user_message("m", "hi")))
        write(log, "2")
        told = [await anext(tail) for _ in range(3)]
    assert told == [Chunks(0, ["0", "1"]), Updated(user_message("m", "hi")), Chunks(2, ["2"])]


async def test_a_tail_from_a_negative_chunk_is_refused():
    """Python counts from the end there, and the chunks would bear wrong numbers."""
    handle, _ = started("0", "1")
    with pytest.raises(ValueError, match="start must not be negative, not -1"):
        listen(handle, -1)


async def test_silence_is_told_and_the_end_all_the_same():
    """14.2"""
    handle, log = started()
    async with aclosing(handle.tail(silence=0.001)) as tail:
        assert await anext(tail) == Started(record())
        assert await anext(tail) == Chunks(0)
        write(log, "1")
        assert await anext(tail) == Chunks(0, ["1"])
        await handle.end(DONE)
        assert [event async for event in tail] == [DONE]


async def test_an_app_that_stops_frees_its_readers_and_whoever_waits():
    handle, log = started("0")
    heard, stopped = listen(handle), HostClosedError("stopping")
    over_http = batches(handle.tail())
    assert await anext(over_http) == ["0"]
    handle.release(stopped)
    assert heard[-1] == Ended(record(), failure=stopped)
    with pytest.raises(HostClosedError):
        await handle.wait()
    with pytest.raises(HostClosedError):
        await anext(over_http)
    write(log, "1")  # it may still end while its sockets are open
    await handle.end(DONE)
    assert heard[-2:] == [Chunks(1, ["1"]), DONE]


def test_an_end_is_told_in_words_for_clients():
    """14.4"""
    assert last_chunks(record("completed")) == []
    assert last_chunks(record("aborted")) == [{"type": "abort"}]
    failed = record("error", error="secret")
    assert last_chunks(failed) == [{"type": "error", "errorText": SAFE_ERROR}]
