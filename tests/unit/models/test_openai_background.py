"""Answers that OpenAI keeps are taken up exactly where they were cut (spec/04 §9)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from thinkwell.core.errors import ModelError
from thinkwell.core.signal import AbortController
from thinkwell.models import ResumableModel
from thinkwell.models.base import Bookmark, Failure, Finish, ModelEvent, TextDelta
from thinkwell.models.fallback import FallbackModel
from thinkwell.models.openai_responses import OpenAIModel
from thinkwell.testing import ScriptedModel
from thinkwell.testing.contracts.model import asked, collect
from thinkwell.testing.mock_provider import AnyReply, MockCall, MockProvider, RawReply, Reply

WHOLE = Reply(
    reasoning=["Let me ", "see."],
    deltas=["Hel", "lo ", "world"],
    calls=[MockCall(name="search", arguments=['{"q": ', '"dot"}'], id="call_1")],
)


@asynccontextmanager
async def serving(*replies: AnyReply) -> AsyncIterator[tuple[OpenAIModel, MockProvider]]:
    async with MockProvider(list(replies)) as provider:
        model = OpenAIModel("m", base_url=provider.base_url, api_key="k", background=True)
        try:
            yield model, provider
        finally:
            await model.aclose()


async def taken_up(model: ResumableModel, token: Any) -> list[ModelEvent]:
    kept = msgspec.json.decode(msgspec.json.encode(token))  # as it comes back from the journal
    return [e async for e in model.resume(kept, asked(), AbortController().signal)]


def plain(events: list[ModelEvent]) -> list[ModelEvent]:
    """The events of the answer, without bookmarks and headers."""
    inner = [e.event if isinstance(e, Bookmark) else e for e in events]
    return [
        msgspec.structs.replace(e, headers={}) if isinstance(e, Finish) else e
        for e in inner
        if e is not None
    ]


async def test_from_every_bookmark_on_the_rest_is_the_rest():
    async with serving(WHOLE) as (model, provider):
        events = await collect(model)
        marks = [(n, e) for n, e in enumerate(events) if isinstance(e, Bookmark)]
        assert len(marks) == len(events) - 1  # all but the end
        for place, mark in marks:
            rest = await taken_up(model, mark.token)
            assert plain(rest) == plain(events[place + 1 :]), mark
        assert len(provider.requests) == 1
        assert provider.requests[0].body["store"] is True


async def test_without_background_there_are_no_bookmarks_and_nothing_is_stored():
    async with MockProvider([WHOLE]) as provider:
        model = OpenAIModel("m", base_url=provider.base_url, api_key="k")
        events = await collect(model)
        await model.aclose()
    assert not [e for e in events if isinstance(e, Bookmark)]
    assert provider.requests[0].body["store"] is False


async def test_a_setting_of_the_request_does_the_same_for_a_model_by_name():
    async with MockProvider([WHOLE]) as provider:
        model = OpenAIModel("m", base_url=provider.base_url, api_key="k")
        events = await collect(model, asked(provider_options={"openai": {"background": True}}))
        await model.aclose()
    assert isinstance(events[0], Bookmark)
    body = provider.requests[0].body
    assert (body["background"], body["store"]) == (True, True)


async def test_an_answer_that_still_runs_is_read_as_it_comes():
    async with serving(Reply(deltas=["Hel", "lo"], hold_after=5)) as (model, provider):
        stream = model.stream(asked(), AbortController().signal)
        heard: list[ModelEvent] = []
        async for event in stream:
            heard.append(event)
            if plain(heard)[-1:] == [TextDelta("msg_0", "Hel")]:
                break
        await stream.aclose()  # pyright: ignore[reportAttributeAccessIssue]
        mark = heard[-1]
        assert isinstance(mark, Bookmark)
        provider.kept.responses["resp_1"].release()
        assert plain(await taken_up(model, mark.token))[0] == TextDelta("msg_0", "lo")


@pytest.mark.parametrize("status", [404, 400, 403])
async def test_an_answer_that_is_gone_says_that_nothing_can_be_taken_up(status: int):
    async with serving(WHOLE) as (model, provider):
        first = (await collect(model))[0]
        assert isinstance(first, Bookmark)
        provider.kept.refuse = status
        gone, failure = await taken_up(model, first.token)
        assert gone == Bookmark(None)
        assert isinstance(failure, Failure)


async def test_a_server_that_is_busy_does_not_lose_the_answer():
    async with serving(WHOLE) as (model, provider):
        first = (await collect(model))[0]
        assert isinstance(first, Bookmark)
        provider.kept.refuse = 503
        (failure,) = await taken_up(model, first.token)
        assert isinstance(failure, Failure)
        assert isinstance(failure.error, ModelError)
        assert failure.error.retryable


@pytest.mark.parametrize("status", ["failed", "cancelled"])
async def test_an_answer_that_has_ended_otherwise_cannot_be_taken_up(status: str):
    async with serving(Reply(deltas=["Hello"], hold_after=2)) as (model, provider):
        stream = model.stream(asked(), AbortController().signal)
        first = await anext(stream)
        await stream.aclose()  # pyright: ignore[reportAttributeAccessIssue]
        assert isinstance(first, Bookmark)
        await provider.kept.responses["resp_1"].end(status)
        gone, failure = (await taken_up(model, first.token))[-2:]
        assert gone == Bookmark(None)
        assert isinstance(failure, Failure)


async def test_a_server_without_numbers_gives_no_bookmarks():
    numberless = [b'data: {"type":"response.created","response":{"id":"r"}}\n\n']
    numberless += [b'data: {"type":"response.output_text.delta","delta":"Hi"}\n\n']
    numberless += [b'data: {"type":"response.completed","response":{"id":"r"}}\n\n']
    async with serving(RawReply(chunks=numberless)) as (model, _):
        events = await collect(model)
        assert not [e for e in events if isinstance(e, Bookmark)]
        assert isinstance(events[-1], Finish)


async def test_a_cancel_reaches_the_provider():
    async with serving(Reply(deltas=["Hello"], hold_after=2)) as (model, provider):
        stream = model.stream(asked(), AbortController().signal)
        first = await anext(stream)
        await stream.aclose()  # pyright: ignore[reportAttributeAccessIssue]
        assert isinstance(first, Bookmark)
        assert first.token
        await model.cancel(first.token)
        assert provider.kept.cancelled == ["resp_1"]


async def test_a_chain_takes_up_the_answer_of_the_model_that_gave_it():
    async with MockProvider([RawReply(status=500), WHOLE]) as provider:
        names = ("a", "b")
        models = [
            OpenAIModel(n, base_url=provider.base_url, api_key="k", background=True) for n in names
        ]
        chain = FallbackModel(models)
        events = await collect(chain)
        mark = events[-3]
        assert isinstance(mark, Bookmark)
        assert plain(await taken_up(chain, mark.token)) == [
            plain(events)[-2],
            msgspec.structs.replace(plain(events)[-1], warnings=()),
        ]
        await chain.aclose()
    assert provider.kept.taken_up[0][0] == "resp_1"


class CutBeforeAWord:
    """Its provider keeps the answer, and the connection is lost before the first word."""

    provider, model_id = "openai", "kept"

    async def stream(self, request: Any, signal: Any) -> AsyncIterator[ModelEvent]:
        yield Bookmark({"id": "r", "after": 0})
        yield Failure(ModelError("cut", provider="openai", retryable=True, cut=True))

    async def resume(self, token: Any, request: Any, signal: Any) -> AsyncIterator[ModelEvent]:
        raise AssertionError("nobody takes this answer up")
        yield

    async def cancel(self, token: Any) -> None:
        raise AssertionError("nobody cancels it here")


async def test_a_chain_that_moves_on_takes_back_the_bookmark_of_the_model_before():
    chain = FallbackModel([CutBeforeAWord(), ScriptedModel(["Hello"])])
    marks = [e.token for e in await collect(chain) if isinstance(e, Bookmark)]
    assert len(marks) == 2
    assert marks[-1] is None


async def test_a_model_that_became_a_chain_and_the_other_way_round_take_nothing_up():
    async with serving(WHOLE) as (model, _):
        first = (await collect(model))[0]
        assert isinstance(first, Bookmark)
        chain = FallbackModel([model, ScriptedModel([])])
        of_chain = {"model": 0, "token": first.token}
        for taking, token in ((chain, first.token), (model, of_chain)):
            gone, failure = await taken_up(taking, token)
            assert gone == Bookmark(None)
            assert isinstance(failure, Failure)
            assert token is not None
            await taking.cancel(token)
