"""The collector leaves out what has survived it once, and looks at everything when nobody waits."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from thinkwell.cli import garbage
from thinkwell.cli.garbage import Garbage


class Knot:
    """Refers to itself: only the collector frees it."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture(autouse=True)
def unfrozen() -> Iterator[None]:
    yield
    gc.unfreeze()


def set_aside() -> weakref.ref[Any]:
    """A cycle that a full collection has seen alive, and that nobody can reach now."""
    knot = Knot()
    gc.collect()
    return weakref.ref(knot)


def test_what_survives_a_full_collection_is_not_looked_at_by_the_next():
    with Garbage(busy=lambda: True):
        gone = set_aside()
        gc.collect()
        assert gone() is not None
    gc.collect()
    assert gone() is None


def test_in_a_quiet_moment_everything_is_looked_through(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(garbage, "WORTH_A_LOOK", 0)
    busy = True
    with Garbage(busy=lambda: busy) as watched:
        gone = set_aside()
        watched.look()
        assert gone() is not None
        busy = False
        watched.look()
        assert gone() is None


def test_when_too_much_was_set_aside_nobody_waits_for_a_quiet_moment(
    monkeypatch: pytest.MonkeyPatch,
):
    with Garbage(busy=lambda: True) as watched:
        gone = set_aside()
        monkeypatch.setattr(garbage, "TOO_MANY", -gc.get_freeze_count())
        watched.look()
        assert gone() is None


def test_what_nobody_refers_to_is_freed_at_once_as_ever():
    with Garbage(busy=lambda: True):
        thing = type("Plain", (), {})()
        gc.collect()
        gone = weakref.ref(thing)
        del thing
        assert gone() is None
