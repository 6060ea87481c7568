"""An answer that OpenAI keeps is taken up again instead of being paid for twice (spec/04 §9).

Over real sockets; the crash with `kill -9` is in `tests/crash/test_kept_answers.py`.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from tests.travel.support import case_of, same
from tests.turns.support import Stage, running, untyped
from thinkwell import Think, tool
from thinkwell.host.replaying import replay_case
from thinkwell.messages.message import text_of
from thinkwell.models.openai_chat import OpenAIChatModel
from thinkwell.models.openai_responses import OpenAIModel
from thinkwell.testing.mock_provider import AnyReply, MockCall, MockProvider, Reply
from thinkwell.turn.travel.story import tell

LONG = Reply(
    reasoning=["Let me ", "see."],
    deltas=["Hel", "lo ", "wor", "ld"],
    calls=[MockCall(name="look", arguments=['{"what":', '"it"}'], id="call_1")],
)
DONE = Reply(deltas=["Done."])


class Keeper(Think, name="keeper"):
    ran: list[str] = []

    @tool(effect="pure")
    async def look(self, what: str) -> str:
        """Looks something up."""
        self.ran.append(what)
        return f"found {what}"


@pytest.fixture(autouse=True)
def nothing_ran():
    Keeper.ran.clear()


@asynccontextmanager
async def asking(*replies: AnyReply) -> AsyncIterator[tuple[Stage[Any], MockProvider]]:
    async def sleep(_seconds: float) -> None:
        pass

    async with MockProvider(list(replies)) as provider, running(Keeper) as stage:
        model = OpenAIModel("m", base_url=provider.base_url, api_key="k", background=True)
        untyped(stage).model = model
        turns = untyped(stage)._turns
        turns.wire(msgspec.structs.replace(turns.parts, sleep=sleep, random=lambda: 0.0))
        try:
            yield stage, provider
        finally:
            await model.aclose()


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.001)


def held(reply: Reply, after: int) -> Reply:
    return dataclasses.replace(reply, hold_after=after)


async def cut_connection(provider: MockProvider, response_id: str = "resp_1") -> None:
    """The connection over which an answer is read is lost; the answer itself goes on."""
    kept = provider.kept.responses[response_id]
    kept.cut_listeners()
    kept.release()


@pytest.mark.parametrize("after", range(2, 23))
async def test_a_lost_connection_goes_on_with_the_same_answer(after: int):
    async with asking(held(LONG, after), DONE) as (stage, provider):
        client = await stage.connect()
        await client.ask("hi", "q1")
        await until(lambda: provider.kept.responses and provider.kept.responses["resp_1"].sent)
        await cut_connection(provider)
        await client.until_end("q1")
        assert text_of(await stage.answer()) == "Hello worldDone."
        said = [c["delta"] for c in client.chunks("q1") if c["type"] == "text-delta"]
        assert said == ["Hel", "lo ", "wor", "ld", "Done."]
        thought = [c["delta"] for c in client.chunks("q1") if c["type"] == "reasoning-delta"]
        assert thought == ["Let me ", "see."]
        written = [c for c in client.chunks("q1") if c["type"] == "tool-input-delta"]
        assert [c["inputTextDelta"] for c in written] == ['{"what":', '"it"}']
        assert Keeper.ran == ["it"]
        assert len(provider.requests) == 2  # one for each step
        store = untyped(stage)._turns.parts.store
        same(await replay_case(await case_of(store, "q1", "keeper/x"), Keeper))
        assert [response for response, _ in provider.kept.taken_up] == ["resp_1"]


async def test_the_journal_and_the_story_say_that_the_answer_was_taken_up():
    async with asking(held(Reply(deltas=["Hel", "lo"]), 6)) as (stage, provider):
        turn = asyncio.ensure_future(stage.agent.run("hi"))
        await until(lambda: provider.kept.responses and provider.kept.responses["resp_1"].sent)
        await cut_connection(provider)
        result = await turn
        case = await case_of(untyped(stage)._turns.parts.store, result.request_id, "keeper/x")
        (use,) = (await tell(case)).steps[0].models
        assert (use.finish_reason, use.error, len(use.resumed)) == ("stop", None, 1)
        assert use.resumed[0].changed == []
        assert [e.kind for e in case.journal.events if e.kind == "kept"] == []


@pytest.mark.parametrize("how", ["failed", "cancelled", "gone"])
async def test_an_answer_that_cannot_be_taken_up_goes_on_after_the_shown_text(
    how: str, caplog: pytest.LogCaptureFixture
):
    first = held(Reply(deltas=["Hel", "lo"]), 5)
    async with asking(first, Reply(deltas=["lo again"])) as (stage, provider):
        client = await stage.connect()
        await client.ask("hi", "q1")
        await until(lambda: _said(client))
        kept = provider.kept.responses["resp_1"]
        if how == "gone":
            del provider.kept.responses["resp_1"]
        else:
            await kept.end(how)
        kept.cut_listeners()
        with caplog.at_level(logging.WARNING):
            await client.until_end("q1")
        assert text_of(await stage.answer()) == "Hello again"
        assert "cannot be taken up" in caplog.text
        asked = provider.requests[1].body["input"]
        assert {"role": "assistant", "content": "Hel"} in asked
        case = await case_of(untyped(stage)._turns.parts.store, "q1", "keeper/x")
        assert [e.kind for e in case.journal.events].count("failure") >= 1


def _said(client: Any) -> bool:
    return any(c["type"] == "text-delta" for c in client.chunks("q1"))


async def test_a_stop_cancels_the_answer_at_the_provider():
    async with asking(held(LONG, 12)) as (stage, provider):
        client = await stage.connect()
        await client.ask("hi", "q1")
        await until(lambda: _said(client))
        await stage.agent.cancel_chat("q1")
        await client.until_end("q1")
        await until(lambda: provider.kept.cancelled)
        assert provider.kept.cancelled == ["resp_1"]


async def test_a_busy_provider_is_asked_for_the_rest_again():
    async with asking(held(Reply(deltas=["Hel", "lo"]), 5)) as (stage, provider):
        client = await stage.connect()
        await client.ask("hi", "q1")
        await until(lambda: _said(client))
        provider.kept.refuse_once = 503
        await cut_connection(provider)
        await client.until_end("q1")
        assert text_of(await stage.answer()) == "Hello"
        assert len(provider.kept.taken_up) == 2
        assert len(provider.requests) == 1


async def test_another_provider_cannot_take_it_up_and_goes_on_itself():
    async with asking(held(Reply(deltas=["Hel", "lo"]), 5), Reply(deltas=["p"])) as (
        stage,
        provider,
    ):
        client = await stage.connect()
        await client.ask("hi", "q1")
        await until(lambda: _said(client))
        other = OpenAIChatModel("other", base_url=provider.base_url, api_key="k")
        untyped(stage).model = other
        await cut_connection(provider)
        await client.until_end("q1")
        assert text_of(await stage.answer()) == "Help"
        assert provider.requests[1].path.endswith("chat/completions")
        await other.aclose()


async def test_a_finished_answer_leaves_nothing_to_cancel():
    async with asking(DONE) as (stage, provider):
        assert (await stage.agent.run("hi")).text == "Done."
        assert provider.kept.cancelled == []
        assert provider.kept.taken_up == []
