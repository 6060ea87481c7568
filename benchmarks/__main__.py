"""`python -m benchmarks`: measure everything, print the tables, write RESULTS.md and its plot.

`--quick` measures only ours, in less than two minutes, and writes nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

from benchmarks import document, long_conversation
from benchmarks.document import Results
from benchmarks.end_to_end import Costs, Subject, end_to_end
from benchmarks.load import AGENTS, WINDOW, idle_memory, stream, tabs_cost
from benchmarks.measure import history_costs, hook_costs, import_seconds, turn_costs
from benchmarks.peers.environments import PEERS, PeerUnavailableError, prepare
from benchmarks.processes import Listener, Worker
from benchmarks.provider import start_provider, start_stamping_provider, start_tool_provider
from benchmarks.report import (
    Row,
    end_to_end_rows,
    history_rows,
    hook_rows,
    import_rows,
    memory_row,
    missing_row,
    stream_rows,
    tabs_row,
    turn_rows,
)
from benchmarks.subjects.servers import start_ours, start_peer

OURS = "thinkwell"
ROUNDS, PEER_ROUNDS, QUICK_ROUNDS = 5, 3, 3
QUICK_AGENTS, QUICK_WINDOW = 200, 8.0
# `import thinkwell` loads names on first use; the second line is what defining an agent needs.
IMPORTS = {
    "import": "import thinkwell",
    "agent": "from thinkwell import App, Think, tool",
    "peer": "import pydantic_ai",
}


Scenario = Callable[[Subject, Worker, Listener], list[Row]]


def main() -> None:
    """Run all scenarios, one after the other."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only ours, less than two minutes")
    parser.add_argument("--no-peers", action="store_true", help="leave the other servers out")
    options = parser.parse_args()
    rounds = QUICK_ROUNDS if options.quick else ROUNDS
    results = Results(rounds=rounds, peer_rounds=min(rounds, PEER_ROUNDS))
    with tempfile.TemporaryDirectory() as folder:
        measure_servers(results, Path(folder), peers=not (options.quick or options.no_peers))
        measure_load(results, Path(folder), quick=options.quick)
        if not options.quick:
            say("long conversations")
            results.edge += asyncio.run(long_conversation.measure(room(Path(folder), "long")))
            measure_inside(results, Path(folder))
    if not (options.quick or options.no_peers):
        document.write(results)
    print(results.summary())


def measure_servers(results: Results, folder: Path, *, peers: bool) -> None:
    """Ours end to end, beside the peers."""
    with ExitStack() as stack:
        provider = stack.enter_context(start_stamping_provider())
        driver = stack.enter_context(Worker("driver"))
        ours = stack.enter_context(start_ours(provider, room(folder, OURS)))
        subjects: dict[str, Subject | str] = {OURS: Subject(protocol=OURS, server=ours)}
        if peers:
            subjects |= start_peers(stack, provider, folder)
        say("servers, end to end")
        results.outcomes = end_to_end(
            subjects, driver, results.rounds, limits=dict.fromkeys(PEER_NAMES, results.peer_rounds)
        )
        own = results.outcomes[OURS]
        if not isinstance(own, Costs):
            raise SystemExit(f"our own server could not be measured: {own}")
        results.edge += end_to_end_rows(own)


PEER_NAMES = tuple(peer.name for peer in PEERS)


def start_peers(stack: ExitStack, provider: Listener, folder: Path) -> Mapping[str, Subject | str]:
    """Every peer that can be started, and the reason for each that cannot."""
    found: dict[str, Subject | str] = {}
    for peer in PEERS:
        say(f"starting {peer.name}")
        try:
            prepare(peer)
            server = stack.enter_context(start_peer(peer, provider, room(folder, peer.name)))
            found[peer.name] = Subject(protocol=peer.name, server=server)
        except (PeerUnavailableError, RuntimeError, OSError) as error:
            found[peer.name] = str(error)
    return found


def measure_load(results: Results, folder: Path, *, quick: bool) -> None:
    """Ours with several tabs, many agents, many idle agents; a fresh server and client for each.

    One that fails is a line of the table and does not take the others with it.
    """
    agents, window = (QUICK_AGENTS, QUICK_WINDOW) if quick else (AGENTS, WINDOW)
    scenarios: dict[str, Scenario] = {
        "several tabs": lambda s, d, _: [tabs_row(*tabs_cost(s, d, results.rounds))],
        "many agents": lambda s, d, p: stream_rows(stream(s, d, p, agents=agents, window=window)),
        "idle agents": lambda s, d, _: [memory_row(idle_memory(s, d))],
    }
    for what, scenario in scenarios.items():
        say(what)
        with (
            start_stamping_provider() as provider,
            Worker("driver") as driver,
            start_ours(provider, room(folder, what.replace(" ", "-"))) as server,
        ):
            try:
                rows = scenario(Subject(protocol=OURS, server=server), driver, provider)
            except RuntimeError as error:
                rows = [missing_row(what, str(error))]
        results.edge += rows


def measure_inside(results: Results, folder: Path) -> None:
    """Turns in process, ours beside the library, then ours on top of histories; imports."""
    say("in process")
    with start_provider() as provider, start_tool_provider() as tool_provider:
        results.inside += measure_turns(provider.base_url, tool_provider.base_url, folder)
    results.inside += import_rows(import_seconds(IMPORTS))


def measure_turns(base_url: str, tool_url: str, folder: Path) -> list[Row]:
    """The rows that need our subject process."""
    with (
        ours(base_url, folder / "turns.db") as plain,
        ours(tool_url, folder / "tools.db") as with_tool,
        Worker("subjects.peer", "--base-url", base_url) as peer,
        Worker("subjects.peer", "--base-url", tool_url) as peer_with_tool,
    ):
        costs = turn_costs(
            {"thinkwell": plain, "pydantic-ai": peer},
            {"thinkwell": with_tool, "pydantic-ai": peer_with_tool},
        )
        hooks = hook_rows(hook_costs(plain))
        return turn_rows(*costs) + hooks + history_rows(history_costs(plain))


def ours(base_url: str, database: Path) -> Worker:
    """Our subject, with a database of its own."""
    store = f"sqlite:///{database}"
    return Worker("subjects.ours", "--base-url", base_url, "--store", store)


def room(folder: Path, name: str) -> Path:
    """A folder of its own for one server."""
    place = folder / name
    place.mkdir()
    return place


def say(what: str) -> None:
    """Progress, beside the output."""
    print(f"{what} ...", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
