"""The namespaces of `create_agent` start it, as its verbs do, and are closed with it."""

from __future__ import annotations

import pytest

from thinkwell import create_agent
from thinkwell.core.errors import HostClosedError
from thinkwell.features import Feature
from thinkwell.testing import ScriptedModel


class Notes(Feature):
    name = "notes"

    async def count(self) -> int:
        return await self.kit.storage.get("count", 0)


async def test_the_first_call_of_a_namespace_starts_the_agent():
    agent = create_agent(model=ScriptedModel(), features=[Notes()])
    try:
        assert await agent.storage.get("x") is None
        await agent.storage.set("x", 1)
        assert await agent.storage.get("x") == 1
    finally:
        await agent.close()
    agent = create_agent(model=ScriptedModel(), features=[Notes()])
    try:
        assert await agent.notes.count() == 0
    finally:
        await agent.close()


async def test_a_block_of_writes_starts_the_agent_too():
    agent = create_agent(model=ScriptedModel())
    try:
        async with agent.storage.together():
            await agent.storage.set("x", 1)
            assert await agent.storage.get("x") is None
        assert await agent.storage.list() == {"x": 1}
    finally:
        await agent.close()


@pytest.mark.parametrize("namespace", ["storage", "jobs", "session", "branches", "notes"])
async def test_a_namespace_of_a_closed_agent_says_that_it_is_closed(namespace: str):
    agent = create_agent(model=ScriptedModel(), features=[Notes()])
    async with agent:
        getattr(agent, namespace)
    with pytest.raises(HostClosedError, match="The agent is closed"):
        getattr(agent, namespace)


async def test_what_is_nowhere_is_said_plainly():
    agent = create_agent(model=ScriptedModel())
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        agent.nothing  # noqa: B018
