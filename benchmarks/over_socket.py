"""End to end: provider socket to client socket, the CPU of the server process alone.

The client is this process; the server is `thinkwell serve` in another. The kernel counts a
process's CPU in ticks of 10 ms, so one sample spans several turns.
"""

from __future__ import annotations

import os
import statistics
import sys
from pathlib import Path
from typing import Any

import psutil
from websockets.sync.client import ClientConnection, connect

from benchmarks.measure import ROUNDS, per_delta
from benchmarks.processes import ROOT, Listener
from benchmarks.provider import DELTAS
from thinkwell.core import json
from thinkwell.core.ids import new_id

TURNS = 10
OPTIONS: dict[str, Any] = {"compression": None, "max_size": None}


def socket_cost(base_url: str, folder: Path) -> float:
    """CPU seconds of the server per delta, burst."""
    environment = {**os.environ, "OPENAI_BASE_URL": base_url, "OPENAI_API_KEY": "none"}
    command = [
        str(Path(sys.executable).parent / "thinkwell"),
        *("serve", "benchmarks.subjects.served:app", "--port", "0"),
        *("--store", f"sqlite:///{folder / 'served.db'}"),
    ]
    with Listener(command, {**environment, "PYTHONPATH": str(ROOT)}) as server:
        return _measure(psutil.Process(server.process.pid), f"ws://127.0.0.1:{server.port}/agents")


def _measure(server: psutil.Process, address: str) -> float:
    few: list[float] = []
    many: list[float] = []
    for number in range(ROUNDS):
        for kind, samples in (("small", few), ("burst", many)):
            with connect(f"{address}/{kind}/round-{number}", **OPTIONS) as client:
                _turn(client)
                before = _cpu(server)
                deltas = sum(_turn(client) for _ in range(TURNS))
                samples.append((_cpu(server) - before) / TURNS)
        if deltas < TURNS * DELTAS:
            raise RuntimeError(f"the client saw {deltas} deltas instead of {TURNS * DELTAS}")
    return per_delta(statistics.median(many), statistics.median(few))


def _turn(client: ClientConnection) -> int:
    """Ask once and read until the answer is complete; the number of text deltas seen."""
    request_id = new_id()
    question = {"id": new_id(), "role": "user", "parts": [{"type": "text", "text": "hi"}]}
    body = json.dumps({"messages": [question], "trigger": "submit-message"})
    request = {"id": request_id, "init": {"method": "POST", "body": body}}
    client.send(json.dumps({**request, "type": "cf_agent_use_chat_request"}))
    deltas = 0
    while True:
        frame = json.loads(client.recv())
        if frame.get("id") != request_id:
            continue
        if frame.get("error"):
            raise RuntimeError(f"the turn failed: {frame}")
        if frame.get("done"):
            return deltas
        deltas += '"text-delta"' in frame["body"]


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system
