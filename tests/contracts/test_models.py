"""Every model keeps the same promises: the native adapters, the bridge, the scripted model and a
user's own (`examples/own_model.py`)."""

from collections.abc import Callable
from contextlib import asynccontextmanager
from typing import Any, ClassVar

from openai import AsyncOpenAI
from pydantic_ai.models.openai import OpenAIChatModel as TheirModel
from pydantic_ai.providers.openai import OpenAIProvider

from examples.own_model import ShoutingModel
from thinkwell.messages.model_messages import UserMessage
from thinkwell.messages.usage import Usage
from thinkwell.models.anthropic import AnthropicModel
from thinkwell.models.base import ModelRequest
from thinkwell.models.openai_chat import OpenAIChatModel
from thinkwell.models.openai_responses import OpenAIModel
from thinkwell.models.pydantic_ai import PydanticAIModel
from thinkwell.testing import ScriptedModel, call, error, finish, reasoning, text
from thinkwell.testing.contracts.model import BROKEN, ModelContract
from thinkwell.testing.mock_provider import MockProvider, RawReply, Reply

REFUSED = RawReply(chunks=[b'{"error":{"message":"no"}}'], status=400)


class NativeContract(ModelContract):
    """A model of ours against the strict mock of its provider."""

    make: ClassVar[Callable[[MockProvider], Any]]

    @asynccontextmanager
    async def serve(self, *replies: Reply):
        script = [REFUSED if reply is BROKEN else reply for reply in replies]
        async with MockProvider(script) as provider:
            model = type(self).make(provider)
            try:
                yield model
            finally:
                if hasattr(model, "aclose"):
                    await model.aclose()


class TestChatCompletions(NativeContract):
    make = staticmethod(lambda mock: OpenAIChatModel("m", base_url=mock.base_url, api_key="k"))


class TestMistral(NativeContract):
    make = staticmethod(
        lambda mock: OpenAIChatModel("m", base_url=mock.base_url, api_key="k", provider="mistral")
    )


class TestResponses(NativeContract):
    make = staticmethod(lambda mock: OpenAIModel("m", base_url=mock.base_url, api_key="k"))


class TestAnthropic(NativeContract):
    make = staticmethod(lambda mock: AnthropicModel("m", base_url=mock.origin, api_key="k"))


class TestBridge(ModelContract):
    @asynccontextmanager
    async def serve(self, *replies: Reply):
        script = [REFUSED if reply is BROKEN else reply for reply in replies]
        async with (
            MockProvider(script) as provider,
            AsyncOpenAI(base_url=provider.base_url, api_key="k", max_retries=0) as client,
        ):
            theirs = TheirModel("m", provider=OpenAIProvider(openai_client=client))
            yield PydanticAIModel(theirs)


def script_of(reply: Reply) -> list[Any]:
    """What the scripted model does for a reply."""
    if reply is BROKEN:
        return [error(ValueError("no"))]
    usage = Usage(input_tokens=7, output_tokens=5, total_tokens=12)
    reason = "tool-calls" if reply.calls else "stop"
    thought = [reasoning(*reply.reasoning)] if reply.reasoning else []
    # A second delta keeps a single one from being split into words.
    said = [text(*reply.deltas, "")] if reply.deltas else []
    calls = [call(c.name, c.arguments, id=c.id) for c in reply.calls]
    return [*thought, *said, *calls, finish(reason, usage=usage)]


class TestScripted(ModelContract):
    @asynccontextmanager
    async def serve(self, *replies: Reply):
        model = ScriptedModel([script_of(reply) for reply in replies])
        yield model
        model.assert_complete()


class OwnModel(ShoutingModel):
    """The example, with the words of the contract in the place of the question."""

    def __init__(self, replies: list[Reply]) -> None:
        self.replies = replies

    def last_words(self, request: ModelRequest) -> list[str]:
        reply = self.replies.pop(0)
        if reply is BROKEN:
            return super().last_words(ModelRequest(messages=(UserMessage(()),)))
        return list(reply.deltas)


class TestOwnModel(ModelContract):
    abilities = frozenset()

    @asynccontextmanager
    async def serve(self, *replies: Reply):
        yield OwnModel(list(replies))
