"""What every model must do, as a pytest class.

Subclass `ModelContract` and give it `serve`: an async context manager that is handed the replies of
the calls to come and yields a model that gives them. A `Reply` says what the model says; `BROKEN`
is a call that fails. The suite needs pytest and pytest-asyncio.

    class TestMyModel(ModelContract):
        @asynccontextmanager
        async def serve(self, *replies): ...

A model that has no reasoning, say, takes that out of `abilities`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Any, ClassVar, Final, TypeVar, cast

import pytest

from thinkwell.core.signal import AbortController, AbortSignal
from thinkwell.messages.model_messages import (
    AssistantMessage,
    FileContent,
    ModelMessage,
    ReasoningContent,
    SystemMessage,
    TextContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
)
from thinkwell.models.base import (
    Failure,
    Finish,
    Model,
    ModelEvent,
    ModelRequest,
    NamedTool,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputStart,
    ToolSpec,
)
from thinkwell.testing.protocols.reply import MockCall, Reply

E = TypeVar("E")

BROKEN: Final = Reply(finish_reason="broken")
"""A call that fails before it says anything."""
SEARCH: Final = ToolSpec("search", "Finds pages.", {"type": "object", "properties": {}})
PIXEL: Final = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwAD"
    "hgGAWjR9awAAAABJRU5ErkJggg=="
)


def asked(text: str = "hi", **fields: Any) -> ModelRequest:
    """A request with one question."""
    return ModelRequest(messages=(UserMessage((TextContent(text),)),), **fields)


async def collect(
    model: Model, request: ModelRequest | None = None, signal: AbortSignal | None = None
) -> list[ModelEvent]:
    """All events of one call."""
    stream = model.stream(request or asked(), signal or AbortController().signal)
    return [event async for event in stream]


def of(kind: type[E], events: Iterable[object]) -> list[E]:
    """The events of one kind."""
    return [event for event in events if isinstance(event, kind)]


def said(events: Iterable[ModelEvent]) -> str:
    """The text of an answer."""
    return "".join(event.delta for event in of(TextDelta, events))


def ended(events: Sequence[ModelEvent]) -> Finish:
    """The terminal event of a call that ended well: exactly one, and last."""
    terminal = [event for event in events if isinstance(event, Finish | Failure)]
    assert terminal == list(events[-1:]), f"one terminal event must come last, not {terminal}"
    assert isinstance(events[-1], Finish), f"expected a Finish, got {events[-1]}"
    return events[-1]


HISTORY: Final[tuple[ModelMessage, ...]] = (
    UserMessage((TextContent("Look at this."), FileContent(PIXEL, "image/png", "dot.png"))),
    AssistantMessage(
        (
            ReasoningContent("I must look.", {"anthropic": {"signature": "sig"}}),
            ReasoningContent("Hm.", {"openai": {"itemId": "rs_1", "encryptedContent": "e"}}),
            ReasoningContent("Well.", {"pydanticAi": {"signature": "other"}}),
            TextContent("I search."),
            ToolCallContent("fc.1|a", "search", {"q": "dot"}),
            ToolCallContent("call_2", "search", {}),
        )
    ),
    ToolMessage(
        (
            ToolResultContent("fc.1|a", "search", "json", {"found": 1}),
            ToolResultContent("call_2", "search", "error-text", "offline"),
        )
    ),
    AssistantMessage((TextContent("One dot."),)),
    SystemMessage("The user went home."),
    UserMessage((TextContent("And now?"), FileContent("data:text/plain,hello", "text/plain"))),
    AssistantMessage((ToolCallContent("open", "search", {}),)),
    UserMessage((TextContent("Never mind."),)),
)
"""A conversation that was held with several providers: ids, thoughts and files of all of them, two
speakers in a row, and a call that nothing came of."""


@pytest.mark.asyncio
class ModelContract:
    """The promises of `thinkwell.models.Model` for any model."""

    abilities: ClassVar[frozenset[str]] = frozenset({"reasoning", "tools", "usage"})

    def serve(self, *replies: Reply) -> AbstractAsyncContextManager[Model]:
        """A model that answers its calls with `replies`, one after the other."""
        raise NotImplementedError("Give the contract a model: override serve(self, *replies).")

    async def events(self, reply: Reply, request: ModelRequest | None = None) -> list[ModelEvent]:
        """The events of one call."""
        async with self.serve(reply) as model:
            return await collect(model, request)

    async def test_it_says_who_it_is(self) -> None:
        """Provider and model id are texts."""
        async with self.serve() as model:
            assert isinstance(model, Model)
            assert model.provider
            assert model.model_id

    async def test_text_lies_between_a_start_and_an_end(self) -> None:
        """Deltas belong to an open part."""
        events = await self.events(Reply(deltas=["Hel", "lo"]))
        starts, ends = of(TextStart, events), of(TextEnd, events)
        assert [part.id for part in starts] == [part.id for part in ends]
        assert {delta.id for delta in of(TextDelta, events)} <= {part.id for part in starts}
        assert (said(events), ended(events).reason) == ("Hello", "stop")

    async def test_every_character_arrives(self) -> None:
        """Whatever script, whatever length."""
        pieces = ["Zoë ", "日本", "語 ", "🙂", "👩‍🚀", "\x00\n\t", '"quoted" \\ ', "x" * 100_000]
        assert said(await self.events(Reply(deltas=pieces))) == "".join(pieces)

    async def test_thousands_of_deltas_arrive_in_order(self) -> None:
        """A burst is no reason to lose one."""
        words = [f"{number} " for number in range(3_000)]
        assert said(await self.events(Reply(deltas=words))) == "".join(words)

    async def test_reasoning_is_no_text(self) -> None:
        """It has parts of its own, closed before the text."""
        if "reasoning" not in self.abilities:
            return
        events = await self.events(Reply(reasoning=["Let ", "me see."], deltas=["Yes."]))
        assert "".join(delta.delta for delta in of(ReasoningDelta, events)) == "Let me see."
        assert said(events) == "Yes."
        assert len(of(ReasoningStart, events)) == len(of(ReasoningEnd, events)) == 1
        kinds = [type(event) for event in events]
        assert kinds.index(ReasoningEnd) < kinds.index(TextStart)

    async def test_a_call_is_told_piece_by_piece_and_whole(self) -> None:
        """The whole input is what the pieces make."""
        if "tools" not in self.abilities:
            return
        call = MockCall(name="search", arguments=['{"q": "do', 't", "n": 1}'], id="c1")
        events = await self.events(Reply(calls=[call]), asked(tools=(SEARCH,)))
        [whole] = of(ToolCall, events)
        assert (whole.tool_name, whole.input) == ("search", '{"q": "dot", "n": 1}')
        assert [start.tool_call_id for start in of(ToolInputStart, events)] == [whole.tool_call_id]
        pieces = "".join(piece.delta for piece in of(ToolInputDelta, events))
        assert pieces in ("", whole.input)
        assert ended(events).reason == "tool-calls"

    async def test_parallel_calls_stay_apart(self) -> None:
        """Each has its id and its input."""
        if "tools" not in self.abilities:
            return
        calls = [MockCall(name="search", arguments=[f'{{"n": {n}}}'], id=f"c{n}") for n in (1, 2)]
        events = await self.events(Reply(deltas=["Wait."], calls=calls), asked(tools=(SEARCH,)))
        told = [(call.tool_name, call.input) for call in of(ToolCall, events)]
        assert told == [("search", '{"n": 1}'), ("search", '{"n": 2}')]
        assert len({call.tool_call_id for call in of(ToolCall, events)}) == 2

    async def test_usage_is_told_at_the_end(self) -> None:
        """What went in and what came out."""
        if "usage" not in self.abilities:
            return
        usage = ended(await self.events(Reply(deltas=["a"]))).usage
        assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (7, 5, 12)

    async def test_a_failure_is_the_last_event(self) -> None:
        """It is data; nothing is raised."""
        events = await self.events(BROKEN)
        assert [type(event) for event in events[-1:]] == [Failure]
        assert len(of(Failure, events)) == 1
        assert isinstance(cast("Failure", events[-1]).error, Exception)

    async def test_an_aborted_signal_asks_nobody(self) -> None:
        """No event, and no error either."""
        controller = AbortController()
        controller.abort()
        async with self.serve() as model:
            assert await collect(model, signal=controller.signal) == []

    async def test_an_abort_ends_the_stream_without_a_terminal_event(self) -> None:
        """What was said stays said; then there is silence."""
        controller = AbortController()
        events: list[ModelEvent] = []
        async with self.serve(Reply(deltas=["word "] * 500, interval=0.01)) as model:
            async for event in model.stream(asked(), controller.signal):
                events.append(event)
                if isinstance(event, TextDelta):
                    controller.abort()
        assert said(events).startswith("word ")
        assert of(Finish, events) == of(Failure, events) == []

    async def test_leaving_a_stream_leaves_the_model_usable(self) -> None:
        """A generator that is closed gives up its call."""
        first = Reply(deltas=["word "] * 500, interval=0.01)
        async with self.serve(first, Reply(deltas=["again"])) as model:
            stream = cast("Any", model.stream(asked(), AbortController().signal))
            async with aclosing(stream):
                async for event in stream:
                    if isinstance(event, TextDelta):
                        break
            assert said(await collect(model)) == "again"

    async def test_calls_at_the_same_time_do_not_mix(self) -> None:
        """Each gets the whole of its own answer."""
        replies = [Reply(deltas=[f"{n}"] * 50) for n in range(8)]
        async with self.serve(*replies) as model:
            answers = await asyncio.gather(*(collect(model) for _ in replies))
        assert sorted(said(events) for events in answers) == [f"{n}" * 50 for n in range(8)]

    async def test_a_request_is_not_changed(self) -> None:
        """It may be sent again, to this model or another."""
        request = asked(tools=(SEARCH,), headers={"X-Team": "blue"})
        before = hash(request)
        async with self.serve(Reply(deltas=["a"]), Reply(deltas=["b"])) as model:
            texts = [said(await collect(model, request)) for _ in range(2)]
        assert (texts, hash(request)) == (["a", "b"], before)

    async def test_a_history_of_other_providers_is_accepted(self) -> None:
        """Ids, thoughts, files and open calls of any of them are put as this one wants them."""
        request = ModelRequest(messages=HISTORY, system="Be brief.", tools=(SEARCH,))
        assert said(await self.events(Reply(deltas=["Fine."]), request)) == "Fine."

    @pytest.mark.parametrize("choice", ["none", "required", NamedTool("search")])
    async def test_a_tool_choice_is_accepted(self, choice: Any) -> None:
        """Whether it is heeded is the provider's affair."""
        request = ModelRequest(messages=HISTORY, tools=(SEARCH,), tool_choice=choice)
        assert said(await self.events(Reply(deltas=["Fine."]), request)) == "Fine."

    async def test_a_history_with_calls_needs_no_tools(self) -> None:
        """A step that may call nothing still sees what was called before."""
        request = ModelRequest(messages=HISTORY)
        assert said(await self.events(Reply(deltas=["Fine."]), request)) == "Fine."

    async def test_every_setting_is_accepted(self) -> None:
        """What the provider does not have is left out, with a warning at most."""
        request = asked(
            max_output_tokens=50,
            temperature=0.5,
            top_p=0.9,
            top_k=5,
            presence_penalty=0.1,
            frequency_penalty=0.1,
            stop_sequences=("END",),
            seed=7,
        )
        assert said(await self.events(Reply(deltas=["Fine."]), request)) == "Fine."
