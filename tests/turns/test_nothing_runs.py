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


@pytest.mark.parametrize("verb", ["restore", "reset"])
async def test_what_replaces_the_history_while_a_turn_is_accepted_is_refused(verb: str):
    async with create_agent(model=ScriptedModel(["one", "two"])) as agent:
        await agent.run("first")
        submitted = asyncio.ensure_future(agent.submit("second"))
        commits: Any = loosely(agent)._instance.agent._turns.parts.commits
        while not commits._asked:  # its row is asked for and not stored
            await asyncio.sleep(0)
        history = agent.history
        with pytest.raises(TurnActiveError, match=rf"history\.{verb}"):
            await (history.reset() if verb == "reset" else history.restore(RESTORED))
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
        with pytest.raises(ValueError, match=r"steer\(\) needs at least one message"):
            await agent.steer(nothing)
        assert await agent.get_messages() == []
