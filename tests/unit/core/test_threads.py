"""One pool of daemon threads for sync tools: a cap for each owner, and a line that shows."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar

import pytest

from thinkwell.core.threads import ThreadPool

said: ContextVar[str] = ContextVar("said", default="")


async def test_work_runs_in_a_daemon_thread_with_the_context_of_its_caller():
    said.set("hello")
    pool = ThreadPool()
    assert await pool.run("a", lambda: (said.get(), threading.current_thread().daemon)) == (
        "hello",
        True,
    )


@pytest.mark.parametrize("error", [ValueError(), SystemExit(1), StopIteration()])
async def test_what_it_raises_is_raised_where_somebody_awaits_it(error: BaseException):
    def raising() -> None:
        raise error

    caught: BaseException | None = None
    try:
        await ThreadPool().run("a", raising)
    except BaseException as raised:  # noqa: BLE001 - any of them
        caught = raised.__cause__ if isinstance(raised, RuntimeError) else raised
    assert caught is error


async def test_one_owner_over_its_cap_waits_and_others_pass_it():
    queued: list[tuple[str, int]] = []
    pool = ThreadPool(
        4, per_owner=2, on_queued=lambda owner, waiting: queued.append((owner, waiting))
    )
    release = threading.Event()
    hogs = [asyncio.ensure_future(pool.run("hog", release.wait)) for _ in range(3)]
    await asyncio.sleep(0)
    assert await pool.run("other", lambda: "passed") == "passed"
    assert (pool.waiting, pool.running, queued) == (1, 2, [("hog", 1)])
    release.set()
    assert await asyncio.gather(*hogs) == [True, True, True]
    assert (pool.waiting, pool.running) == (0, 0)


async def test_work_cancelled_while_it_waits_leaves_the_line_and_never_runs():
    pool = ThreadPool(1)
    release, ran = threading.Event(), threading.Event()
    first = asyncio.ensure_future(pool.run("a", release.wait))
    second = asyncio.ensure_future(pool.run("a", ran.set))
    await asyncio.sleep(0)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    assert pool.waiting == 0
    release.set()
    await first
    assert not ran.is_set()


async def test_work_that_runs_cannot_be_cancelled_its_result_still_comes():
    pool = ThreadPool()
    began, release = threading.Event(), threading.Event()

    def work() -> str:
        began.set()
        release.wait()
        return "done"

    task = asyncio.ensure_future(pool.run("a", work))
    while not began.is_set():
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    release.set()
    assert await task == "done"
