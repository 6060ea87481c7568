"""Following a turn: any number of readers, and none is heard of again once it has left."""

from __future__ import annotations

import asyncio

from thinkwell.features.http_chat.tail import follow, last_chunks
from thinkwell.journal.turn_log import Owner, TurnLog
from thinkwell.journal.turns import TurnRecord
from thinkwell.turn.end.settle import SAFE_ERROR
from thinkwell.turn.handle import TurnHandle
from thinkwell.turn.tail import Tail

OWNER = Owner("a/x", 1)


def record(status: str = "accepted", **fields: object) -> TurnRecord:
    values = {"agent_id": "a/x", "request_id": "q", "trigger": "http-chat", "generation": 0}
    return TurnRecord(**{**values, "status": status, **fields})


def started() -> tuple[TurnHandle, TurnLog]:
    handle, log = TurnHandle(record()), TurnLog(OWNER, "q")
    handle.log_started(log)
    return handle, log


def write(log: TurnLog, *bodies: str) -> None:
    """Append chunks and make them durable."""
    log.bodies.extend(bodies)
    log.advance(len(log.bodies))


async def test_every_reader_hears_of_everything():
    """14.5: also those that came before the turn began"""
    handle = TurnHandle(record())

    async def read() -> list[str]:
        return [body async for batch in follow(handle) for body in batch]

    readers = [asyncio.ensure_future(read()) for _ in range(3)]
    await asyncio.sleep(0)
    log = TurnLog(OWNER, "q")
    handle.log_started(log)
    for body in ("1", "2"):
        await asyncio.sleep(0)
        write(log, body)
    handle.tell_end(record("completed"))
    async with asyncio.timeout(30):
        assert await asyncio.gather(*readers) == [["1", "2"]] * 3


async def test_listeners_of_a_handle_hear_until_they_are_disposed_of():
    handle, log = started()
    heard: list[str] = []
    leave_log = handle.on_log(lambda _: heard.append("log a"))
    handle.on_log(lambda _: heard.append("log b"))
    leave_end = handle.on_end(lambda: heard.append("end a"))
    handle.on_end(lambda: heard.append("end b"))
    assert heard == ["log a", "log b"]
    for leave in (leave_log, leave_end, leave_log):
        leave()
    handle.log_started(log)
    handle.tell_end(record("completed"))
    assert heard == ["log a", "log b", "log b", "end b"]


async def test_a_reader_that_left_listens_to_nothing():
    woken: list[bool] = []

    class Counting(Tail):
        def wake(self) -> None:
            woken.append(True)
            super().wake()

    handle, log = started()
    with Counting(handle) as tail:
        assert await anext(tail.moves()) is True
        write(log, "0")
    assert len(woken) == 2
    woken.clear()
    write(log, "1")
    handle.log_started(TurnLog(OWNER, "q"))
    handle.tell_end(record("completed"))
    handle.result.cancel()
    await asyncio.sleep(0)
    assert woken == []


async def test_silence_is_told_and_the_end_all_the_same():
    """14.2"""
    handle, log = started()
    with Tail(handle) as tail:
        moves = tail.moves(silence=0.001)
        assert await anext(moves) is True
        assert await anext(moves) is False
        write(log, "1")
        assert await anext(moves) is True
        handle.tell_end(record("completed"))
        assert [moved async for moved in moves] == [True]


def test_an_end_is_told_in_words_for_clients():
    """14.4"""
    assert last_chunks(record("completed")) == []
    assert last_chunks(record("aborted")) == [{"type": "abort"}]
    failed = record("error", error="secret")
    assert last_chunks(failed) == [{"type": "error", "errorText": SAFE_ERROR}]
