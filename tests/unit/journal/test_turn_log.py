"""A tail of a log sees every chunk once (DESIGN §1: replay, then follow)."""

from __future__ import annotations

import pytest

from thinkwell.core.errors import StoreError
from thinkwell.journal.turn_log import Owner, TurnLog


def make(*bodies: str) -> TurnLog:
    return TurnLog(Owner("a/x", 1), "t", bodies)


def tail(log: TurnLog) -> list[str]:
    """What a reader has: what is written now, and what it hears later."""
    seen = list(log.written_bodies())
    log.subscribe(lambda _first, bodies: seen.extend(bodies))
    return seen


def test_a_tail_has_no_gap_and_no_double_wherever_it_joins():
    log = make()
    tails = [tail(log)]
    for number in range(9):
        log.append(str(number))
        if number % 3 == 2:
            log.advance(number)  # one chunk stays behind, uncommitted
        tails.append(tail(log))
    log.advance(len(log.bodies))
    assert all(seen == [str(n) for n in range(9)] for seen in tails)


def test_listeners_hear_the_number_of_the_first_chunk():
    log = make("a", "b")
    heard: list[int] = []
    log.subscribe(lambda first, _bodies: heard.append(first))
    log.append("c")
    log.advance(3)
    log.append("d")
    log.append("e")
    log.advance(5)
    assert heard == [2, 3]


def test_a_commit_without_news_tells_nobody():
    log = make("a")
    heard: list[int] = []
    log.subscribe(lambda first, _bodies: heard.append(first))
    log.advance(1)
    assert heard == []


def test_a_disposed_listener_hears_nothing_and_may_be_disposed_again():
    log = make()
    seen: list[str] = []
    stop = log.subscribe(lambda _first, bodies: seen.extend(bodies))
    stop()
    stop()
    log.append("a")
    log.advance(1)
    assert seen == []


def test_a_listener_that_leaves_while_it_is_told_does_not_disturb_the_others():
    log = make()
    seen: list[str] = []
    stop = log.subscribe(lambda _first, _bodies: stop())
    log.subscribe(lambda _first, bodies: seen.extend(bodies))
    log.append("a")
    log.advance(1)
    assert seen == ["a"]


def test_a_restored_log_counts_its_chunks_as_written():
    log = make("a", "b")
    assert (log.written, log.written_bodies()) == (2, ["a", "b"])


def test_a_log_the_store_gave_up_takes_nothing_more():
    log = make()
    log.failure = StoreError("gone")
    with pytest.raises(StoreError, match="gone"):
        log.append("a")


def test_an_event_remembers_how_many_chunks_came_before_it():
    log = make("a")
    log.append_event("model", "{}")
    log.append("b")
    log.append_event("step", "{}")
    assert [(event.kind, event.seq) for event in log.events] == [("model", 1), ("step", 2)]
