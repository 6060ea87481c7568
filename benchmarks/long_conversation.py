"""`python -m benchmarks.long_conversation`: turns on top of 10,000 messages, beside turns on 100.

Stock tabs send their whole list with every question and take whole transcripts; tabs that declare
it (`thinkwell=1`) send and take what is new. CPU is the server's; bytes are what one tab reads in a
turn. While 22 tabs watch the long conversation, a conversation of another agent goes on in the same
server: the lag of its first deltas says what the long one costs everybody else.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.cpu import cpu_when_quiet
from benchmarks.driver.socket import WebSocket
from benchmarks.end_to_end import percentile
from benchmarks.history import WORDS, history
from benchmarks.processes import ROOT, Listener
from benchmarks.provider import SMALL, start_stamping_provider
from benchmarks.report import MILLI, Row, duration, own_table, ratio_row
from benchmarks.spread import Spread
from benchmarks.subjects.servers import start_ours
from thinkwell import App
from thinkwell.core import json
from thinkwell.core.ids import new_id
from thinkwell.messages.message import UIMessage

SHORT, LONG = 100, 10_000
TABS = 22
TURNS = 5
PROBES, OTHERS, EVERY = 400, 40, 0.02
"""Questions to other agents, to how many of them in turn, seconds between two."""
QUESTION = WORDS * 3
MESSAGE_ID = re.compile(rb'messageId\\":\\"([^\\]+)')


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """One turn, several times."""

    cpu: Spread
    """Seconds of the server."""
    bytes: float
    """Read by one tab; of several the one that reads most."""


class Tab:
    """A client that keeps the list it would show."""

    def __init__(self, url: str, known: Sequence[UIMessage], *, declares: bool) -> None:
        self._url = f"{url}?_pk={new_id()}{'&thinkwell=1' if declares else ''}"
        self._declares = declares
        self._known = [json.dumps(message) for message in known]
        self._last = known[-1]["id"]
        self._socket: WebSocket | None = None
        self._identified = asyncio.get_running_loop().create_future()
        self.end: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.read = 0
        self.lags: list[float] = []
        """From each question to its first delta."""
        self._asked: float | None = None

    async def open(self) -> None:
        self._socket = await WebSocket.connect(self._url, self._take)
        await self._identified

    def begin(self) -> asyncio.Future[None]:
        self.read = 0
        self.end = asyncio.get_running_loop().create_future()
        return self.end

    def ask(self) -> None:
        assert self._socket is not None
        question: dict[str, Any] = {
            "id": new_id(),
            "role": "user",
            "parts": [{"type": "text", "text": QUESTION}],
        }
        self._known.append(json.dumps(question))
        sent = self._known[-1:] if self._declares else self._known
        body = f'{{"messages":[{",".join(sent)}],"trigger":"submit-message"}}'
        request: dict[str, Any] = {
            "type": "cf_agent_use_chat_request",
            "id": new_id(),
            "init": {"method": "POST", "body": body},
        }
        if self._declares:
            request["after"] = self._last
        self._last = question["id"]
        self._asked = asyncio.get_running_loop().time()
        self._socket.send(json.dump_bytes(request))

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()

    def _take(self, text: bytes) -> None:
        self.read += len(text)
        if len(text) > 100_000:
            return
        if self._asked is not None and b"text-delta" in text:
            self.lags.append(asyncio.get_running_loop().time() - self._asked)
            self._asked = None
        if found := MESSAGE_ID.search(text):
            self._last = found[1].decode()
            answer = {"id": self._last, "role": "assistant"}
            self._known.append(json.dumps({**answer, "parts": [{"type": "text", "text": "."}]}))
        if b'"done":true' in text and not self.end.done():
            self.end.set_result(None)
        if b"cf_agent_identity" in text and not self._identified.done():
            self._identified.set_result(None)


async def seed(folder: Path, names: dict[str, int]) -> None:
    """Store conversations of these lengths before the server starts."""
    from benchmarks.subjects.served import Served

    async with App(agents=[Served], store=f"sqlite:///{folder / 'thinkwell.db'}") as app:
        for name, count in names.items():
            await app.agent(Served, name).add_messages(list(history(count)))


async def turns(
    server: Listener, name: str, count: int, *, tabs: int, declares: bool
) -> tuple[Cost, list[Tab]]:
    """What one turn costs with so many tabs; the tabs stay open."""
    url = f"{server.address.replace('http', 'ws')}/agents/served/{name}"
    known = history(count)
    watching = [Tab(url, known, declares=declares) for _ in range(tabs)]
    for tab in watching:
        await tab.open()
    cpu: list[float] = []
    read: list[int] = []
    for _ in range(TURNS + 1):
        before = await cpu_when_quiet(server.pid)
        await one_turn(watching)
        cpu.append(await cpu_when_quiet(server.pid) - before)
        read.append(max(tab.read for tab in watching))
    cost = Cost(cpu=Spread(tuple(cpu[1:])), bytes=statistics.median(read[1:]))
    return cost, watching


async def one_turn(tabs: Sequence[Tab]) -> None:
    """The first tab asks; all have to see the end."""
    ends = [tab.begin() for tab in tabs]
    tabs[0].ask()
    async with asyncio.timeout(120):
        await asyncio.gather(*ends)


async def lag_of_others(server: Listener, tabs: Sequence[Tab]) -> list[float]:
    """First deltas of other agents while turns of the long conversation follow each other."""

    async def keep_asking() -> None:
        while True:
            await one_turn(tabs)

    asking = asyncio.get_running_loop().create_task(keep_asking())
    command = [sys.executable, "-m", "benchmarks.long_conversation", server.address]
    try:
        probe = await asyncio.create_subprocess_exec(
            *command, cwd=ROOT, stdout=asyncio.subprocess.PIPE
        )
        output, _ = await probe.communicate()
    finally:
        asking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asking
    return json.loads(output)


async def probe(address: str) -> list[float]:
    """Ask one of several other agents at fixed times, whatever the server does; the lags.

    A process of its own, or what it reads for the tabs would be in the figures. From the question
    to the first delta: a server that is held up hears of the question late.
    """
    known = history(1)
    base = f"{address.replace('http', 'ws')}/agents/served/{SMALL}"
    others = [Tab(f"{base}.other-{n}", known, declares=True) for n in range(OTHERS)]
    for other in others:
        await other.open()
        await one_turn([other])
    loop = asyncio.get_running_loop()
    start = loop.time()
    for number in range(PROBES):
        await asyncio.sleep(max(0.0, start + number * EVERY - loop.time()))
        other = others[number % OTHERS]
        other.begin()
        other.ask()
    async with asyncio.timeout(60):
        await asyncio.gather(*(other.end for other in others))
    return [lag for other in others for lag in other.lags[1:]]


async def measure(folder: Path) -> list[Row]:
    """All rows."""
    cases = {
        (kind, count, tabs): f"{SMALL}.{kind}-{count}-{tabs}"
        for kind in ("stock", "declaring")
        for count in (SHORT, LONG)
        for tabs in (1, TABS)
    }
    await seed(folder, {name: count for (_, count, _), name in cases.items()})
    costs: dict[tuple[str, int, int], Cost] = {}
    lags: dict[str, list[float]] = {}
    with start_stamping_provider() as provider, start_ours(provider, folder) as server:
        for (kind, count, tabs), name in cases.items():
            print(f"{kind}, {count} messages, {tabs} tabs ...", file=sys.stderr, flush=True)
            declares = kind == "declaring"
            cost, watching = await turns(server, name, count, tabs=tabs, declares=declares)
            costs[kind, count, tabs] = cost
            if count == LONG and tabs == TABS:
                lags[kind] = await lag_of_others(server, watching)
            for tab in watching:
                tab.close()
    return rows(costs, lags)


def rows(costs: dict[tuple[str, int, int], Cost], lags: dict[str, list[float]]) -> list[Row]:
    """The lines of the table."""
    lines: list[Row] = []
    for kind in ("declaring", "stock"):
        for tabs in (1, TABS):
            short, long = costs[kind, SHORT, tabs], costs[kind, LONG, tabs]
            limited = kind == "declaring"
            what = f"{LONG:,} messages, {tabs} {kind} tab{'s' if tabs > 1 else ''}"
            limit = 1.5 if limited else None
            lines.append(ratio_row(f"{what}: turn, of {SHORT}", long.cpu, short.cpu, limit))
            lines.append(
                Row(
                    what=f"{what}: read by a tab",
                    shown=f"{long.bytes / 1000:,.1f} kB",
                    value=long.bytes / 1024,
                    limit=64 if limited else None,
                    unit="KB",
                )
            )
        late = percentile(lags[kind], 99)
        middle = statistics.median(lags[kind])
        lines.append(
            Row(
                what=f"{LONG:,} messages, {TABS} {kind} tabs: first delta of others (wall), p99",
                shown=f"{duration(late)} (median {duration(middle)})",
                value=late * MILLI,
                limit=50,
                unit="ms",
            )
        )
    return lines


def main() -> None:
    """Measure and print."""
    if len(sys.argv) > 1:
        print(json.dumps(asyncio.run(probe(sys.argv[1]))))
        return
    with tempfile.TemporaryDirectory() as folder:
        print(own_table(asyncio.run(measure(Path(folder)))))


if __name__ == "__main__":
    main()
