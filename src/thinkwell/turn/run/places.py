"""Where a turn is, written down before it goes there (DESIGN §8.16).

Only from the second attempt on: the first costs nothing more. Then a place that kills the process
is on the turn's row when the next process looks. Leaving a place is not written: whoever enters the
next one writes the whole list, and what was left with progress does not count.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from inspect import isawaitable
from typing import Any

from thinkwell.journal.budget import hook_place
from thinkwell.journal.turns import mark_places
from thinkwell.store.base import Transaction
from thinkwell.turn.run.growth import Places
from thinkwell.turn.run.running import RunningTurn, current_turn

UNMARKED: AbstractAsyncContextManager[None] = nullcontext()
"""Stands in a first attempt, which keeps no record."""


def keep_record(turn: RunningTurn) -> None:
    """Another attempt begins: from now on the agent's hooks are places too."""
    turn.places = Places()
    turn.parts.hooks.registry.watch(watched_hook)


@asynccontextmanager
async def at(turn: RunningTurn, place: str) -> AsyncGenerator[None]:
    """Around code that may take the process down."""
    places = turn.places
    if places is None:
        yield
        return
    places.now = (*places.now, place)
    try:
        await _write(turn, places, place)
        yield
    finally:
        left = list(places.now)
        left.remove(place)  # once: parallel calls may be in the same hook
        places.now = tuple(left)


async def _write(turn: RunningTurn, places: Places, place: str) -> None:
    if place in places.written:
        return  # a hook that is called for every chunk

    async def write(tx: Transaction) -> tuple[str, ...]:
        now = tuple(dict.fromkeys(places.now))
        await mark_places(tx, turn.record, now)
        return now

    places.written = await turn.parts.commits.insist(turn.parts.owner, write)


async def mark(turn: RunningTurn, now: tuple[str, ...]) -> None:
    """Write down where a turn is, whatever is written there."""
    places = turn.places
    if places is None:
        return

    async def write(tx: Transaction) -> None:
        await mark_places(tx, turn.record, tuple(dict.fromkeys(now)))

    await turn.parts.commits.insist(turn.parts.owner, write)
    places.written = now


def watched_hook(event: str, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """A hook as the registry calls it: inside a turn that was begun again, in its place."""
    place = hook_place(event, name)

    def watched(*arguments: Any) -> Any:
        turn = current_turn.get()
        if turn is None or turn.places is None or not turn.active:
            return call(*arguments)
        return _inside(turn, place, lambda: call(*arguments))

    return watched


async def _inside(turn: RunningTurn, place: str, call: Callable[[], Awaitable[Any] | Any]) -> Any:
    async with at(turn, place):
        answer = call()
        return await answer if isawaitable(answer) else answer
