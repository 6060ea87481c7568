"""Tasks with an owner, work that runs to its end, work that runs together."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from thinkwell.core.errors import AbortTurn
from thinkwell.core.tasks import (
    TaskOwner,
    forsake,
    is_cancelled,
    run_apart,
    run_to_the_end,
    run_together,
)


async def forever(seen: list[str] | None = None, name: str = "") -> None:
    try:
        await asyncio.Event().wait()
    finally:
        if seen is not None:
            seen.append(name)


async def fails(error: BaseException) -> None:
    await asyncio.sleep(0)
    raise error


class TestTaskOwner:
    async def test_a_task_runs_and_its_result_can_be_had(self):
        owner = TaskOwner("x")

        async def work() -> int:
            return 1

        assert await owner.spawn(work(), name="one") == 1

    async def test_closing_cancels_what_runs_and_waits_for_it(self):
        owner, ended = TaskOwner("x"), list[str]()
        task = owner.spawn(forever(ended, "gone"), name="one")
        await asyncio.sleep(0)
        await owner.close()
        assert (task.cancelled(), ended) == (True, ["gone"])

    async def test_a_failure_is_reported_once_with_the_name(self, caplog: pytest.LogCaptureFixture):
        owner = TaskOwner("x")
        task = owner.spawn(fails(RuntimeError("no")), name="one")
        await asyncio.wait([task])
        assert [getattr(record, "action", "") for record in caplog.records] == ["x:one"]

    async def test_a_task_may_close_its_own_owner(self):
        owner = TaskOwner("x")
        task = owner.spawn(owner.close(), name="closer")
        await task
        assert not task.cancelled()


class TestIsCancelled:
    async def test_only_a_real_cancellation_counts(self):
        seen: list[bool] = []

        async def work() -> None:
            seen.append(is_cancelled())
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                seen.append(is_cancelled())

        task = asyncio.ensure_future(work())
        await asyncio.sleep(0)
        task.cancel()
        await task
        assert seen == [False, True]


class TestRunToTheEnd:
    async def test_a_cancelled_caller_waits_for_the_end_of_the_work(self):
        release, done = asyncio.Event(), list[str]()

        async def work() -> None:
            await release.wait()
            done.append("done")

        task = asyncio.ensure_future(run_to_the_end(work()))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
        release.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert done == ["done"]

    async def test_results_and_errors_come_through(self):
        async def work() -> int:
            return 1

        assert await run_to_the_end(work()) == 1
        with pytest.raises(ValueError, match="no"):
            await run_to_the_end(fails(ValueError("no")))


class TestRunTogether:
    async def test_all_run_beside_each_other(self):
        meeting = asyncio.Barrier(3)

        async def work() -> None:
            await meeting.wait()

        await run_together(work(), work(), work())

    @pytest.mark.parametrize("error", [ValueError("no"), AbortTurn("stop")])
    async def test_one_failure_stops_the_others_and_is_raised(self, error: BaseException):
        ended: list[str] = []
        with pytest.raises(type(error)):
            await run_together(forever(ended, "a"), fails(error), forever(ended, "b"))
        assert ended == ["a", "b"]

    async def test_the_task_is_not_left_marked_as_cancelled(self):
        with pytest.raises(ValueError, match="no"):
            await run_together(forever(), fails(ValueError("no")))
        assert not is_cancelled()

    async def test_a_child_that_raises_cancelled_by_itself_is_a_failure(self):
        with pytest.raises(asyncio.CancelledError):
            await run_together(fails(asyncio.CancelledError()))
        assert not is_cancelled()

    async def test_a_cancelled_caller_stops_all_of_them(self):
        ended: list[str] = []
        task = asyncio.ensure_future(run_together(forever(ended, "a"), forever(ended, "b")))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended == ["a", "b"]


class TestForsaking:
    def test_a_loop_that_closes_does_not_wait_for_it(self):
        """`asyncio.run` would wait for ever."""

        async def deaf(end: asyncio.Event) -> None:
            while not end.is_set():
                with suppress(asyncio.CancelledError):
                    await end.wait()

        async def main() -> asyncio.Task[None]:
            task = asyncio.get_running_loop().create_task(deaf(asyncio.Event()))
            await asyncio.sleep(0)
            forsake(task)
            assert task not in asyncio.all_tasks()
            return task

        assert not asyncio.run(main()).done()

    async def test_one_that_ends_all_the_same_is_no_trouble(self):
        task = asyncio.get_running_loop().create_task(asyncio.sleep(0, "late"))
        forsake(task)
        forsake(task)
        assert await task == "late"

    async def test_a_python_without_these_names_only_goes_on_waiting(
        self, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.delattr(asyncio.tasks, "_unregister_task")
        task = asyncio.get_running_loop().create_task(asyncio.sleep(0, "late"))
        forsake(task)
        assert await task == "late"


async def deaf(go_on: asyncio.Event) -> None:
    while not go_on.is_set():
        try:
            await go_on.wait()
        except asyncio.CancelledError:
            continue


class TestWorkInsideOwnedWork:
    async def test_closing_cancels_it_once_through_whoever_waits_for_it(self):
        owner, cancels = TaskOwner("x"), list[str]()
        owner.spawn(run_together(forever(cancels, "a"), owner=owner), name="outer")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await owner.close()
        assert cancels == ["a"]

    async def test_closing_leaves_it_behind_with_whoever_waits_for_it(self):
        owner, go_on, before = TaskOwner("x"), asyncio.Event(), asyncio.all_tasks()
        owner.spawn(run_together(deaf(go_on), owner=owner), name="outer")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await owner.close(0.01)
        assert asyncio.all_tasks() == before
        go_on.set()

    async def test_work_that_ignores_the_cancel_of_its_caller_is_kept(self):
        owner, go_on = TaskOwner("x"), asyncio.Event()
        caller = asyncio.ensure_future(run_apart(deaf(go_on), name="deaf", owner=owner))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        assert owner.left_behind == 1
        go_on.set()
        while owner.left_behind:
            await asyncio.sleep(0)
