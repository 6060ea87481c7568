"""A few hundred turns leave no object behind: what a turn makes goes with it (DESIGN §9)."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter

from tests.turns.support import Stage, running
from thinkwell import Think, tool
from thinkwell.core.signal import AbortController
from thinkwell.journal.turn_log import TurnLog
from thinkwell.live.watchers import Watcher
from thinkwell.messages.fold import Fold
from thinkwell.testing import call, text
from thinkwell.turn.handle import TurnHandle
from thinkwell.turn.run.running import RunningTurn
from thinkwell.turn.transcript import Transcript

OF_A_TURN = (
    TurnHandle,
    RunningTurn,
    TurnLog,
    Fold,
    AbortController,
    Watcher,
    Transcript,
    asyncio.Task,
    asyncio.Future,
)
WARM_UP = 20
TURNS = 200
JUST_ENDED = 3
"""The newest turn may still be known to somebody; the ones before it are not."""


class Busy(Think):
    @tool
    async def look(self, what: str) -> str:
        """Looks something up."""
        return what


async def some_turns(stage: Stage[Busy], first: int, count: int) -> None:
    """Turns over a socket that comes and goes; some are called for, stopped or cleared."""
    for number in range(first, first + count):
        stage.model.add([text("I look. "), call("look", {"what": "it"})], "seen", "done")
        client = await stage.connect(f"tab-{number}")
        await client.ask("hi", f"q{number}")
        await client.until_end(f"q{number}")
        await stage.agent.run("and on")
        assert client.connection is not None
        await client.connection.close()
        if number % 10 == 9:
            await stage.agent.clear_messages()
    stage.model.requests.clear()
    stage.log.clear()
    stage.events.clear()


async def forget_cancelled_timers() -> None:
    """asyncio keeps them, with the turns in whose contexts they were set, until they are many."""
    for _ in range(1_000):
        asyncio.get_running_loop().call_later(3600, print).cancel()
    await asyncio.sleep(0)


async def alive() -> Counter[str]:
    await forget_cancelled_timers()
    gc.collect()
    found: Counter[str] = Counter()
    for each in gc.get_objects():
        if isinstance(each, OF_A_TURN):
            found[type(each).__name__] += 1
    return found


async def test_as_many_objects_are_alive_after_many_turns_as_after_a_few():
    async with running(Busy) as stage:
        await some_turns(stage, 0, WARM_UP)
        before = await alive()
        await some_turns(stage, WARM_UP, TURNS)
        more = {name: count - before[name] for name, count in (await alive()).items()}
        assert {name: count for name, count in more.items() if count > JUST_ENDED} == {}
