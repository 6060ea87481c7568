"""What durability costs: the journal, idle schedules, a restart after a crash, due jobs, storage.

`python -m benchmarks --only durability` measures these figures alone and rewrites their section of
RESULTS.md. Servers are real processes on real files; the crash is a `kill -9`.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from benchmarks.cpu import cpu_seconds, cpu_when_quiet, waited_seconds
from benchmarks.end_to_end import Subject, percentile, run
from benchmarks.load import ENDLESS
from benchmarks.measure import per_delta
from benchmarks.processes import Listener, Worker
from benchmarks.provider import BURST, PACED, SMALL, start_stamping_provider
from benchmarks.report import BUSY, MILLI, Row, duration, missing_row, ratio_row
from benchmarks.spread import Spread
from benchmarks.storage import storage_rows
from benchmarks.subjects.durable import COUNT, Durable
from benchmarks.subjects.servers import start_ours
from thinkwell import App

ROUNDS = 5
SMALL_TURNS = 10

IDLE_JOBS, IDLE_AGENTS = 10_000, 1_000
IDLE_WINDOW = 20.0
IDLE_NOISE = 1.2
"""The most CPU a server with idle schedules may use, of one without: two equal ones differ so."""

INTERRUPTED = 1_000
RESTARTS = 3
LIVE_USERS, LIVE_PAUSE = 10, 0.1
LONGEST = 300.0
"""Seconds after which a run is given up."""

DUE_JOBS, DUE_AGENTS = 10_000, 1_000
DRAINS = 2
WAKES, WAKES_APART = 100, 0.05
HEAD_START = 8.0
"""Seconds before the first job is due: the server has started and is quiet by then."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Room:
    """What the figures share."""

    folder: Path
    provider: Listener
    driver: Worker

    def server(self, name: str, **probes: str) -> Listener:
        """A server with the probes, on the database of that name."""
        place = self.folder / name
        place.mkdir(exist_ok=True)
        return start_ours(self.provider, place, subject="durable", probes=probes)

    def database(self, name: str) -> Path:
        """Where that server keeps its data."""
        return self.folder / name / "thinkwell.db"


