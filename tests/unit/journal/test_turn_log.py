"""A tail of a log sees every chunk once (DESIGN §1: replay, then follow)."""

from __future__ import annotations

import pytest

from thinkwell.core.errors import StoreError
from thinkwell.journal.turn_log import Owner, TurnLog


def make(*bodies: str) -> TurnLog:
    return TurnLog(Owner("a/x", 1), "t", bodies)


def listen(log: TurnLog) -> list[tuple[int, list[str]]]:
    """What is told of each commit: the number of the first chunk, and the chunks."""
    heard: list[tuple[int, list[str]]] = []
    log.told = lambda first, bodies, _events: heard.append((first, list(bodies)))
    return heard


def test_the_number_of_the_first_chunk_is_told():
    log = make("a", "b")
    heard = listen(log)
    log.append("c")
    log.advance(3)
    log.append("d")
    log.append("e")
    log.advance(5)
    assert heard == [(2, ["c"]), (3, ["d", "e"])]


def test_a_commit_without_news_tells_nobody():
    log = make("a")
    heard = listen(log)
    log.advance(1)
    assert heard == []


def test_an_event_is_told_without_new_chunks_too():
    log = make("a")
    heard = listen(log)
    log.append_event("model", "{}")
    log.advance(1, log.events)
    assert heard == [(1, [])]


def test_a_restored_log_counts_its_chunks_as_written():
    log = make("a", "b")
    assert (log.written, log.bodies) == (2, ["a", "b"])


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
