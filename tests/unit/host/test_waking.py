"""Waking agents with unfinished work at a start (DESIGN §1, spec/04 P1)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import ClassVar

import pytest

from tests.turns.support import loosely
from thinkwell import Think
from thinkwell.host.client import AgentAddress
from thinkwell.host.host import Host
from thinkwell.store.sqlite import SqliteStore
from thinkwell.testing import ScriptedModel, pause


class Stubborn(Think):
    """Its start fails as often as it is told to."""

    failures: ClassVar[int] = 0
    model: ClassVar[ScriptedModel]

    async def on_start(self) -> None:
        if Stubborn.failures:
            Stubborn.failures -= 1
            raise RuntimeError("not yet")


async def test_p1_a_start_that_fails_is_tried_again_until_the_waiting_turn_is_answered(
    tmp_path: Path,
):
    gate = pause()
    Stubborn.model = ScriptedModel([[gate, "never"], "answered"])
    first = Host([Stubborn], SqliteStore(tmp_path / "x.db"), drain_timeout=0)
    await first.start()
    agent = (await first.agent(AgentAddress("stubborn", "x"))).agent
    submitted = await loosely(agent).submit("hi")
    await gate.reached()
    await first.stop()

    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        await asyncio.sleep(0)

    Stubborn.failures = 2
    second = Host([Stubborn], SqliteStore(tmp_path / "x.db"), sleep=sleep)
    await second.start()
    while Stubborn.failures or len(waits) < 2:
        await asyncio.sleep(0)
    activation = await second.agent(AgentAddress("stubborn", "x"))
    await activation.wait_until_idle()
    assert (await loosely(activation.agent).get_turn(submitted.request_id)).status == "completed"
    assert waits == [1.0, 2.0]
    await second.stop()


class Late(Think):
    """Its start fails when the test says so."""

    begun: ClassVar[asyncio.Event]
    gate: ClassVar[asyncio.Event]

    async def on_start(self) -> None:
        self.begun.set()
        await self.gate.wait()
        raise RuntimeError("no")


@pytest.mark.parametrize("waits", [True, False])
async def test_a_start_that_fails_is_logged_only_if_nobody_waits_for_it_any_more(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, *, waits: bool
):
    Late.begun, Late.gate = asyncio.Event(), asyncio.Event()
    host = Host([Late], SqliteStore(tmp_path / "x.db"))
    await host.start()
    caller = asyncio.ensure_future(host.agent(AgentAddress("late", "x")))
    await Late.begun.wait()
    if not waits:
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
    Late.gate.set()
    with pytest.raises(RuntimeError, match="no"):  # the same start, so it has ended then
        await (caller if waits else host.agent(AgentAddress("late", "x")))
    await host.stop()
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == (
        [] if waits else ["background task failed"]
    )
