"""Several people are erased from one agent at the same time (DESIGN §5)."""

from __future__ import annotations

import asyncio

from tests.turns.support import loosely, running
from thinkwell import Principal, Think
from thinkwell.host.client import AgentAddress
from thinkwell.messages.message import text_of

ADDRESS = AgentAddress("shared", "x")


class Shared(Think):
    """Several people ask it."""


async def test_an_agent_that_is_held_for_one_erasure_is_busy_for_the_next():
    async with running(Shared, "one") as stage:
        host = loosely(stage.host)
        async with host._asleep(ADDRESS.id, "ann") as first:
            async with host._asleep(ADDRESS.id, "bob") as second:
                assert (first, second) == (True, False)
            waiting = asyncio.ensure_future(stage.host.agent(ADDRESS))
        assert (await waiting).agent_id == ADDRESS.id
        assert host._held == {}


async def test_two_people_are_erased_at_once_and_the_third_goes_on():
    async with running(Shared, "to ann", "to bob", "to cat", "later") as stage:
        for name in ("ann", "bob", "cat"):
            client = await stage.connect(name, principal=Principal(id=name))
            await client.ask(f"{name} asks", f"q-{name}")
            await client.until_end(f"q-{name}")
        await asyncio.gather(stage.host.erase("ann"), stage.host.erase("bob"))
        agent = loosely((await stage.host.agent(ADDRESS)).agent)
        assert [text_of(m) for m in await agent.get_messages()] == ["cat asks", "to cat"]
