"""What each adapter can, found out by asking it.

`python -m tests.contracts.capabilities` writes the table of docs/models.md, and a test fails when
the page says something else.

A probe runs one subject against the strict mock of its provider and looks at what was sent and what
came back. Nothing here is a claim: a cell says yes because its probe saw it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from openai import AsyncOpenAI
from pydantic_ai.models.openai import OpenAIChatModel as TheirModel
from pydantic_ai.providers.openai import OpenAIProvider

from tests.architecture.support import ROOT
from tests.unit.models import test_anthropic as messages
from tests.unit.models import test_openai_chat as chat
from tests.unit.models import test_openai_responses as responses
from thinkwell.core import json
from thinkwell.core.errors import ModelError
from thinkwell.messages.model_messages import (
    AssistantMessage,
    FileContent,
    ModelMessage,
    ReasoningContent,
    TextContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
)
from thinkwell.models.anthropic import AnthropicModel
from thinkwell.models.base import (
    Failure,
    FilePart,
    ModelEvent,
    ModelRequest,
    ReasoningDelta,
    ReasoningEnd,
    SourceUrl,
    TextDelta,
    ToolCall,
    ToolInputDelta,
    ToolResult,
)
from thinkwell.models.error_classes import default_error_classifier
from thinkwell.models.openai_chat import OpenAIChatModel
from thinkwell.models.openai_responses import OpenAIModel
from thinkwell.models.pydantic_ai import PydanticAIModel
from thinkwell.testing.contracts.model import PIXEL, SEARCH, asked, collect, ended, of
from thinkwell.testing.mock_provider import AnyReply, MockProvider, RawReply
from thinkwell.testing.protocols.reply import MockCall, Reply

PAGE: Final = ROOT / "docs" / "models.md"
BEGIN, END = "<!-- capabilities: made by tests/contracts/capabilities.py -->", "<!-- end -->"
DONE: Final = Reply(deltas=["Fine."])
PDF: Final = "JVBERi0xLjQ="
DOT: Final = PIXEL.partition(",")[2]


@dataclass(frozen=True)
class Subject:
    """One column: an adapter, and how its provider says what not every protocol has."""

    title: str
    make: Callable[[MockProvider], Any]
    options: str = ""
    """Under which name it takes `provider_options`."""
    prefix: str = ""
    """What its options begin with."""
    search: AnyReply | None = None
    """An answer for which the provider has searched: the call, its result, the page."""
    drawing: AnyReply | None = None
    """An answer with a picture."""


class Bridge(PydanticAIModel):
    """OpenAI's chat completions through pydantic-ai and OpenAI's own client."""

    def __init__(self, mock: MockProvider) -> None:
        self._client = AsyncOpenAI(base_url=mock.base_url, api_key="k", max_retries=0)
        super().__init__(TheirModel("m", provider=OpenAIProvider(openai_client=self._client)))

    async def aclose(self) -> None:
        """Close its connections."""
        await self._client.close()


_CITED = (
    '"annotations":[{"type":"url_citation","url_citation":'
    '{"url":"https://a.example","title":"A","start_index":0,"end_index":1}}]'
)
_DRAWN = '"images":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]'
_FOUND = [{"type": "web_search_result", "url": "https://a.example", "title": "A"}]
_PAGE = {"type": "web_search_result_location", "url": "https://a.example", "title": "A"}
_SEARCHED = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {"type": "search", "query": "a"},
}
_ADDED = {
    "type": "response.output_text.annotation.added",
    "annotation": {"type": "url_citation", "url": "https://a.example", "title": "A"},
}
_PICTURE = {"type": "image_generation_call", "id": "ig_1", "result": "AA==", "status": "done"}

SUBJECTS: Final = (
    Subject(
        "chat completions",
        lambda mock: OpenAIChatModel("m", base_url=mock.base_url, api_key="k"),
        options="openai-chat",
        search=chat.raw(chat.delta(f'"content":"A.",{_CITED}'), chat.STOP),
        drawing=chat.raw(chat.delta(f'"content":"",{_DRAWN}'), chat.STOP),
    ),
    Subject(
        "responses",
        lambda mock: OpenAIModel("gpt-4.1", base_url=mock.base_url, api_key="k"),
        options="openai",
        search=responses.raw(
            responses.CREATED,
            *responses.item(0, _SEARCHED),
            *responses.message(1, "A.", _ADDED),
            responses.DONE,
        ),
        drawing=responses.raw(responses.CREATED, *responses.item(0, _PICTURE), responses.DONE),
    ),
    Subject(
        "messages",
        lambda mock: AnthropicModel("m", base_url=mock.origin, api_key="k", native_output=True),
        options="anthropic",
        search=messages.raw(
            messages.START,
            *messages.block(
                0, {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}
            ),
            *messages.block(
                1, {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": _FOUND}
            ),
            *messages.block(
                2,
                {"type": "text", "text": ""},
                {"type": "citations_delta", "citation": _PAGE},
                {"type": "text_delta", "text": "A."},
            ),
            messages.END,
            messages.STOP,
        ),
    ),
    Subject(
        "bridge (chat completions)",
        Bridge,
        options="openai",
        prefix="openai_",
        search=chat.raw(chat.delta(f'"content":"A.",{_CITED}'), chat.STOP),
        drawing=chat.raw(chat.delta(f'"content":"",{_DRAWN}'), chat.STOP),
    ),
)


class Probe:
    """One subject and what it was asked."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.sent: list[str] = []

    @asynccontextmanager
    async def model(self, *replies: AnyReply) -> AsyncIterator[Any]:
        async with MockProvider(list(replies)) as mock:
            model = self.subject.make(mock)
            try:
                yield model
            finally:
                self.sent = [json.dumps(request.body) for request in mock.requests]
                await model.aclose()

    async def events(
        self, reply: AnyReply, request: ModelRequest | None = None
    ) -> list[ModelEvent]:
        async with self.model(reply) as model:
            return await collect(model, request)

    async def sends(self, *parts: str, **fields: Any) -> bool:
        """Whether a request's settings reach the provider."""
        await self.events(DONE, asked(**fields))
        return all(part in self.sent[0] for part in parts)

    async def takes(self, *conversation: ModelMessage, sent: str) -> bool:
        """Whether the provider sees something of a conversation."""
        await self.events(DONE, ModelRequest(messages=conversation, tools=(SEARCH,)))
        return sent in self.sent[0]

    async def option(self, **option: Any) -> bool:
        (name,) = option
        given = {self.subject.options: {f"{self.subject.prefix}{name}": option[name]}}
        await self.events(DONE, asked(provider_options=given))
        return f'"{name}"' in self.sent[0]


