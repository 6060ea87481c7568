"""What needs that nothing runs, and what is asked with nothing (spec/02 §2.31, §2.34, §12.9)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.turns.support import loosely
from thinkwell import create_agent
from thinkwell.core.errors import TurnActiveError
from thinkwell.messages.message import text_of
from thinkwell.messages.model_messages import TextContent, UserMessage
from thinkwell.testing import ScriptedModel

RESTORED = [UserMessage(content=(TextContent("restored"),))]


async def test_a_restore_that_comes_while_a_turn_is_accepted_is_refused():
    async with create_agent(model=ScriptedModel(["one", "two"])) as agent:
        await agent.run("first")
        submitted = asyncio.ensure_future(agent.submit("second"))
        commits: Any = loosely(agent)._instance.agent._turns.parts.commits
        while not commits._asked:  # its row is asked for and not stored
            await asyncio.sleep(0)
        with pytest.raises(TurnActiveError, match=r"history\.restore"):
            await agent.history.restore(RESTORED)
        await submitted
        await agent.wait_until_stable()
        texts = [text_of(message) for message in await agent.get_messages()]
        assert texts == ["first", "one", "second", "two"]


@pytest.mark.parametrize("nothing", ["", []])
async def test_nothing_to_answer_is_no_turn(nothing: Any):
    async with create_agent(model=ScriptedModel([])) as agent:
        assert (await agent.run(nothing)).status == "skipped"
        assert [chunk async for chunk in agent.stream(nothing)] == []
        with pytest.raises(ValueError, match="at least one message"):
            await agent.submit(nothing)
        assert await agent.get_messages() == []
