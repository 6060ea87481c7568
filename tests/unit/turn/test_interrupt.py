"""Ending a wait when somebody asks to stop (spec/02 §1.7, §9.12)."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from thinkwell.core.errors import AbortTurn
from thinkwell.core.signal import AbortController
from thinkwell.core.tasks import is_cancelled
from thinkwell.core.visits import Guard, current_guard
from thinkwell.turn.run.interrupt import interruptible


async def wait_forever() -> None:
    await asyncio.Event().wait()


async def test_a_wait_ends_with_the_reason():
    stop = AbortController()
    asyncio.get_running_loop().call_soon(stop.abort, "enough")
    with pytest.raises(AbortTurn, match="enough"), interruptible(stop.signal):
        await wait_forever()
    assert not is_cancelled()


async def test_a_signal_that_was_aborted_before_ends_the_first_wait():
    stop = AbortController()
    stop.abort("before")
    with pytest.raises(AbortTurn, match="before"), interruptible(stop.signal):
        await wait_forever()


async def test_a_block_that_never_waits_is_not_interrupted():
    stop = AbortController()
    stop.abort("before")
    with interruptible(stop.signal):
        result = 1 + 1
    await asyncio.sleep(0)
    assert (result, is_cancelled()) == (2, False)


async def test_a_signal_that_comes_after_the_block_does_nothing():
    stop = AbortController()
    with interruptible(stop.signal):
        await asyncio.sleep(0)
    stop.abort("late")
    await asyncio.sleep(0)
    assert not is_cancelled()


async def test_a_block_that_stops_its_own_turn_is_interrupted_at_its_next_wait():
    stop, reached = AbortController(), list[str]()

    async def work() -> None:
        with interruptible(stop.signal):
            stop.abort("mine")
            reached.append("still here")
            await wait_forever()

    with pytest.raises(AbortTurn):
        await work()
    assert reached == ["still here"]


async def test_an_error_of_the_block_stays_what_it_is():
    stop = AbortController()
    with pytest.raises(ValueError, match="mine"), interruptible(stop.signal):
        raise ValueError("mine")


async def test_work_that_swallows_the_cancellation_goes_on():
    stop = AbortController()
    asyncio.get_running_loop().call_soon(stop.abort, "enough")
    swallowed = False
    with interruptible(stop.signal):
        try:
            await wait_forever()
        except asyncio.CancelledError:
            swallowed = True
    assert (swallowed, is_cancelled()) == (True, False)


async def test_work_that_ignores_the_cancellation_is_given_up_after_the_grace_of_the_guard():
    stop, lost, go_on = AbortController(), list[str](), asyncio.Event()

    def lose(what: str, _limit: float | None) -> None:
        lost.append(what)
        go_on.set()

    current_guard.set(Guard(stop.signal, limit=lambda: None, grace=lambda: 0.0, lost=lose))
    asyncio.get_running_loop().call_later(2.5, go_on.set)  # a grace that is not the guard's
    stop.abort("enough")

    async def ignores() -> None:
        while not go_on.is_set():
            with suppress(asyncio.CancelledError):
                await go_on.wait()

    with pytest.raises(asyncio.CancelledError), interruptible(stop.signal):
        await ignores()
    assert lost == ["the model call"]


async def test_a_cancellation_from_outside_stays_one():
    stop = AbortController()

    async def work() -> None:
        with interruptible(stop.signal):
            await wait_forever()

    task = asyncio.ensure_future(work())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_both_at_once_is_a_cancellation_because_the_host_stops():
    stop = AbortController()

    async def work() -> None:
        with interruptible(stop.signal):
            await wait_forever()

    task = asyncio.ensure_future(work())
    await asyncio.sleep(0)
    stop.abort("enough")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_cancelled_error_nobody_asked_for_is_left_alone():
    stop = AbortController()
    with pytest.raises(asyncio.CancelledError), interruptible(stop.signal):
        raise asyncio.CancelledError
