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


EMPTY: Any = {"id": "2", "role": "user", "parts": []}


@pytest.mark.parametrize("nothing", ["", [], EMPTY, [EMPTY], {"role": "user", "content": ""}])
async def test_nothing_to_answer_is_no_turn(nothing: Any):
    async with create_agent(model=ScriptedModel([])) as agent:
        assert (await agent.run(nothing)).status == "skipped"
        assert [chunk async for chunk in agent.stream(nothing)] == []
        with pytest.raises(ValueError, match="at least one message"):
            await agent.submit(nothing)
        with pytest.raises(ValueError, match=r"steer\(\) needs at least one message"):
            await agent.steer(nothing)
        assert await agent.get_messages() == []


@pytest.mark.parametrize("call", ["run", "submit", "steer", "save_messages", "add_messages"])
async def test_a_message_without_an_id_gets_one(call: str):
    hello: Any = {"role": "user", "content": "hello"}
    async with create_agent(model=ScriptedModel(["one", "two"])) as agent:
        for given in (hello, [hello]):
            await getattr(loosely(agent), call)(given)
            await agent.wait_until_stable()
        asked = [each for each in await agent.get_messages() if each["role"] == "user"]
        assert [text_of(message) for message in asked] == ["hello", "hello"]
        assert len({message["id"] for message in asked}) == 2
        assert "id" not in hello


@pytest.mark.parametrize("wrong", [3, None, b"hi", object(), [3], ["hi"], {"role": "user"}, {1, 2}])
async def test_what_is_no_input_is_refused_with_the_forms_there_are(wrong: Any):
    async with create_agent(model=ScriptedModel([])) as agent:

        async def stream(given: Any) -> None:
            async for _ in agent.stream(given):
                pass

        names = ("run", "submit", "steer", "save_messages", "add_messages")
        for call in (*(getattr(loosely(agent), name) for name in names), stream):
            with pytest.raises((TypeError, ValueError), match="Give a text such as"):
                await call(wrong)
        assert await agent.get_messages() == []
