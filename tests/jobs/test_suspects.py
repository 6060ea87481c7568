"""After a death, jobs that ran at it go one by one; nothing else waits for them (DESIGN §8.16)."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import ClassVar

import pytest

from tests.jobs.support import Hours, Stage, serving
from thinkwell.agent.agent import Agent
from thinkwell.host.job_runner import MOST_SERVED
from thinkwell.jobs import JobContext
from thinkwell.journal.boots import SOON

SEVERAL = MOST_SERVED + 6
"""More agents with suspects than are served at a time."""


class Suspect(Agent, name="suspect"):
    running: ClassVar[set[str]]
    most: ClassVar[int]
    gates: ClassVar[dict[str, asyncio.Event]]

    async def block(self, payload: None, ctx: JobContext) -> None:
        Suspect.running.add(self.name)
        Suspect.most = max(Suspect.most, len(Suspect.running))
        await Suspect.gates.setdefault(self.name, asyncio.Event()).wait()
        Suspect.running.discard(self.name)

    async def work(self) -> None:
        """Nothing to do."""


@pytest.fixture(autouse=True)
def anew() -> None:
    Suspect.running, Suspect.most, Suspect.gates = set(), 0, {}


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0)


async def prepare(file: Path, agents: int) -> Hours:
    """A file whose last life died while each of these agents ran a job; time has gone on since."""
    hours = Hours()
    async with serving(Suspect, store=file, hours=hours) as stage:
        for number in range(agents):
            agent = await stage.agent(Suspect, f"n{number}")
            await agent.jobs.enqueue("block", delay=10)
    with closing(sqlite3.connect(file)) as db:
        db.execute("UPDATE jobs SET deaths = 1 WHERE name = 'block'")
        db.commit()
    hours.move(10)
    return hours


async def finish(stage: Stage, agents: int) -> None:
    """Let one suspect after another end."""
    for done in range(1, agents + 1):
        await until(lambda: bool(Suspect.running))
        for name in tuple(Suspect.running):
            Suspect.gates[name].set()
        await stage.until("job:finished", done)


async def test_a_new_agent_and_other_jobs_of_theirs_do_not_wait_for_suspects(tmp_path: Path):
    hours = await prepare(tmp_path / "a.db", SEVERAL)
    async with serving(Suspect, store=tmp_path / "a.db", hours=hours) as stage:
        await until(lambda: bool(Suspect.running))
        for name in ("fresh", "n0", "n7", f"n{SEVERAL - 1}"):
            await (await stage.agent(Suspect, name)).jobs.enqueue("work")
        await stage.until("job:finished", 4)
        assert len(Suspect.running) == Suspect.most == 1


async def test_each_suspect_has_its_turn_and_none_runs_beside_another(tmp_path: Path):
    hours = await prepare(tmp_path / "a.db", SEVERAL)
    async with serving(Suspect, store=tmp_path / "a.db", hours=hours) as stage:
        await finish(stage, SEVERAL)
        assert Suspect.most == 1


async def test_one_that_was_cancelled_meanwhile_keeps_no_other_from_its_turn(tmp_path: Path):
    hours = await prepare(tmp_path / "a.db", 3)
    async with serving(Suspect, store=tmp_path / "a.db", hours=hours) as stage:
        await until(lambda: Suspect.running == {"n0"})
        second = await stage.agent(Suspect, "n1")
        (job,) = await second.jobs.list()
        assert await second.jobs.cancel(job.id)
        Suspect.gates["n0"].set()
        await until(lambda: Suspect.running == {"n2"})


async def test_once_the_process_has_lasted_they_run_as_all_others(tmp_path: Path):
    hours = await prepare(tmp_path / "a.db", 3)
    async with serving(Suspect, store=tmp_path / "a.db", hours=hours) as stage:
        await until(lambda: Suspect.running == {"n0"})
        for _ in range(50):
            await asyncio.sleep(0)
        stage.hours.move(SOON)
        await until(lambda: Suspect.running == {"n0", "n1", "n2"})