def _files(kind: str, body: str) -> UserMessage:
    url = f"data:{kind};base64,{body}"
    return UserMessage((TextContent("Look."), FileContent(url, kind, "a.file")))


async def reasoning_back(probe: Probe) -> bool:
    """A thought comes back with what its provider wants to see again."""
    thinking = Reply(reasoning=["Hm."], signature="c2ln", deltas=["Yes."])
    events = await probe.events(thinking)
    [end] = of(ReasoningEnd, events)
    thought = ReasoningContent("Hm.", end.provider_metadata)
    answered = AssistantMessage((thought, TextContent("Yes.")))
    return await probe.takes(
        UserMessage((TextContent("a"),)), answered, UserMessage((TextContent("b"),)), sent="c2ln"
    )


async def picture_in_result(probe: Probe) -> bool:
    """A tool's picture is seen as one, not read as text."""
    content = [{"type": "media", "mediaType": "image/png", "data": DOT}]
    seen = await probe.takes(
        UserMessage((TextContent("a"),)),
        AssistantMessage((ToolCallContent("c1", "search", {}),)),
        ToolMessage((ToolResultContent("c1", "search", "content", content),)),
        sent=DOT,
    )
    return seen and "media" not in probe.sent[0].replace("media_type", "")


async def refused(probe: Probe, status: int, body: str, kind: str) -> bool:
    """A refusal is known for what it is."""
    reply = RawReply(chunks=[body.encode()], status=status, content_type="application/json")
    event = (await probe.events(reply))[-1]
    assert isinstance(event, Failure)
    return isinstance(event.error, ModelError) and default_error_classifier(event.error) == kind


