"""A chaos run: the app lives, is killed and lives again while tabs keep asking; then it may finish.

Leaves a folder with the scratch database, the effect log, a file per client and the list of lives.
`promises.py` judges from that folder alone.
"""

from __future__ import annotations

import asyncio
import signal
import sqlite3
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager, closing, suppress
from typing import Any

import click
from websockets.exceptions import WebSocketException

from thinkwell.cli.asking import ask
from thinkwell.core import json
from thinkwell.core.clock import SystemClock
from thinkwell.core.tasks import TaskOwner
from thinkwell.testing.chaos.child import FACTS, STORE
from thinkwell.testing.chaos.door import Door
from thinkwell.testing.chaos.effects import EFFECTS
from thinkwell.testing.chaos.lives import Life, another_round, life_at, random_life
from thinkwell.testing.chaos.options import CannotBeginError, ChaosOptions
from thinkwell.testing.chaos.plan import rehearsal
from thinkwell.testing.chaos.process import DidNotStartError, ServedApp, last_lines
from thinkwell.testing.chaos.tab import Tab

LIVES = "lives.jsonl"
POLL = 0.01
ROUNDS = 3
"""How often everybody is asked again in a life that has not come to its crash point."""
LIVES_OF_A_CHAT = 20
"""After so many lives tabs move on to new conversations: what they left must end without them."""
_UNSETTLED = "SELECT count(*) FROM turns WHERE status IN ('accepted', 'running')"
_MOVED = "SELECT count(*), coalesce(sum(attempt), 0), max(coalesce(settled_at, 0)) FROM turns"
OnLife = Callable[[Life, "Counter[str]"], None]