class Effort:
    """What a server does from now on: its CPU, and how long other processes kept it waiting."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._cpu, self._waited = self._read()

    def end(self) -> None:
        """Until here. The process must still be there."""
        cpu, waited = self._read()
        self._cpu, self._waited = cpu - self._cpu, waited - self._waited

    def note(self, count: int) -> str:
        """CPU of each of so many; and the wait for a core, if it is what a figure says most about.

        Each wake of an idle server waits anew, so a small share of its time can be most of a lag.
        """
        each = f"; {duration(self._cpu / count)} of CPU each"
        if self._waited < BUSY * max(self._cpu, 0.01):
            return each
        return f"{each}, and {duration(self._waited / count)} waiting for a core"

    def _read(self) -> tuple[float, float]:
        return cpu_seconds(self._pid), waited_seconds(self._pid)


def measure(folder: Path) -> list[Row]:
    """Every figure. One that fails is a line of the table and does not take the others with it."""
    rows: list[Row] = []
    figures: Mapping[str, Callable[[Room], Sequence[Row]]] = {
        "the journal beside a sink": journal_rows,
        "idle schedules": idle_rows,
        "interrupted turns": restart_rows,
        "due jobs": due_rows,
        "waking for a job": wake_rows,
        "storage": lambda room: asyncio.run(storage_rows(room.folder)),
    }
    for what, figure in figures.items():
        print(f"{what} ...", file=sys.stderr, flush=True)
        with start_stamping_provider() as provider, Worker("driver") as driver:
            try:
                rows += figure(Room(folder=folder, provider=provider, driver=driver))
            except RuntimeError as error:
                rows.append(missing_row(what, str(error)))
    return rows


# The journal


def journal_rows(room: Room) -> list[Row]:
    """CPU per delta with the journal, beside a server that keeps no chunk."""
    samples: dict[tuple[str, str], list[float]] = {}
    with (
        room.server("journal-kept") as kept,
        room.server("journal-discarded", BENCH_JOURNAL="discard") as discarded,
    ):
        for number in range(ROUNDS):
            for sink, server in (("kept", kept), ("discarded", discarded)):
                subject = Subject(protocol="thinkwell", server=server)
                asked = partial(run, room.driver, subject)
                small = asked(SMALL, [f"small-{number}"], turns=SMALL_TURNS)["cpu"] / SMALL_TURNS
                for pace, model in (("burst", BURST), ("one each ms", PACED)):
                    cost = asked(model, [f"{pace.replace(' ', '-')}-{number}"])["cpu"]
                    samples.setdefault((pace, sink), []).append(per_delta(cost, small))
    return [
        ratio_row(
            f"delta, {pace}: journal, of a sink that discards",
            Spread(tuple(samples[pace, "kept"])),
            Spread(tuple(samples[pace, "discarded"])),
            1.5,
        )
        for pace in ("burst", "one each ms")
    ]


# Schedules that are not due


def idle_rows(room: Room) -> list[Row]:
    """A server whose agents have schedules for next year, beside one without any, side by side."""
    asyncio.run(plan_jobs(room, "idle", IDLE_JOBS, IDLE_AGENTS))
    (room.folder / "none").mkdir()
    counts = {name: room.folder / f"{name}.count" for name in ("idle", "none")}
    cpu: dict[str, list[float]] = {name: [] for name in counts}
    with (
        room.server("idle", BENCH_STATEMENTS=str(counts["idle"])) as idle,
        room.server("none", BENCH_STATEMENTS=str(counts["none"])) as none,
    ):
        servers = {"idle": idle, "none": none}
        for server in servers.values():
            asyncio.run(cpu_when_quiet(server.pid))
        time.sleep(2)  # what a start leaves for later is done
        ran = {name: statements(file) for name, file in counts.items()}
        for _ in range(ROUNDS):
            before = {name: cpu_seconds(each.pid) for name, each in servers.items()}
            time.sleep(IDLE_WINDOW / ROUNDS)
            for name, each in servers.items():
                cpu[name].append(cpu_seconds(each.pid) - before[name])
        ran = {name: statements(file) - ran[name] for name, file in counts.items()}
    what = f"{IDLE_JOBS:,} schedules of {IDLE_AGENTS:,} agents, none due"
    shares = {name: Spread(tuple(each)) for name, each in cpu.items()}
    return [
        ratio_row(f"{what}: CPU, of none", shares["idle"], shares["none"], IDLE_NOISE),
        Row(
            what=f"{what}: statements in {IDLE_WINDOW:.0f} s",
            shown=f"{ran['idle']} ({ran['none']} without schedules)",
            value=ran["idle"],
            limit=0,
            unit="",
        ),
    ]


def statements(file: Path) -> int:
    """How many a server has run so far."""
    return COUNT.unpack(file.read_bytes())[0]


async def plan_jobs(room: Room, name: str, jobs: int, agents: int) -> None:
    """Store schedules for next year, evenly over the agents, in a process that ends."""
    later = datetime.fromtimestamp(time.time() + 365 * 24 * 3600, UTC)
    room.database(name).parent.mkdir()
    async with App(agents=[Durable], store=f"sqlite:///{room.database(name)}") as app:
        for number in range(agents):
            agent = app.agent(Durable, f"{SMALL}.due-{number}")
            planned = (
                agent.schedules.schedule("work", each, at=later, idempotent=False)
                for each in range(jobs // agents)
            )
            await asyncio.gather(*planned)


# A restart


def restart_rows(room: Room) -> list[Row]:
    """Kill a server in the middle of a thousand answers; time what the next one does."""
    begins: list[Sequence[float]] = []
    ready: list[float] = []
    waits: list[float] = []
    note = ""
    for number in range(RESTARTS):
        seconds, listens, live, note = one_restart(room, f"restart-{number}")
        begins.append(seconds)
        ready.append(listens)
        waits += live
    what = f"{INTERRUPTED:,} interrupted turns"
    last, middle = Spread(tuple(map(max, begins))), Spread(tuple(map(statistics.median, begins)))
    listening = Spread(tuple(ready)).median
    return [
        Row(
            what=f"{what}: all answer again after (wall, from the start of the process)",
            shown=f"{last.show(duration)}; half of them {duration(middle.median)}; "
            f"it listens after {duration(listening)}{note}",
            value=last.high,
            limit=5,
            unit="s",
        ),
        live_row(f"{what}: live users' first delta meanwhile", waits, 100),
    ]


def one_restart(room: Room, name: str) -> tuple[Sequence[float], float, Sequence[float], str]:
    """When each turn answered again, when the server listened, what live users waited; its CPU."""
    names = [f"cut-{number}" for number in range(INTERRUPTED)]
    with room.server(name) as server, Worker("driver") as others:
        place = {"protocol": "thinkwell", "base": server.address}
        others.order("open", names=names, model=ENDLESS, **place)
        others.order("hold")
        server.process.kill()
        server.process.wait()
    stamps = room.folder / f"{name}.stamps"
    began = time.monotonic()
    with room.server(name, BENCH_STAMPS=str(stamps)) as server:
        listens = time.monotonic() - began
        effort = Effort(server.pid)
        live = begin_live(room, server)
        cut = {f"{ENDLESS}.{each}" for each in names}
        wait_for(stamps, "delta", INTERRUPTED, among=cut)
        effort.end()
        waits = live()
        found = {each: at for each, at in read_stamps(stamps, "delta") if each in cut}
    return [at - began for at in found.values()], listens, waits, effort.note(INTERRUPTED)


def begin_live(room: Room, server: Listener) -> Callable[[], Sequence[float]]:
    """Users who ask all the time. Calling the result ends that and says what they waited."""
    names = [f"live-{number}" for number in range(LIVE_USERS)]
    room.driver.order("open", protocol="thinkwell", base=server.address, model=SMALL, names=names)
    room.driver.order("live", pause=LIVE_PAUSE)

    def end() -> Sequence[float]:
        waits = room.driver.order("still")["waits"]
        room.driver.order("close")
        return waits

    return end


def live_row(what: str, waits: Sequence[float], limit: float | None) -> Row:
    """From asking to the first delta, over sockets, with a model that answers at once."""
    late, middle = percentile(list(waits), 99), statistics.median(waits)
    shown = f"p99 {duration(late)}, median {duration(middle)}, longest {duration(max(waits))}"
    shown += f" ({len(waits):,} turns)"
    return Row(what=what, shown=shown, value=late * MILLI, limit=limit, unit="ms")


# Due jobs


def due_rows(room: Room) -> list[Row]:
    """Ten thousand jobs are due at the same moment."""
    lags: list[float] = []
    drained: list[float] = []
    waits: list[float] = []
    note = ""
    for number in range(DRAINS):
        name = f"due-{number}"
        asyncio.run(plan_jobs(room, name, DUE_JOBS, DUE_AGENTS))
        due = make_due(room.database(name), apart=0.0)
        stamps = room.folder / f"{name}.stamps"
        with room.server(name, BENCH_STAMPS=str(stamps)) as server:
            live = begin_live(room, server)
            effort = Effort(server.pid)
            wait_for(stamps, "job", DUE_JOBS)
            effort.end()
            waits += live()
        note = effort.note(DUE_JOBS)
        starts = sorted(at - due for _, at in read_stamps(stamps, "job"))
        if len(starts) != DUE_JOBS:
            raise RuntimeError(f"{len(starts)} jobs began instead of {DUE_JOBS}")
        lags.append(percentile(starts, 99))
        drained.append(starts[-1])
    what = f"{DUE_JOBS:,} jobs of {DUE_AGENTS:,} agents due at once, {LIVE_USERS} users beside"
    rate = DUE_JOBS / statistics.median(drained)
    return [
        Row(
            what=f"{what}: start lag, p99 (wall)",
            shown=f"{Spread(tuple(lags)).show(duration)}; {rate:,.0f} jobs/s{note}",
            value=statistics.median(lags),
        ),
        live_row(f"{what}: users' first delta", waits, 100),
    ]


def wake_rows(room: Room) -> list[Row]:
    """One sleeping agent after another has a due job, on a server with nothing else to do."""
    asyncio.run(plan_jobs(room, "wake", WAKES, WAKES))
    first = make_due(room.database("wake"), apart=WAKES_APART)
    stamps = room.folder / "wake.stamps"
    with room.server("wake", BENCH_STAMPS=str(stamps)) as server:
        asyncio.run(cpu_when_quiet(server.pid))
        effort = Effort(server.pid)
        wait_for(stamps, "job", WAKES)
        effort.end()
    # They are due in the order of their rows, and one begins long before the next is due.
    starts = sorted(at for _, at in read_stamps(stamps, "job"))
    lags = [at - (first + number * WAKES_APART) for number, at in enumerate(starts)]
    late, middle = percentile(lags, 99), statistics.median(lags)
    return [
        Row(
            what="a sleeping agent begins a due job after (wall), median",
            shown=f"{duration(middle)}, p99 {duration(late)}{effort.note(WAKES)}",
            value=middle * MILLI,
            limit=5,
            unit="ms",
        )
    ]


def make_due(database: Path, *, apart: float) -> float:
    """Have stored schedules become due one after another; when the first one is."""
    first = time.time() + HEAD_START
    with closing(sqlite3.connect(database)) as file:
        rows = file.execute("SELECT seq FROM jobs WHERE name = 'work' ORDER BY seq").fetchall()
        dues = [(first + number * apart, seq) for number, (seq,) in enumerate(rows)]
        file.executemany("UPDATE jobs SET due_at = ?1, scheduled_for = ?1 WHERE seq = ?2", dues)
        file.commit()
    return first


def wait_for(stamps: Path, what: str, count: int, *, among: set[str] | None = None) -> None:
    """Until so many things have been stamped."""
    until, found = time.monotonic() + LONGEST, list[str]()
    while time.monotonic() < until:
        found = [name for name, _ in read_stamps(stamps, what) if among is None or name in among]
        if len(found) >= count:
            return
        time.sleep(0.25)  # reading is work on the same cores
    raise RuntimeError(f"only {len(found)} of {count} had begun after {LONGEST:.0f} s")


def read_stamps(stamps: Path, what: str) -> list[tuple[str, float]]:
    """What happened to whom, and when."""
    if not stamps.exists():
        return []
    lines = [line.split() for line in stamps.read_text().splitlines()]
    return [(name, float(at)) for kind, name, at in lines if kind == what]


def load_before() -> str:
    """How busy the machine was before the first figure."""
    return f"{os.getloadavg()[0]:.1f}"
