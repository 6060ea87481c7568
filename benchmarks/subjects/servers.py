"""The servers that are measured end to end: ours and the peers, each started the way it is used."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from benchmarks.peers.environments import Peer
from benchmarks.processes import ROOT, Listener
from benchmarks.provider import MODELS


def start_ours(
    provider: Listener,
    folder: Path,
    *,
    durability: str = "process",
    checkout: Path = ROOT,
    subject: str = "served",
    probes: Mapping[str, str] | None = None,
) -> Listener:
    """`thinkwell serve` with a SQLite file, of this checkout or of another one.

    `probes` are further variables of its environment.
    """
    command = [str(Path(sys.executable).parent / "thinkwell")]
    command += ["serve", f"benchmarks.subjects.{subject}:app", "--port", "{port}"]
    command += ["--store", f"sqlite:///{folder / 'thinkwell.db'}"]
    # This checkout's subject in front of the other one's package: only the package differs.
    paths = [str(ROOT), str(checkout / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    own = {"PYTHONPATH": os.pathsep.join(paths), "BENCH_DURABILITY": durability}
    return Listener(command, {**environment(provider, folder), **own, **(probes or {})})


def start_bare(provider: Listener, folder: Path) -> Listener:
    """The path without a product on it."""
    command = [sys.executable, "-m", "benchmarks.subjects.bare", "{port}"]
    return Listener(command, environment(provider, folder))


def start_peer(peer: Peer, provider: Listener, folder: Path) -> Listener:
    """A peer's server, from its own environment, in a folder of its own."""
    return Listener(peer.command, environment(provider, folder), cwd=folder)


def environment(provider: Listener, folder: Path) -> dict[str, str]:
    """Where the provider is, and where data may be kept."""
    return {
        **os.environ,
        "OPENAI_BASE_URL": provider.base_url,
        "OPENAI_API_KEY": "none",
        "BENCH_DATABASE": str(folder / "peer.db"),
        "BENCH_MODELS": ",".join(MODELS),
    }