async def answered(probe: Probe, reply: AnyReply | None, kind: type[Any]) -> bool:
    """Whether an answer of the provider has an event of that kind."""
    return reply is not None and bool(of(kind, await probe.events(reply)))


async def usage(probe: Probe, field: str) -> bool:
    """Whether the provider's details of the usage are told."""
    details = {
        "prompt_tokens": 7,
        "completion_tokens": 5,
        "total_tokens": 12,
        "prompt_tokens_details": {"cached_tokens": 3},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    told = ended(await probe.events(Reply(deltas=["a"], usage=details))).usage
    return bool(getattr(told, field))


async def bound(probe: Probe) -> bool:
    """A schema goes along, and binds the text."""
    async with probe.model(DONE) as model:
        if not getattr(model, "supports_response_format", False):
            await collect(model)
            return False
        schema = {"type": "object", "properties": {"moon": {"type": "string"}}}
        await collect(model, asked(response_format=schema))
    return "moon" in probe.sent[0]


_CALLS = [MockCall(name="search", arguments=['{"n":', f"{n}}}"], id=f"c{n}") for n in (1, 2)]
_OVERFLOW = '{"error":{"message":"This model\'s maximum context length is 8192 tokens."}}'


async def _calls(probe: Probe, kind: type[Any], count: int) -> bool:
    return len(of(kind, await probe.events(Reply(calls=_CALLS), asked(tools=(SEARCH,))))) >= count


async def _deltas(probe: Probe, reply: Reply, kind: type[Any]) -> bool:
    return len(of(kind, await probe.events(reply))) >= 2


ROWS: Final[Mapping[str, Callable[[Probe], Awaitable[bool]]]] = {
    "text, as it is written": lambda p: _deltas(p, Reply(deltas=["a", "b"]), TextDelta),
    "reasoning, as it is thought": lambda p: _deltas(
        p, Reply(reasoning=["a", "b"], deltas=["c"]), ReasoningDelta
    ),
    "reasoning sent back in later steps": reasoning_back,
    "parallel tool calls": lambda p: _calls(p, ToolCall, 2),
    "tool input, as it is written": lambda p: _calls(p, ToolInputDelta, 4),
    "images in": lambda p: p.takes(_files("image/png", DOT), sent=DOT),
    "PDFs in": lambda p: p.takes(_files("application/pdf", PDF), sent=PDF),
    "images in a tool's result": picture_in_result,
    "images out": lambda p: answered(p, p.subject.drawing, FilePart),
    "sources and citations": lambda p: answered(p, p.subject.search, SourceUrl),
    "tools that the provider runs": lambda p: answered(p, p.subject.search, ToolResult),
    "structured output bound to a schema": bound,
    "stop sequences": lambda p: p.sends('"END"', stop_sequences=("END",)),
    "temperature": lambda p: p.sends("0.25", temperature=0.25),
    "`top_k`": lambda p: p.sends("top_k", top_k=5),
    "seed": lambda p: p.sends('"seed"', seed=7),
    "service tier": lambda p: p.option(service_tier="auto"),
    "metadata": lambda p: p.option(metadata={"user_id": "u"}),
    "prompt-cache markers": lambda p: p.sends("cache_control", system="Be brief."),
    "cached tokens in `usage`": lambda p: usage(p, "cached_input_tokens"),
    "reasoning tokens in `usage`": lambda p: usage(p, "reasoning_tokens"),
    "context overflow recognised": lambda p: refused(p, 400, _OVERFLOW, "context_overflow"),
}


async def table() -> str:
    """The table as the page has it."""
    lines = [f"| | {' | '.join(subject.title for subject in SUBJECTS)} |", "|---" * 5 + "|"]
    for title, probe in ROWS.items():
        cells = ["yes" if await probe(Probe(subject)) else "" for subject in SUBJECTS]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def shown(page: str) -> str:
    """What the page has between the marks."""
    return page.partition(BEGIN)[2].partition(END)[0].strip()


def main() -> None:
    """Write the table."""
    page = PAGE.read_text()
    before, mark, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    made = asyncio.run(table())
    PAGE.write_text(f"{before}{mark}\n\n{made}\n\n{end}{after}")


if __name__ == "__main__":
    main()
