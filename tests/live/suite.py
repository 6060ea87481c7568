"""The model contract against real providers. `make live` runs it; the usual tests do not find it.

A real model says what it likes, so each reply of the contract becomes an instruction to say exactly
that. What no model can be made to repeat (100,000 characters, 3,000 deltas, token counts) is
checked by its shape instead. Everything else is the suite as it is.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Final

import msgspec
import pytest

from tests.live.providers import Live, look_around
from thinkwell.core.signal import AbortSignal
from thinkwell.messages.model_messages import (
    AssistantMessage,
    ModelMessage,
    ReasoningContent,
    TextContent,
    UserMessage,
)
from thinkwell.models.base import Model, ModelEvent, ModelRequest, NamedTool, ToolCall
from thinkwell.models.fallback import close_model
from thinkwell.models.resolve import resolve_model
from thinkwell.testing.contracts.model import (
    BROKEN,
    HISTORY,
    SEARCH,
    ModelContract,
    asked,
    collect,
    ended,
    of,
    said,
)
from thinkwell.testing.protocols.reply import MockCall, Reply

LONGEST: Final = 300.0
"""Seconds for one test: real providers have slow minutes."""
SAY: Final = "Reply with exactly the text between the quotes, without the quotes: "
CALL: Final = "Call tools now, all in one go and without a word, with exactly these inputs: "
REPEAT: Final = "Write the word `word` 300 times, separated by single spaces, and nothing else."


def instruction(reply: Reply) -> str:
    """What makes a model give a reply."""
    if reply.calls:
        inputs = [f"{call.name}({''.join(call.arguments)})" for call in reply.calls]
        return CALL + "; ".join(inputs)
    text = "".join(reply.deltas)
    return REPEAT if text.startswith("word ") else f'{SAY}"{text}"'


class Instructed:
    """A real model that is told what to say."""

    def __init__(self, model: Model, replies: tuple[Reply, ...], broken: Model) -> None:
        self.provider, self.model_id = model.provider, model.model_id
        self._model, self._broken = model, broken
        self._replies = list(replies)

    async def stream(self, request: ModelRequest, signal: AbortSignal) -> AsyncIterator[ModelEvent]:
        """Run one call."""
        if signal.aborted:
            return
        reply = self._replies.pop(0)
        wanted = UserMessage((TextContent(instruction(reply)),))
        messages = (*_honest(request.messages, self.provider), wanted)
        told = msgspec.structs.replace(request, messages=messages)
        model = self._broken if reply is BROKEN else self._model
        events: Any = model.stream(told, signal)
        try:
            async for event in events:
                yield event
        finally:
            await events.aclose()


def _honest(messages: tuple[ModelMessage, ...], provider: str) -> tuple[ModelMessage, ...]:
    """Without signatures that we made up: whoever signs for real notices."""
    return tuple(
        AssistantMessage(
            tuple(
                part
                for part in message.content
                if not isinstance(part, ReasoningContent)
                or provider not in (part.provider_metadata or {})
            )
        )
        if isinstance(message, AssistantMessage)
        else message
        for message in messages
    )


@pytest.mark.timeout(LONGEST)
class LiveContract(ModelContract):
    """The contract for one real model."""

    name: ClassVar[str]
    abilities: ClassVar[frozenset[str]] = frozenset({"tools", "usage"})

    @asynccontextmanager
    async def serve(self, *replies: Reply) -> AsyncIterator[Model]:
        """The real model, which is told to say `replies`."""
        provider = self.name.partition(":")[0]
        model, broken = resolve_model(self.name), resolve_model(f"{provider}:no-such-model")
        try:
            yield Instructed(model, replies, broken)
        finally:
            await close_model(model)
            await close_model(broken)

    async def test_every_character_arrives(self) -> None:
        """Whatever script."""
        text = "Zoë 日本語 🙂"
        assert text in said(await self.events(Reply(deltas=[text])))

    async def test_thousands_of_deltas_arrive_in_order(self) -> None:
        """As many as a model makes of a hundred numbers."""
        numbers = " ".join(str(number) for number in range(1, 101))
        told = re.findall(r"\d+", said(await self.events(Reply(deltas=[numbers]))))
        assert told == numbers.split()

    async def test_usage_is_told_at_the_end(self) -> None:
        """What went in and what came out."""
        usage = ended(await self.events(Reply(deltas=["a"]))).usage
        assert usage.input_tokens
        assert usage.output_tokens
        assert usage.total_tokens

    async def test_a_call_is_told_piece_by_piece_and_whole(self) -> None:
        """The input may have spaces of the model's own, so it is compared less closely."""
        await self.test_parallel_calls_stay_apart()

    async def test_parallel_calls_stay_apart(self) -> None:
        """As many as the model makes: each has its id and an input of its own."""
        calls = [MockCall(name="search", arguments=[f'{{"n": {n}}}'], id=f"c{n}") for n in (1, 2)]
        events = await self.events(Reply(calls=calls), asked(tools=(SEARCH,)))
        told = of(ToolCall, events)
        assert told
        assert len({call.tool_call_id for call in told}) == len(told)
        assert {call.tool_name for call in told} == {"search"}
        assert ended(events).reason == "tool-calls"

    async def test_calls_at_the_same_time_do_not_mix(self) -> None:
        """Each gets the whole of its own answer."""
        replies = [Reply(deltas=[f"number {n}"]) for n in range(4)]
        async with self.serve(*replies) as model:
            answers = await asyncio.gather(*(collect(model) for _ in replies))
        assert sorted(said(events) for events in answers) == [f"number {n}" for n in range(4)]

    @pytest.mark.parametrize("choice", ["none", "required", NamedTool("search")])
    async def test_a_tool_choice_is_accepted(self, choice: Any) -> None:
        """A real provider heeds it, so there may be no text."""
        request = ModelRequest(messages=HISTORY, tools=(SEARCH,), tool_choice=choice)
        ended(await self.events(Reply(deltas=["Fine."]), request))


for each in look_around():
    if isinstance(each, Live):
        title = f"Test{each.provider.title().replace('-', '')}"
        fields = {"name": f"{each.provider}:{each.model}", "__module__": __name__}
        globals()[title] = type(title, (LiveContract,), fields)
