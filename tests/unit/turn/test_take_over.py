"""Turns found at a start begin a few at a time, and live ones go first (spec/04 §1.3)."""

from __future__ import annotations

import asyncio

from thinkwell.turn.line.take_over import ROUNDS, TakeOver


async def settle() -> None:
    for _ in range(5 * ROUNDS):
        await asyncio.sleep(0)


async def begin(over: TakeOver, begun: list[int], number: int, moved: asyncio.Event) -> None:
    ticket = over.ticket()
    while not ticket.holds:
        moved.clear()
        await ticket.enter(moved, hurry=False)
    begun.append(number)


async def test_only_so_many_begin_at_once_and_each_that_has_begun_lets_one_more():
    over, begun = TakeOver(at_once=2), list[int]()
    async with asyncio.TaskGroup() as tasks:
        for number in range(5):
            tasks.create_task(begin(over, begun, number, asyncio.Event()))
        for expected in (2, 3, 4, 5):
            await settle()
            assert len(begun) == expected
            over.leave()
    assert (begun, over.running) == ([0, 1, 2, 3, 4], 5)


async def test_one_that_somebody_waits_for_needs_no_place():
    over = TakeOver(at_once=0)
    ticket = over.ticket()
    await ticket.enter(asyncio.Event(), hurry=True)
    assert ticket.holds
    ticket.ended()
    assert (ticket.holds, over.running) == (False, 0)


async def test_a_change_in_the_line_ends_the_wait_for_a_place():
    over, moved = TakeOver(at_once=0), asyncio.Event()
    ticket = over.ticket()
    async with asyncio.TaskGroup() as tasks:
        waits = tasks.create_task(ticket.enter(moved, hurry=False))
        await settle()
        assert not waits.done()
        moved.set()
    assert not ticket.holds


async def test_live_turns_have_the_loop_between_two_that_begin():
    rounds = 0

    def live() -> int:
        nonlocal rounds
        rounds += 1
        return 1

    over = TakeOver(live)
    await over.ticket().enter(asyncio.Event(), hurry=False)
    assert rounds == ROUNDS


async def test_those_taken_over_are_not_live_themselves():
    over = TakeOver(lambda: 1)
    over.running = 1
    ticket = over.ticket()
    await ticket.enter(asyncio.Event(), hurry=False)
    assert ticket.holds


async def test_a_place_nobody_wants_is_offered_to_the_next():
    over, begun = TakeOver(at_once=1), list[int]()
    first, stopped, moved = over.ticket(), over.ticket(), asyncio.Event()
    await first.enter(asyncio.Event(), hurry=False)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(stopped.enter(moved, hurry=False))
        await settle()
        tasks.create_task(begin(over, begun, 1, asyncio.Event()))
        await settle()
        first.leave()  # calls the one that was stopped, which goes without it
        stopped.ended()
    assert begun == [1]
