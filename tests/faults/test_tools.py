"""What tools and hooks may do to a process beside raising and hanging (DESIGN §8.16): huge results,
circles, endless recursion, threads that never end, leaving the process. Raising and ignoring
cancels are in `tests/turns/test_raises_anything.py` and `test_left_behind.py`.
"""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.turns.support import part_of, running
from thinkwell import Think, tool
from thinkwell.hooks import StepContext
from thinkwell.testing import call

LARGE = 50 * 1024 * 1024
DEEP = 100_000


def recurse(depth: int) -> int:
    return recurse(depth + 1) + 1


class Odd(Think):
    @tool
    async def huge(self) -> str:
        """Fifty megabytes."""
        return "x" * LARGE

    @tool
    async def circle(self) -> Any:
        """A list that holds itself."""
        made: list[Any] = []
        made.append(made)
        return made

    @tool
    async def deep(self) -> Any:
        """A list in a list in a list."""
        made: Any = []
        for _ in range(DEEP):
            made = [made]
        return made

    @tool
    def recursion(self) -> int:
        """Never comes back by itself."""
        return recurse(0)

    @tool
    async def recursion_on_the_loop(self) -> int:
        """The same, on the event loop."""
        return recurse(0)

    @tool
    async def bytes_and_objects(self) -> Any:
        """What JSON cannot hold."""
        return {"an object": object(), "some bytes": b"\xff"}


async def test_a_result_of_fifty_megabytes_is_shortened_for_everybody_and_the_turn_goes_on():
    async with running(Odd, [call("huge")], "ok", "again") as stage:
        client = await stage.connect()
        await client.ask("hi", "q1")
        await client.until_end("q1")
        part = part_of(await stage.answer())
        assert part["state"] == "output-available"
        assert len(str(part["output"])) < 200_000
        assert max(len(str(frame)) for frame in client.frames) < 2_000_000
        assert (await stage.agent.run("more")).text == "again"


@pytest.mark.parametrize(
    "name", ["circle", "deep", "recursion", "recursion_on_the_loop", "bytes_and_objects"]
)
async def test_a_result_that_cannot_be_stored_fails_its_call_and_the_model_reads_why(name: str):
    async with running(Odd, [call(name)], "ok", "again") as stage:
        assert (await stage.agent.run("hi")).text == "ok"
        part = part_of(await stage.answer())
        assert part["state"] == "output-error"
        assert part["errorText"]
        assert (await stage.agent.run("more")).text == "again"


@pytest.mark.parametrize("kind", ["huge", "circle", "recursion"])
async def test_a_hook_that_answers_nonsense_or_never_stops_fails_its_turn_only(kind: str):
    class Hooked(Think):
        broken = True

        async def before_step(self, ctx: StepContext) -> Any:
            if not self.broken:
                return None
            if kind == "huge":
                return "x" * LARGE
            if kind == "circle":
                made: dict[str, Any] = {}
                made["self"] = made
                return made
            return recurse(0)

    async with running(Hooked, "ok") as stage:
        assert (await stage.agent.run("hi")).status == "error"
        stage.agent.broken = False
        assert (await stage.agent.run("hi")).text == "ok"


async def test_a_tool_may_leave_threads_that_never_end_and_the_host_still_stops():
    stopped = threading.Event()

    class Threads(Think):
        @tool
        async def begin(self) -> str:
            """Leaves a thread."""
            threading.Thread(target=stopped.wait, daemon=True).start()
            return "begun"

    try:
        async with running(Threads, [call("begin")], "ok") as stage:
            assert (await stage.agent.run("hi")).text == "ok"
    finally:
        stopped.set()
