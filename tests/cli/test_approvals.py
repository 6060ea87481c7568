"""`thinkwell approvals` on a database that a real process serves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.cli.test_operating import answer, command
from tests.crash.client import client_of
from tests.crash.process import World, until
from tests.crash.test_answers import AGENT, NOTE, QUESTION

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(tmp_path)
    yield world
    await world.end()


async def test_questions_are_listed_denied_and_allowed_for_ever(world: World):
    server = await world.start()
    assert answer(world, "approvals", "list") == []
    async with client_of(server, AGENT) as client:
        await client.ask(QUESTION, request="r1")
        await client.done("r1")
        (first,) = answer(world, "approvals", "list", "--agent", AGENT)
        assert (first["toolName"], first["input"]) == ("once", {"note": NOTE})
        assert f"{AGENT} once" in command(world, "approvals", "list").out
        denied = command(world, "approvals", "deny", first["approvalId"], "--reason", "not now")
        assert (denied.code, "is denied" in denied.out) == (0, True)
        assert command(world, "approvals", "allow", first["approvalId"]).code == 1
        await client.ask(QUESTION, request="r2")
        await client.done("r2")
        (second,) = answer(world, "approvals", "list")
        allowed = command(world, "approvals", "allow", second["toolCallId"], "--always")
        assert (allowed.code, "always allowed" in allowed.out) == (0, True)
        await until(lambda: world.effects(NOTE), "the call runs")
    (rule,) = answer(world, "approvals", "rules")
    assert rule["arguments"] == {"note": {"equals": NOTE}}
    assert f"{AGENT} once" in command(world, "approvals", "rules").out
    assert command(world, "approvals", "revoke", rule["id"]).code == 0
    assert command(world, "approvals", "revoke", rule["id"]).code == 1
    outcomes = [row["outcome"] for row in answer(world, "approvals", "list", "--all")]
    assert outcomes == ["allowed", "denied"]
