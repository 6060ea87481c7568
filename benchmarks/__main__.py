"""`python -m benchmarks`: measure everything, print the tables, write RESULTS.md and its plot.

`--quick` measures only ours and the bare path, in less than two minutes, and writes nothing.
`--no-peers` leaves the other servers out, and the page says so. `--beside FOLDER` measures another
checkout of this repository in the same interleaved rounds: what a change costs or saves.
`--only durability` and `--only models` measure that section of the page alone.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

from benchmarks import document, durability, long_conversation, models
from benchmarks.document import Results
from benchmarks.end_to_end import Costs, Subject, end_to_end
from benchmarks.load import (
    AGENTS,
    STREAM_RUNS,
    WINDOW,
    Stream,
    beside_others,
    idle_memory,
    stream,
    tabs_cost,
)
from benchmarks.measure import history_costs, hook_costs, import_seconds, turn_costs
from benchmarks.peers.environments import LIBRARY, PEERS, PeerUnavailableError, prepare
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
    others_row,
    ratio_row,
    stream_rows,
    tabs_row,
    turn_rows,
)
from benchmarks.subjects.servers import start_bare, start_ours, start_peer

OURS, BARE, HTTP, BRIDGE, POWER, OTHER = (
    "thinkwell",
    "bare path",
    "thinkwell, SSE",
    "thinkwell, bridge",
    "thinkwell, power",
    "thinkwell, other checkout",
)
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
    parser.add_argument("--beside", type=Path, help="another checkout, in the same rounds")
    parser.add_argument("--only", choices=["durability", "models"], help="one section of the page")
    options = parser.parse_args()
    if options.only:
        measure_section(options.only)
        return
    rounds = QUICK_ROUNDS if options.quick else ROUNDS
    peers = not (options.quick or options.no_peers)
    results = Results(rounds=rounds, peer_rounds=min(rounds, PEER_ROUNDS))
    with tempfile.TemporaryDirectory() as folder:
        with ExitStack() as stack:
            provider = stack.enter_context(start_stamping_provider())
            subjects = start_own(stack, provider, Path(folder), beside=options.beside)
            if peers:
                subjects |= start_peers(stack, provider, Path(folder))
            elif not options.quick:
                subjects |= dict.fromkeys(PEER_NAMES, "left out with --no-peers")
            measure_servers(results, subjects, stack.enter_context(Worker("driver")))
        measure_load(results, Path(folder), quick=options.quick)
        if not options.quick:
            say("long conversations")
            results.edge += asyncio.run(long_conversation.measure(room(Path(folder), "long")))
            measure_inside(results, Path(folder), peers=peers)
            measure_durability(results, room(Path(folder), "durability"))
            measure_models(results, room(Path(folder), "models"))
    if not options.quick:
        document.write(results)
    print(results.summary())


def measure_section(name: str) -> None:
    """The figures of one section alone; the rest of the page stays as it is."""
    results = Results(rounds=ROUNDS, peer_rounds=PEER_ROUNDS)
    with tempfile.TemporaryDirectory() as folder:
        if name == "models":
            measure_models(results, Path(folder))
            document.write_models(results)
        else:
            measure_durability(results, Path(folder))
            document.write_durability(results)
    print(results.summary())


def measure_models(results: Results, folder: Path) -> None:
    """What each adapter costs."""
    results.load = results.load or durability.load_before()
    results.models += models.measure(folder)


def measure_durability(results: Results, folder: Path) -> None:
    """What durability costs."""
    results.load = durability.load_before()
    results.durable += durability.measure(folder)


def start_own(
    stack: ExitStack, provider: Listener, folder: Path, *, beside: Path | None
) -> dict[str, Subject | str]:
    """Ours in its variants, and the bare path."""
    served = stack.enter_context(start_ours(provider, room(folder, "ours")))
    strict = stack.enter_context(start_ours(provider, room(folder, "power"), durability="power"))
    bare = stack.enter_context(start_bare(provider, room(folder, "bare")))
    some = ("small", "burst")
    subjects: dict[str, Subject | str] = {
        OURS: Subject(protocol="thinkwell", server=served),
        BARE: Subject(protocol="thinkwell", server=bare),
        HTTP: Subject(protocol="thinkwell-http", server=served, scenarios=some),
        BRIDGE: Subject(protocol="thinkwell-bridge", server=served, scenarios=some),
        POWER: Subject(protocol="thinkwell", server=strict, scenarios=(*some, "crowd")),
    }
    if beside is not None:
        other = start_ours(provider, room(folder, "other"), checkout=beside.absolute())
        subjects[OTHER] = Subject(protocol="thinkwell", server=stack.enter_context(other))
    return subjects


def measure_servers(
    results: Results, subjects: Mapping[str, Subject | str], driver: Worker
) -> None:
    """Everything end to end, round by round."""
    say("servers, end to end")
    results.outcomes = end_to_end(
        subjects, driver, results.rounds, limits=dict.fromkeys(PEER_NAMES, results.peer_rounds)
    )
    own, bare = results.outcomes[OURS], results.outcomes[BARE]
    if not isinstance(own, Costs):
        raise SystemExit(f"our own server could not be measured: {own}")
    results.edge += end_to_end_rows(own, bare if isinstance(bare, Costs) else None)
    if isinstance(http := results.outcomes[HTTP], Costs):
        results.edge.append(ratio_row("turn over SSE, of WebSocket", http.turn, own.turn, 1.1))
    if isinstance(other := results.outcomes.get(OTHER), Costs):
        results.edge += beside_rows(own, other)


def beside_rows(own: Costs, other: Costs) -> list[Row]:
    """This checkout as a multiple of the other one."""
    figures = {
        "turn": (own.turn, other.turn),
        "delta, burst": (own.burst_delta, other.burst_delta),
        "delta, one each ms": (own.paced_delta, other.paced_delta),
        "50 agents x 200 deltas": (own.crowd, other.crowd),
        "turns/s": (own.busy, other.busy),
    }
    return [
        ratio_row(f"{what}, of the other checkout", mine, theirs, None)
        for what, (mine, theirs) in figures.items()
        if mine is not None and theirs is not None
    ]


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
    runs: list[Stream] = []

    def watch(subject: Subject, driver: Worker, provider: Listener) -> list[Row]:
        runs.append(stream(subject, driver, provider, agents=agents, window=window))
        return []

    scenarios: dict[str, Scenario] = {
        "several tabs": lambda s, d, _: [tabs_row(*tabs_cost(s, d, results.rounds))],
        **{f"many agents {run + 1}": watch for run in range(1 if quick else STREAM_RUNS)},
        "idle agents": lambda s, d, _: [memory_row(idle_memory(s, d))],
    }
    if not quick:
        scenarios["other turns"] = lambda s, d, _: [
            others_row(*beside_others(s, d, results.rounds))
        ]
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
    if runs:
        results.edge += stream_rows(runs)


def measure_inside(results: Results, folder: Path, *, peers: bool) -> None:
    """Turns in process, ours beside libraries, then ours on top of histories; imports."""
    say("in process")
    with start_provider() as provider, start_tool_provider() as tool_provider:
        urls = {"plain": provider.base_url, "tool": tool_provider.base_url}
        results.inside += measure_turns(urls, folder, peers=peers)
    results.inside += import_rows(import_seconds(IMPORTS))


def measure_turns(urls: Mapping[str, str], folder: Path, *, peers: bool) -> list[Row]:
    """The rows that need our subject process."""
    with ExitStack() as stack:
        workers: dict[str, dict[str, Worker]] = {}
        for kind, url in urls.items():
            workers[kind] = {"thinkwell": ours(url, folder / f"{kind}.db")}
            workers[kind]["pydantic-ai"] = Worker("subjects.peer", "--base-url", url)
            if peers and has_library():
                python = LIBRARY.command[0]
                strands = Worker("subjects.strands_peer", "--base-url", url, python=python)
                workers[kind]["strands"] = strands
            for worker in workers[kind].values():
                stack.enter_context(worker)
        costs = turn_costs(workers["plain"], workers["tool"])
        plain = workers["plain"]["thinkwell"]
        hooks = hook_rows(hook_costs(plain))
        own = costs.pop("thinkwell")
        return turn_rows(own, costs) + hooks + history_rows(history_costs(plain))


def has_library() -> bool:
    """Whether the other library can be measured; says why if not."""
    try:
        prepare(LIBRARY)
    except (PeerUnavailableError, OSError) as error:
        say(f"{LIBRARY.name} is left out: {error}")
        return False
    return True


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
