"""RESULTS.md: the tables, the plot beside them, and how the numbers came about."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.end_to_end import Costs, Outcome
from benchmarks.peers.environments import LIBRARY, PEERS
from benchmarks.plot import draw
from benchmarks.report import Row, own_table, peer_table

HERE = Path(__file__).parent
RESULTS = HERE / "RESULTS.md"
PLOT = HERE / "results.svg"


@dataclass(slots=True)
class Results:
    """Everything one run has measured."""

    rounds: int
    peer_rounds: int
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    """End to end, by server; ours is the first."""
    edge: list[Row] = field(default_factory=list)
    """Ours, end to end."""
    inside: list[Row] = field(default_factory=list)
    """Ours, in process."""
    durable: list[Row] = field(default_factory=list)
    """What durability costs."""
    models: list[Row] = field(default_factory=list)
    """What each adapter costs."""
    load: str = ""
    """How busy the machine was before those were measured."""

    def summary(self) -> str:
        """What is printed at the end."""
        parts = [own_table(self.edge)] if self.edge else []
        if len(self.outcomes) > 1:
            parts.append(peer_table(self.outcomes))
        if self.inside:
            parts.append(own_table(self.inside))
        parts += [own_table(rows) for rows in (self.durable, self.models) if rows]
        measured = [*self.edge, *self.inside, *self.durable, *self.models]
        missed = [row.what for row in measured if not row.met]
        parts.append(f"Missed: {'; '.join(missed)}." if missed else "Every target is met.")
        return "\n\n".join(parts)


def write(results: Results) -> None:
    """Write the page and the plot."""
    measured = {n: each for n, each in results.outcomes.items() if isinstance(each, Costs)}
    PLOT.write_text(draw(measured))
    RESULTS.write_text(
        PAGE.format(
            python=platform.python_version(),
            system=f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
            edge=own_table(results.edge),
            peers=peer_table(results.outcomes),
            inside=own_table(results.inside),
            durability=durability_section(results),
            models=models_section(results),
            how=_how(results.outcomes),
            library=f"{LIBRARY.name} {LIBRARY.version}: {LIBRARY.how}.",
            rounds=results.rounds,
            peer_rounds=results.peer_rounds,
        )
    )


def write_durability(results: Results) -> None:
    """Replace that section of the page and leave the others as they were measured."""
    RESULTS.write_text(with_section(RESULTS.read_text(), durability_section(results)))


def write_models(results: Results) -> None:
    """The same for what adapters cost."""
    RESULTS.write_text(with_section(RESULTS.read_text(), models_section(results)))


def with_section(page: str, section: str) -> str:
    """The page with a section instead of the one of the same heading; at its end if it has none."""
    heading = section.splitlines()[0]
    old = re.compile(rf"^{re.escape(heading)}\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
    if old.search(page) is None:
        return f"{page.rstrip()}\n\n{section}\n"
    return old.sub(lambda _: f"{section}\n\n", page).rstrip() + "\n"


def durability_section(results: Results) -> str:
    """Its heading, its table and how the figures came about."""
    table = own_table(results.durable)
    return DURABILITY.format(table=table, load=results.load, cores=os.cpu_count()).strip()


def models_section(results: Results) -> str:
    """Its heading, its table and how the figures came about."""
    table = own_table(results.models)
    return MODELS.format(table=table, load=results.load, cores=os.cpu_count()).strip()


def _how(outcomes: Mapping[str, Outcome]) -> str:
    known: Sequence[str] = [
        f"- {peer.name} {peer.version}: {peer.how}." for peer in PEERS if peer.name in outcomes
    ]
    return "\n".join([*VARIANTS, *known])


VARIANTS = (
    "- thinkwell, SSE: `useChat` over HTTP; bridge: through pydantic-ai's model for the same "
    'provider; power: `durability="power"`, every commit synced to the disk, as agno\'s are.',
    "- bare path: uvicorn, aiohttp, sqlite3 and msgspec, written by hand for this and nothing else "
    "(`subjects/bare.py`): what a read of the provider's socket brought is committed, then sent.",
)


DURABILITY = """
## What durability costs

{table}

Measured by `python -m benchmarks --only durability` on {cores} cores, with a load average of {load}
at its start.

- Journal: two servers, one of which hands chunks to its clients in the same groups but neither
  stores nor packs them.
- Idle schedules: two servers side by side, each with a count of all SQL statements that its
  connections run.
- Interrupted turns: `kill -9` in the middle of all of them, after their first delta. A turn answers
  again when the new process has the first delta of its next attempt. Time begins with the new
  process, so its imports are part of it. Ten users connect as soon as it listens and ask again
  100 ms after each answer; what they wait is counted from asking, by their own sockets.
- Due jobs: all are due at one moment and their agents sleep. A job has begun when its handler runs.
- Bytes are those of rows and indexes. Cleaned up is what `Retention` leaves once everything is past
  its age.
"""


MODELS = """
## What model adapters cost

{table}

Measured by `python -m benchmarks --only models` on {cores} cores, with a load average of {load} at
its start. CPU of our process, without hooks; the provider is another process.

- A delta is measured inside a turn, which stores it, and in a call of the adapter alone: what many
  deltas cost more than two, by their number.
- A model call has two deltas: its request, its connection, its answer, and nothing of the turn.
- Streams: each says one word every 25 ms for a second. The one beside them has a reader that takes
  nothing after the first word. Wall time until all others have ended, beside the same without it.
"""


PAGE = """# Results

Written by `make bench`. Python {python}, {system}.

## From the provider's socket to the client's

CPU of the server process alone, if nothing else is said.

{edge}

## Beside other servers

![CPU per delta and per turn, by server](results.svg)

{peers}

{how}

## In process

Without sockets to clients; the libraries beside it store nothing. {library}

{inside}

{durability}

{models}

## How it is measured

Mock provider, server and client are three processes on one machine. Thinkwell is `thinkwell serve`
with two `on_chunk` hooks; it commits turn, journal and messages to a SQLite file. Its client speaks
WebSocket and sends the transcript with every question, as the npm clients do. All servers talk to
the same provider. Stored conversations have messages of 1 to 2 KB, every answer with a tool call.

CPU is read from the CPU clock of the server's process (all threads), after the process has become
quiet. A delta's cost is that of a turn with 2,000 deltas minus that of a turn with two, divided by
the difference. A turn follows another on the same conversation, ten in a row. The 50 agents are
connected and have not run before. The first delta is stamped by the provider and by the client with
the same clock; so is every delta of the many agents, whose lag is taken while none begins or ends.
Figures are medians of {rounds} interleaved rounds ({peer_rounds} with the peers), with the least
and the most of them; ratios are taken round by round. What holds for every run is judged by its
worst. CPU time is fairly robust against other work on the machine, wall time is not.
"""
