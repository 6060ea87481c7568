"""Chunks of all agents share commits, and are told only afterwards (DESIGN §5)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

import pytest

from tests.turns.support import fail_next_commit
from tests.unit.journal.conftest import Bench
from thinkwell.core import json
from thinkwell.core.errors import OwnershipLostError, StoreError, StoreUnavailableError
from thinkwell.journal.asked import if_not_stored
from thinkwell.journal.group_commit import CAP, JOINED, MOST_TOGETHER, WINDOW
from thinkwell.journal.turn_log import LogEvent, Owner, TurnLog
from thinkwell.store.ownership import UNBORN


def listen(log: TurnLog) -> list[tuple[int, list[int]]]:
    """What a reader hears: the number of the first chunk, and the chunks."""
    heard: list[tuple[int, list[int]]] = []

    def hear(first: int, bodies: Sequence[str], _events: object) -> None:
        heard.append((first, [int(json.loads(body)["type"]) for body in bodies]))

    log.told = hear
    return heard


class TestTelling:
    async def test_a_chunk_is_told_once_its_commit_is_done(self, bench: Bench):
        log = await bench.log()
        heard = listen(log)
        bench.say(log, 1, 2)
        assert (heard, log.written) == ([], 0)
        await bench.commits.flush()
        assert heard == [(0, [1, 2])]
        assert await bench.chunks(log) == [1, 2]

    async def test_chunks_that_come_during_a_commit_are_told_by_the_next(self, bench: Bench):
        log = await bench.log()
        heard = listen(log)
        bench.say(log, 1)

        async def work(tx: Any) -> None:
            bench.say(log, 2)

        await bench.commits.run(log.owner, work)
        bench.say(log, 3)
        await bench.commits.flush()
        assert heard == [(0, [1, 2]), (2, [3])]
        assert await bench.chunks(log) == [1, 2, 3]

    async def test_commits_beside_each_other_write_every_chunk_once_and_in_order(
        self, bench: Bench
    ):
        log, other = await bench.log("x"), await bench.log("y")
        heard = listen(log)

        async def keep_committing() -> None:
            for _ in range(20):
                await bench.commits.run(other.owner, _nothing)

        async def keep_talking() -> None:
            for number in range(60):
                bench.say(log, number)
                await asyncio.sleep(0)

        await asyncio.gather(keep_committing(), keep_committing(), keep_talking())
        await bench.commits.flush()
        assert await bench.chunks(log) == list(range(60))
        assert [number for _, numbers in heard for number in numbers] == list(range(60))

    async def test_an_event_is_stored_after_the_chunks_before_it_and_never_told(self, bench: Bench):
        log = await bench.log()
        heard = listen(log)
        bench.say(log, 1)
        log.append_event("model", '{"stepNumber":0}')
        bench.say(log, 2)
        await bench.commits.flush()
        assert sorted(kind for kind, _ in await bench.rows(log)) == ["chunks", "model"]
        assert heard == [(0, [1, 2])]
        assert log.all_written

    async def test_an_event_that_comes_during_a_commit_is_not_lost(self, bench: Bench):
        log, other = await bench.log("x"), await bench.log("y")
        bench.say(log, 1)
        committing = asyncio.ensure_future(bench.commits.run(other.owner, _nothing))
        for _ in range(12):
            log.append_event("model", "{}")
            bench.commits.note(log)
            await asyncio.sleep(0)
        await committing
        await bench.commits.flush()
        kinds = [kind for kind, _ in await bench.rows(log)]
        assert kinds.count("model") == 12


class TestFigures:
    """What metrics read of it (spec/04 §17)."""

    async def test_the_lag_is_that_of_the_oldest_chunk(self, bench: Bench):
        log = await bench.log()
        figures = bench.commits.figures
        chunks, commits, lags = figures.chunks, figures.durations.counts[:], figures.lags.counts[:]
        bench.say(log, 1)
        bench.clock.time += 0.75
        bench.say(log, 2)
        bench.clock.time += 0.25
        await bench.commits.flush()
        assert figures.chunks == chunks + 2
        assert sum(figures.durations.counts) == sum(commits) + 1
        assert (sum(figures.lags.counts), figures.lags.total) == (sum(lags) + 1, 1.0)

    async def test_a_chunk_that_came_during_a_commit_has_waited_since_it_began(self, bench: Bench):
        log = await bench.log()

        async def work(tx: Any) -> None:
            bench.clock.time += 0.5
            bench.say(log, 1)

        await bench.commits.run(log.owner, work)
        bench.clock.time += 1.0
        await bench.commits.flush()
        assert bench.commits.figures.durations.total == 0.5
        assert bench.commits.figures.oldest is None


class TestGroups:
    async def test_several_agents_share_one_transaction(self, bench: Bench):
        logs = [await bench.log(name) for name in "xyz"]
        before = bench.store.commits
        for log in logs:
            bench.say(log, 1)
        await _until_written(logs[-1], 1)
        assert bench.store.commits == before + 1
        assert [await bench.chunks(log) for log in logs] == [[1]] * 3

    async def test_a_lost_agent_is_left_out_and_the_others_commit(self, bench: Bench):
        lost, kept = await bench.log("lost"), await bench.log("kept")
        heard = listen(lost)
        await bench.owner("lost")  # somebody else claims it
        bench.say(lost, 1)
        bench.say(kept, 1)
        await bench.commits.flush()
        assert (await bench.chunks(lost), await bench.chunks(kept), heard) == ([], [1], [])
        with pytest.raises(OwnershipLostError):
            lost.append("2")

    async def test_work_of_a_lost_agent_raises_and_writes_nothing(self, bench: Bench):
        log = await bench.log("lost")
        await bench.owner("lost")
        ran: list[Any] = []

        async def work(tx: Any) -> None:
            ran.append(tx)

        with pytest.raises(OwnershipLostError):
            await bench.commits.run(log.owner, work)
        assert ran == []

    async def test_work_that_fails_loses_no_chunk_of_others(self, bench: Bench):
        log, other = await bench.log("x"), await bench.log("y")
        bench.say(log, 1)

        async def work(tx: Any) -> None:
            await tx.execute("set_agent_state", {"id": "a/y", "state": "1"})
            raise ValueError("no")

        with pytest.raises(ValueError, match="no"):
            await bench.commits.run(other.owner, work)
        await bench.commits.flush()
        assert await bench.chunks(log) == [1]
        row = await bench.store.fetch_one("agent_row", {"id": "a/y"})
        assert row is not None
        assert row["state"] is None

    async def test_works_asked_for_in_one_iteration_share_one_transaction(self, bench: Bench):
        owners = [await bench.owner(name) for name in "xyz"]
        before = bench.store.commits
        done = await asyncio.gather(
            *(bench.commits.run(owner, _set_state(owner, "1")) for owner in owners)
        )
        assert (bench.store.commits, done) == (before + 1, ["1", "1", "1"])
        assert [await _state(bench, owner) for owner in owners] == ["1", "1", "1"]

    async def test_an_urgent_work_waits_for_others_only_if_somebody_else_has_just_written(
        self, bench: Bench
    ):
        owners = [await bench.owner(name) for name in "xyz"]
        commits: list[int] = []
        for moment in (0.0, 0.0, 2 * JOINED):
            bench.clock.time += moment
            before = bench.store.commits
            works = (
                bench.commits.run(owner, _set_state(owner, "1"), at_once=True) for owner in owners
            )
            await asyncio.gather(*works)
            commits.append(bench.store.commits - before)
        assert commits == [2, 1, 2]

    async def test_so_does_one_that_belongs_to_no_agent_after_several_have_written(
        self, bench: Bench
    ):
        x, y = await bench.owner("x"), await bench.owner("y")
        bench.clock.time += 2 * JOINED
        await asyncio.gather(*(bench.commits.run(each, _set_state(each, "1")) for each in (x, y)))
        before = bench.store.commits
        await asyncio.gather(
            bench.commits.run(None, _set_state(x, "2"), at_once=True),
            bench.commits.run(y, _set_state(y, "2"), at_once=True),
        )
        assert bench.store.commits == before + 1

    async def test_so_many_works_that_they_would_hold_up_the_loop_take_several(self, bench: Bench):
        owners = [await bench.owner(str(number)) for number in range(2 * MOST_TOGETHER + 1)]
        before = bench.store.commits
        await asyncio.gather(
            *(bench.commits.run(owner, _set_state(owner, "1")) for owner in owners)
        )
        assert bench.store.commits == before + 3
        assert {await _state(bench, owner) for owner in owners} == {"1"}

    async def test_a_work_that_fails_takes_none_of_the_others_with_it(self, bench: Bench):
        first, bad, last = [await bench.owner(name) for name in "xyz"]
        undone: list[str] = []

        async def fails(tx: Any) -> None:
            await tx.execute("set_agent_state", {"id": bad.agent_id, "state": "1"})
            if_not_stored(lambda: undone.append("bad"))
            raise ValueError("no")

        outcomes = await asyncio.gather(
            bench.commits.run(first, _set_state(first, "1")),
            bench.commits.insist(bad, fails),
            bench.commits.run(last, _set_state(last, "1")),
            return_exceptions=True,
        )
        assert [str(each) for each in outcomes] == ["1", "no", "1"]
        assert undone == ["bad"]
        states = [await _state(bench, owner) for owner in (first, bad, last)]
        assert states == ["1", None, "1"]

    async def test_of_two_owners_of_one_agent_the_older_one_writes_nothing(self, bench: Bench):
        older, newer = await bench.owner("x"), await bench.owner("x")
        outcomes = await asyncio.gather(
            bench.commits.run(older, _set_state(older, '"older"')),
            bench.commits.run(newer, _set_state(newer, '"newer"')),
            return_exceptions=True,
        )
        assert isinstance(outcomes[0], OwnershipLostError)
        assert await _state(bench, newer) == '"newer"'

    async def test_of_two_who_saw_no_row_the_first_to_write_owns_the_agent(self, bench: Bench):
        """As two processes would: neither knows of the other, and no row says who is newer."""
        first, second = Owner("a/new", UNBORN), Owner("a/new", UNBORN)
        await bench.commits.run(first, _set_state(first, '"first"'))
        with pytest.raises(OwnershipLostError):
            await bench.commits.run(second, _set_state(second, '"second"'))
        await bench.commits.run(first, _set_state(first, '"again"'))
        assert await _state(bench, first) == '"again"'

    async def test_a_birth_that_is_not_stored_can_be_tried_again(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ):
        owner = Owner("a/new", UNBORN)
        fail_next_commit(monkeypatch)
        with pytest.raises(StoreUnavailableError):
            await bench.commits.run(owner, _set_state(owner, "1"))
        await bench.commits.insist(owner, _set_state(owner, "2"))
        assert await _state(bench, owner) == "2"

    async def test_a_work_sees_the_context_of_whoever_asked_for_it(self, bench: Bench):
        said: ContextVar[str] = ContextVar("said", default="nothing")

        async def ask(name: str) -> str:
            said.set(name)

            async def work(tx: Any) -> str:
                await tx.fetch_one("agent_row", {"id": "a/x"})
                return said.get()

            return await bench.commits.run(await bench.owner(name), work)

        tasks = [asyncio.create_task(ask(name)) for name in "xyz"]
        assert [await task for task in tasks] == ["x", "y", "z"]

    async def test_work_takes_what_waits_along(self, bench: Bench):
        log, other = await bench.log("x"), await bench.log("y")
        bench.say(log, 1)
        await bench.commits.run(other.owner, _nothing)
        assert log.written == 1

    async def test_a_turn_that_ends_in_the_next_iteration_takes_its_chunks_along(
        self, bench: Bench
    ):
        log = await bench.log()
        heard = listen(log)
        bench.say(log, 1)
        await asyncio.sleep(0)
        await bench.commits.insist(log.owner, lambda _: _say(bench, log, 2), at_once=True)
        assert heard == [(0, [1, 2])]

    async def test_a_cancelled_caller_leaves_a_whole_commit_behind(self, bench: Bench):
        log = await bench.log()
        heard = listen(log)

        async def work(tx: Any) -> None:
            bench.say(log, 1)
            await asyncio.sleep(0)

        task = asyncio.ensure_future(bench.commits.run(log.owner, work))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (heard, await bench.chunks(log)) == ([(0, [1])], [1])


class TestWorksThatChangeMemory:
    """What a work changes in memory goes the way of its rows: stored, or as if never done."""

    @pytest.mark.parametrize("shared", [False, True], ids=["alone", "in a savepoint"])
    async def test_a_failed_one_leaves_nothing_that_the_same_or_the_next_commit_would_tell(
        self, bench: Bench, shared: bool
    ):
        log, other = await bench.log("x"), await bench.log("y")
        heard = listen(log)
        bench.say(log, 0)
        await bench.commits.flush()
        bench.say(log, 1)

        async def fails(tx: Any) -> None:
            _say_tentatively(bench, log, 7)
            raise ValueError("no")

        beside = [bench.commits.run(other.owner, _nothing)] if shared else []
        outcomes = await asyncio.gather(
            bench.commits.run(log.owner, fails), *beside, return_exceptions=True
        )
        assert str(outcomes[0]) == "no"
        bench.say(log, 2)
        await bench.commits.flush()
        assert heard_in_order(heard) == [0, 1, 2] == await bench.chunks(log)

    async def test_a_clear_that_fails_in_a_shared_transaction_hides_no_chunk(self, bench: Bench):
        log, other = await bench.log("x"), await bench.log("y")
        heard = listen(log)
        bench.say(log, 0)
        await bench.commits.flush()
        bench.say(log, 1)

        async def clear(tx: Any) -> None:
            if_not_stored(lambda: setattr(log, "packed", False))
            log.packed = True
            raise ValueError("what a feature writes")

        await asyncio.gather(
            bench.commits.run(log.owner, clear),
            bench.commits.run(other.owner, _nothing),
            return_exceptions=True,
        )
        bench.say(log, 2)
        await bench.commits.flush()
        assert heard_in_order(heard) == [0, 1, 2] == await bench.chunks(log)

    async def test_a_commit_that_fails_takes_all_works_back_the_last_one_first(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ):
        logs = [await bench.log(name) for name in "xyz"]
        heard = [listen(log) for log in logs]
        undone: list[str] = []

        def work(log: TurnLog) -> Any:
            async def speak(tx: Any) -> None:
                _say_tentatively(bench, log, 7)
                if_not_stored(lambda: undone.append(log.owner.agent_id))

            return speak

        fail_next_commit(monkeypatch)
        outcomes = await asyncio.gather(
            *(bench.commits.run(log.owner, work(log)) for log in logs), return_exceptions=True
        )
        assert {type(each) for each in outcomes} == {StoreUnavailableError}
        assert undone == ["a/z", "a/y", "a/x"]
        await bench.commits.flush()
        assert heard == [[], [], []]
        assert [await bench.chunks(log) for log in logs] == [[], [], []]

    async def test_what_others_say_while_a_commit_fails_stays_and_moves_up(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ):
        log = await bench.log()
        heard = listen(log)

        async def work(tx: Any) -> None:
            _say_tentatively(bench, log, 7)
            # As under durability="power", where a commit waits for the disk.
            bench.say(log, 1)
            log.append_event("model", "{}")
            bench.say(log, 2)

        fail_next_commit(monkeypatch)
        with pytest.raises(StoreUnavailableError):
            await bench.commits.run(log.owner, work)
        assert [event.seq for event in log.events] == [1]
        await bench.commits.flush()
        assert heard_in_order(heard) == [1, 2] == await bench.chunks(log)
        assert log.size == sum(map(len, log.bodies))

    async def test_one_that_insists_says_it_once(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ):
        log = await bench.log()
        heard = listen(log)
        bench.commits.health._sleep = lambda _: asyncio.sleep(0)  # pyright: ignore[reportPrivateUsage]

        async def work(tx: Any) -> None:
            _say_tentatively(bench, log, 7)

        fail_next_commit(monkeypatch)
        await bench.commits.insist(log.owner, work)
        assert heard_in_order(heard) == [7] == await bench.chunks(log)

    async def test_an_undo_that_raises_keeps_no_other_from_its_own(self, bench: Bench):
        first, bad = await bench.owner("x"), await bench.owner("y")
        undone: list[str] = []

        async def fails(tx: Any) -> None:
            if_not_stored(lambda: undone.append("first"))
            if_not_stored(lambda: 1 / 0)
            raise ValueError("no")

        outcomes = await asyncio.gather(
            bench.commits.run(bad, fails),
            bench.commits.run(first, _set_state(first, "1")),
            return_exceptions=True,
        )
        assert ([str(each) for each in outcomes], undone) == (["no", "1"], ["first"])

    async def test_taking_back_is_for_works_only(self, bench: Bench):
        with pytest.raises(StoreError, match="works"):
            if_not_stored(lambda: None)


class TestInsideAWork:
    async def test_a_commit_is_refused_instead_of_waiting_for_itself(self, bench: Bench):
        owner = await bench.owner("x")

        async def work(tx: Any) -> list[str]:
            bench.say(TurnLog(owner, "t"), 1)
            asked = (
                bench.commits.run(owner, _nothing),
                bench.commits.insist(owner, _nothing),
                bench.commits.flush(),
            )
            refused = await asyncio.gather(*asked, return_exceptions=True)
            return [type(each).__name__ for each in refused]

        async with asyncio.timeout(5):
            assert await bench.commits.run(owner, work) == ["StoreError"] * 3
            assert await bench.commits.run(owner, _set_state(owner, "1")) == "1"

    async def test_a_task_that_was_started_there_may_commit_when_it_is_over(self, bench: Bench):
        owner, over = await bench.owner("x"), asyncio.Event()

        async def later() -> str:
            await over.wait()
            return await bench.commits.run(owner, _set_state(owner, "1"))

        async def work(tx: Any) -> asyncio.Task[str]:
            return asyncio.create_task(later())

        task = await bench.commits.run(owner, work)
        over.set()
        assert await task == "1"


class TestContexts:
    @pytest.mark.parametrize("way", ["run", "insist", "flush", "window"])
    async def test_a_log_is_told_in_nobodys_context(self, bench: Bench, way: str):
        """A listener must not see the turn, the chain or the caller of another agent."""
        who: ContextVar[str] = ContextVar("who", default="nobody")
        log, other = await bench.log("x"), await bench.log("y")
        heard: list[str] = []
        log.told = lambda *_: heard.append(who.get())

        async def stranger() -> None:
            who.set("a stranger")
            bench.say(other, 1)
            match way:
                case "run":
                    await bench.commits.run(other.owner, _nothing)
                case "insist":
                    await bench.commits.insist(other.owner, _nothing)
                case "flush":
                    await bench.commits.flush()
                case _:
                    await _until_written(other, 1)

        bench.clock.time += WINDOW
        task = asyncio.create_task(stranger())
        bench.say(log, 1)
        await task
        assert heard == ["nobody"]

    async def test_nor_by_the_probe_of_a_store_that_writes_again(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ):
        who: ContextVar[str] = ContextVar("who", default="nobody")
        log, other = await bench.log("x"), await bench.log("y")
        heard: list[str] = []
        log.told = lambda *_: heard.append(who.get())
        bench.commits.health._sleep = lambda _: asyncio.sleep(0)  # pyright: ignore[reportPrivateUsage]

        async def stranger() -> None:
            who.set("a stranger")
            fail_next_commit(monkeypatch)
            with pytest.raises(StoreUnavailableError):
                await bench.commits.run(other.owner, _nothing)

        bench.say(log, 1)
        await bench.commits.flush()
        bench.say(log, 2)  # within the window: the commit of the stranger comes first
        await asyncio.create_task(stranger())
        await _until_written(log, 2)
        assert heard == ["nobody", "nobody"]


class TestPressure:
    async def test_many_waiting_chunks_ask_the_turn_to_wait(self, bench: Bench):
        log = await bench.log()
        assert bench.say(log, *range(CAP - 1)) is False
        assert bench.say(log, CAP) is True
        await bench.commits.flush()
        assert bench.say(log, 0) is False

    async def test_a_store_that_fails_fails_the_logs_and_not_the_caller(self, bench: Bench):
        log = await bench.log()
        heard = listen(log)
        bench.say(log, 1)
        await bench.store.close()
        await bench.commits.flush()
        assert heard == []
        with pytest.raises(StoreError):
            log.append("2")


class TestTheWindow:
    async def test_the_first_chunk_is_committed_at_the_end_of_the_iteration(self, bench: Bench):
        log = await bench.log()
        bench.say(log, 1)
        await _until_written(log, 1)

    async def test_within_the_window_the_next_waits_for_its_end(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ):
        log = await bench.log()
        bench.say(log, 1)
        await bench.commits.flush()
        bench.clock.time += WINDOW / 4
        delays = _record_delays(monkeypatch)
        bench.say(log, 2)
        assert delays == [pytest.approx(WINDOW * 3 / 4)]
        await _until_written(log, 2)

    async def test_after_the_window_it_is_committed_at_once_again(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ):
        log = await bench.log()
        bench.say(log, 1)
        await bench.commits.flush()
        bench.clock.time += WINDOW
        delays = _record_delays(monkeypatch)
        bench.say(log, 2)
        assert delays == []
        await _until_written(log, 2)


def heard_in_order(heard: list[tuple[int, list[int]]]) -> list[int]:
    """The chunks a reader heard of, if each came at the place that was next."""
    chunks: list[int] = []
    for first, numbers in heard:
        assert first == len(chunks)
        chunks += numbers
    return chunks


def _say_tentatively(bench: Bench, log: TurnLog, number: int) -> None:
    mark = log.mark()
    bench.say(log, number)
    added = log.since(mark)
    if_not_stored(lambda: log.take_back(added))


async def _nothing(tx: Any) -> None:
    """Work that writes nothing."""


async def _until_written(log: TurnLog, count: int) -> None:
    done, told = asyncio.Event(), log.told

    def hear(first: int, bodies: Sequence[str], events: Sequence[LogEvent]) -> None:
        done.set()
        if told is not None:
            told(first, bodies, events)

    log.told = hear
    while log.written < count:
        await done.wait()


def _record_delays(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    loop = asyncio.get_running_loop()
    delays: list[float] = []
    later = loop.call_later

    def call_later(delay: float, *args: Any, **kwargs: Any) -> Any:
        delays.append(delay)
        return later(delay, *args, **kwargs)

    monkeypatch.setattr(loop, "call_later", call_later)
    return delays


def test_an_owner_is_an_agent_and_its_epoch():
    assert Owner("a/x", 1) != Owner("a/x", 2)


def _set_state(owner: Owner, state: str) -> Any:
    async def work(tx: Any) -> str:
        await tx.execute("set_agent_state", {"id": owner.agent_id, "state": state})
        return state

    return work


async def _state(bench: Bench, owner: Owner) -> str | None:
    row = await bench.store.fetch_one("agent_row", {"id": owner.agent_id})
    return None if row is None else row["state"]


async def _say(bench: Bench, log: TurnLog, number: int) -> None:
    bench.say(log, number)