class ChaosRun:
    """See the module docstring."""

    def __init__(self, options: ChaosOptions, on_life: OnLife | None = None) -> None:
        self._options = options
        self._on_life = on_life
        self._clock = SystemClock()
        self._door = Door()
        self._tasks = TaskOwner("chaos")
        self._tabs: list[Tab] = []
        self._chats: list[str] = []
        self._lives = 0
        self._asked = 0
        self._deleted: list[str] = []
        self.figures: Counter[str] = Counter()

    async def run(self) -> None:
        """Rehearse, live every life, then let it finish. Raises `CannotBeginError`."""
        ends_at = None
        if self._options.minutes is not None:
            ends_at = self._clock.now() + 60 * self._options.minutes
        try:
            await self._rehearse()
            for life in self._plan():
                if ends_at is not None and self._clock.now() >= ends_at:
                    break
                await self._live(life)
                if self._on_life is not None:
                    self._on_life(life, self.figures)
            await self._finish()
        finally:
            await self._tasks.close()

    def _plan(self) -> Iterator[Life]:
        options, clients = self._options, len(self._tabs)
        yield from (life_at(options.seed, point, clients) for point in options.points)
        for number in range(options.first, options.first + options.kills):
            yield random_life(options.seed, number, clients)

    # Before and after

    async def _rehearse(self) -> None:
        """One question to each class, without any kill: an app that cannot answer is no test."""
        async with self._life(Life(name="rehearsal", ending="none")) as app:
            try:
                await app.listens()
            except DidNotStartError as error:
                raise CannotBeginError(f"The app does not start.\n\n{error}") from None
            facts = json.loads((self._options.folder / FACTS).read_bytes())
            self._door.prefix, self._chats = facts["prefix"], facts["chats"]
            if not self._chats:
                raise CannotBeginError(
                    "The app has no chat agent: a class that derives from Think."
                )
            self._open_tabs("rehearsal", len(self._chats))
            self._door.open(self._lives, app.url)
            for number, tab in enumerate(self._tabs):
                await tab.ask(rehearsal(f"rehearsal.c{number}"))
            if not await self._until(self._at_rest, app):
                raise CannotBeginError(self._why_not(facts))
            await app.stop()
        problem = self._bad_rehearsal()
        if problem is not None:
            raise CannotBeginError(problem)
        await self._new_tabs(0)

    def _why_not(self, facts: dict[str, Any]) -> str:
        hint = (
            " It has `auth`: give clients what it asks for with --header." if facts["auth"] else ""
        )
        tail = last_lines(self._options.folder)
        return f"The app does not answer, although nobody kills it.{hint}\n\n{tail}"

    def _bad_rehearsal(self) -> str | None:
        rows = self._rows("SELECT agent, status, error FROM turns WHERE status = 'error'")
        if not rows:
            return None
        agent, _, error = rows[0]
        return f"{agent} fails without any kill: {error}\nMend that first, then run chaos again."

    async def _finish(self) -> None:
        """A last life without a kill, in which everything that was accepted must end."""
        async with self._life(Life(name="last", ending="none")) as app:
            if await app.listens():
                self._door.open(self._lives, app.url)
                await self._until(self._at_rest, app)
            await app.stop()

    # One life

    async def _live(self, life: Life) -> None:
        if life.ending != "point" and self._lives % LIVES_OF_A_CHAT == 0:
            await self._new_tabs(self._lives)
        async with self._life(life) as app:
            if await app.listens() and life.ending != "listening":
                self._door.open(self._lives, app.url)
                await self._ask(life)
                if life.point.startswith("d"):
                    await self._delete_one(app)
                await self._until(self._ending(life), app)
                if life.ending == "point":
                    await self._insist(life, app)
            self._door.close()
            await (app.stop() if life.ending == "stop" else app.kill())

    async def _insist(self, life: Life, app: ServedApp) -> None:
        """Ask again, one tab at a time: some points lie where nobody has asked the next thing."""
        for number in range(ROUNDS):
            asks = another_round(self._options.seed, life.point, number, len(self._tabs))
            for tab, question in zip(self._tabs, asks, strict=True):
                if not app.alive:
                    return
                await _quietly(tab.ask(question))
                await self._until(self._at_rest, app)

    @asynccontextmanager
    async def _life(self, life: Life) -> AsyncGenerator[ServedApp]:
        self._lives += 1
        began = self._clock.now()
        app = ServedApp(self._options, self._lives, life.point)
        await app.spawn()
        try:
            yield app
        finally:
            self._door.close()
            status = await app.kill()
            self._note_end(life, status, alone=app.died_alone, began=began)

    def _note_end(self, life: Life, status: int, *, alone: bool, began: float) -> None:
        killed = status == -signal.SIGKILL
        reached = life.ending != "point" or (killed and alone)
        self.figures["lives"] += 1
        self.figures["kills" if killed else "orderly stops" if status == 0 else "own deaths"] += 1
        line = {
            "life": self._lives,
            "name": life.name,
            "told": life.told,
            "point": life.point,
            "reached": reached,
            "status": status,
            "began": began,
            "ended": self._clock.now(),
            "deleted": self._deleted,
        }
        with (self._options.folder / LIVES).open("a") as out:
            out.write(json.dumps(line) + "\n")
        for tab in self._tabs:
            tab.flush()

    async def _ask(self, life: Life) -> None:
        for tab, questions, stops in zip(self._tabs, life.asks, life.stops, strict=True):
            for number, question in enumerate(questions):
                if self._options.turns is not None and self._asked >= self._options.turns:
                    return
                self._asked += 1
                await _quietly(tab.ask(question, stop=stops and number == 0))

    def _ending(self, life: Life) -> Callable[[], bool]:
        """What this life waits for; it also ends when nothing is left to do."""
        chunks, ends = self._live_chunks, sum(tab.ends for tab in self._tabs)
        match life.ending:
            case "chunks" | "stop":
                return lambda: self._live_chunks - chunks >= life.count or self._at_rest()
            case "tool":
                return lambda: self._tool_runs() >= life.count or self._at_rest()
            case "asked":
                return lambda: not any(tab.unsent for tab in self._tabs)
            case "reply":
                return lambda: sum(tab.ends for tab in self._tabs) > ends or self._at_rest()
            case _:
                return self._at_rest

    @property
    def _live_chunks(self) -> int:
        return sum(tab.live for tab in self._tabs)

    def _tool_runs(self) -> int:
        log = self._options.folder / EFFECTS
        mark = f'"moment":"begin","life":{self._lives},'
        return log.read_text().count(mark) if log.exists() else 0

    def _at_rest(self) -> bool:
        waits = any(tab.unheard or tab.open_calls() for tab in self._tabs)
        return not waits and self._rows(_UNSETTLED)[0][0] == 0

    async def _until(self, reached: Callable[[], bool], app: ServedApp) -> bool:
        """Wait for a state, or the end of the process; False if nothing moves any more."""
        moved, since = self._moved(), self._clock.monotonic()
        while app.alive:
            if reached():
                return True
            await asyncio.sleep(POLL)
            if (now := self._moved()) != moved:
                moved, since = now, self._clock.monotonic()
            elif self._clock.monotonic() - since > self._options.patience:
                return False
        return True

    def _moved(self) -> Any:
        return self._live_chunks, self._rows(_MOVED)

    def _rows(self, sql: str) -> list[Any]:
        file = self._options.folder / STORE
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as link:
            return list(link.execute(sql))

    # Tabs

    async def _new_tabs(self, generation: int) -> None:
        """Other conversations; the old ones are left as they are."""
        for tab in self._tabs:
            tab.leave()
        await self._tasks.close()
        self._tasks, self._tabs = TaskOwner("chaos"), []
        self._open_tabs(f"g{generation}", max(self._options.clients, len(self._chats)))

    def _open_tabs(self, name: str, count: int) -> None:
        """Two tabs to a conversation where there are enough, all classes in turn."""
        talks = max(len(self._chats), count // 2)
        for number in range(count):
            talk = number % talks
            agent = f"{self._chats[talk % len(self._chats)]}/chaos-{name}-{talk}"
            log = self._options.folder / f"client-{name}-{number}.jsonl"
            tab = Tab(log, agent, self._door, _headers(self._options.headers))
            self._tabs.append(tab)
            self._tasks.spawn(tab.run(), name=f"tab {number}")

    async def _delete_one(self, app: ServedApp) -> None:
        """Talk to an agent and delete it, for the points that lie in a deletion."""
        spare = f"{self._chats[0]}/chaos-spare-{self._lives}"
        log = self._options.folder / f"client-spare-{self._lives}.jsonl"
        tab = Tab(log, spare, self._door, _headers(self._options.headers))
        reading = self._tasks.spawn(tab.run(), name="spare")
        await tab.ask(f"chaos spare.{self._lives}: say 9")
        await self._until(lambda: tab.ends > 0, app)
        reading.cancel()
        self._deleted.append(spare)
        order = {"do": "delete", "agent": spare}
        await _quietly(asyncio.to_thread(ask, self._options.folder / STORE, order, 10.0))


async def _quietly(work: Any) -> None:
    """The process may be dead by now: that is what this is about."""
    with suppress(OSError, WebSocketException, click.ClickException):
        await work


def _headers(lines: tuple[str, ...]) -> dict[str, str]:
    split = (line.partition(":") for line in lines)
    return {name.strip(): value.strip() for name, _, value in split}
