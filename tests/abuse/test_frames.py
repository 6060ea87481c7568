"""200,000 frames no honest client sends: nothing escapes or leaks, the socket stays usable."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.abuse.flood import Flood
from tests.abuse.frames import FrameMaker
from tests.abuse.process import DEADLINE, ServerProcess, server_process

FRAMES = 200_000
WARM = 20_000
"""Frames after which the memory counts: by then every cache and pool has been used."""
BATCH = 250
TABS = 4
GROWTH = 20 * 1024 * 1024
SEED = 4


@pytest.mark.timeout(600)
async def test_200000_strange_frames_leave_the_server_as_it_was(tmp_path: Path):
    """Spec/01 §3.3."""
    async with server_process(tmp_path, "tests.abuse.agents:app") as server:
        tabs = [
            await Flood.connect(server.port, f"/agents/victim/{'ab'[i % 2]}?_pk=tab{i}")
            for i in range(TABS)
        ]
        frames = FrameMaker(SEED)
        await abuse(tabs, frames, WARM)
        before = server.memory()
        await abuse(tabs, frames, FRAMES - WARM)
        growth = server.memory() - before
        for tab in tabs:
            await tab.close()
        check(server, growth)


async def abuse(tabs: list[Flood], frames: FrameMaker, count: int) -> None:
    """Send `count` frames, a batch at a time to each tab in turn; after each a call must work."""
    for number in range(count // BATCH):
        tab = tabs[number % len(tabs)]
        await tab.send([frames.make() for _ in range(BATCH)])
        mark = f"probe-{number}-of-{count}"
        call = {"type": "rpc", "id": mark, "method": "echo", "args": ["still here"]}
        await tab.answers(f'"id":"{mark}"', json.dumps(call), DEADLINE)


def check(server: ServerProcess, growth: int) -> None:
    assert server.alive
    assert not server.defects()
    assert growth <= GROWTH, f"the server grew by {growth / 2**20:.1f} MB"
