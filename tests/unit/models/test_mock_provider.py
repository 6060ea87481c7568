"""The mock provider complains about what a real one would refuse, and serves on its own."""

import asyncio
import sys

import pytest

from tests.unit.models.helpers import calls_of, collect, failure_of, request, text_of
from thinkwell.messages.model_messages import (
    AssistantMessage,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
)
from thinkwell.models.base import ModelRequest
from thinkwell.models.openai_chat import OpenAIChatModel
from thinkwell.testing.mock_provider import MockProvider, Reply
from thinkwell.testing.protocols.chat_completions import find_fault

ASKED = {"model": "m", "stream": True}
USER = {"role": "user", "content": "hi"}
CALL = {"role": "assistant", "tool_calls": [{"id": "c1"}]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "ok"}


class TestComplaints:
    async def test_a_request_that_was_not_scripted_fails_here_and_there(self):
        provider = MockProvider([])
        await provider.start()
        model = OpenAIChatModel("m", base_url=provider.base_url)
        assert failure_of(await collect(model)).status == 500
        await model.aclose()
        await provider.stop()
        with pytest.raises(AssertionError, match="request 1 was not scripted"):
            provider.assert_complete()

    async def test_a_reply_nobody_asked_for_fails_at_the_end(self):
        with pytest.raises(AssertionError, match="1 scripted replies"):
            async with MockProvider([Reply()]):
                pass

    @pytest.mark.parametrize(
        ("body", "fault"),
        [
            ({**ASKED, "messages": []}, "needs a model"),
            ({"model": "m", "messages": [USER]}, "stream: true"),
            ({**ASKED, "messages": [USER, RESULT]}, "answers no call"),
            ({**ASKED, "messages": [CALL, USER]}, "without a result"),
            ({**ASKED, "messages": [CALL]}, "without a result"),
        ],
    )
    def test_what_a_provider_would_refuse(self, body, fault):
        assert fault in (find_fault(body) or "")

    def test_a_good_request_has_no_fault(self):
        assert find_fault({**ASKED, "messages": [USER, CALL, RESULT, USER]}) is None


class TestReplies:
    async def test_a_function_answers_every_request(self):
        async with MockProvider(lambda body: Reply(deltas=[body["model"]])) as provider:
            model = OpenAIChatModel("m", base_url=provider.base_url)
            assert text_of(await collect(model) + await collect(model)) == "mm"
            await model.aclose()

    async def test_a_paced_reply_is_the_same_text(self):
        async with MockProvider([Reply(deltas=["a", "b"], interval=0.001)]) as provider:
            model = OpenAIChatModel("m", base_url=provider.base_url)
            assert text_of(await collect(model)) == "ab"
            await model.aclose()


class TestProcess:
    @pytest.fixture
    async def port(self, monkeypatch):
        monkeypatch.setenv("PYTHONPATH", "src")
        command = ["-m", "thinkwell.testing.mock_provider", "--deltas", "3", "--text", "x"]
        process = await asyncio.create_subprocess_exec(
            sys.executable, *command, "--call", 'f:{"a":1}', stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        yield int(await process.stdout.readline())
        process.kill()
        await process.communicate()

    async def test_it_prints_its_port_calls_the_tool_and_then_answers(self, port):
        model = OpenAIChatModel("burst-4", base_url=f"http://127.0.0.1:{port}/v1")
        assert calls_of(await collect(model)) == [("call-1", "f", '{"a":1}')]
        answered = ModelRequest(
            messages=(
                *request("hi").messages,
                AssistantMessage((ToolCallContent("call-1", "f", {"a": 1}),)),
                ToolMessage((ToolResultContent("call-1", "f", "text", "ok"),)),
            )
        )
        assert text_of(await collect(model, answered)) == "xxxx"
        await model.aclose()
