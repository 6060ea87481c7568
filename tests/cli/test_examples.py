"""The examples run, and the demo does what it says it can (DESIGN §10)."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.cli.commands import DEMO, KEYS, ROOT, thinkwell
from tests.wire.serving import serving
from thinkwell import App
from thinkwell.cli.loading import load_app
from thinkwell.core.json import loads
from thinkwell.models.demo import DemoModel

EXAMPLES = ROOT / "examples"
pytestmark = pytest.mark.timeout(120)


@pytest.fixture(autouse=True)
def _forget_the_module(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys, "path", [*sys.path])
    for key in KEYS:
        monkeypatch.delenv(key, raising=False)
    yield
    for name in ("demo", "fastapi_app"):
        sys.modules.pop(name, None)


class TestDemo:
    @pytest.fixture
    async def assistant(self) -> AsyncIterator[Any]:
        app = load_app(DEMO, store="sqlite://:memory:")
        cls: Any = app.agents[0]
        cls.model = DemoModel(delay=0)
        async with app:
            yield app.agent(cls, "ada")

    async def test_every_sentence_on_its_list_gets_an_answer(self, assistant: Any):
        listed = (await assistant.run("What can you do?")).text
        sentences = re.findall(r"`([A-Z][^`]+)`", listed)
        assert len(sentences) == 15
        for sentence in sentences:
            result = await assistant.run(sentence)
            assert result.status == ("error" if sentence == "Fail" else "completed"), sentence

    async def test_two_cities_make_a_table(self, assistant: Any):
        text = (await assistant.run("Compare the weather in Paris and Tokyo")).text
        assert "| Paris | rainy | 8 |\n| Tokyo | sunny | 21 |" in text

    async def test_a_report_is_built_and_deleted_after_a_yes(self, assistant: Any):
        assert "**reports**: 1" in (await assistant.run("Build the report")).text
        [part] = (await assistant.run("Delete the report")).message["parts"][-1:]
        assert part["state"] == "approval-requested"
        await assistant.respond_to_approval(part["toolCallId"], True)
        await assistant.wait_until_stable()
        last = (await assistant.get_messages())[-1]
        assert "All reports are gone" in last["parts"][-1]["text"]

    async def test_notes_are_in_the_state_and_a_call_forgets_them(self, assistant: Any):
        text = (await assistant.run("Note that the milk is out")).text
        assert "note number 1" in text
        await assistant.forget_notes()
        assert "note number 1" in (await assistant.run("Note that the bread is out")).text

    async def test_with_a_key_it_takes_a_real_model_and_says_so(self, tmp_path: Path):
        serve, key = ("serve", DEMO, "--port", "0"), {"OPENAI_API_KEY": "k"}
        async with thinkwell(*serve, store=tmp_path / "x.db", env=key) as server:
            await server.says("Model: openai-chat:")
            await server.address()

    @pytest.mark.parametrize(
        ("installed", "said"),
        [(True, "Model: anthropic:"), (False, "pip install 'pydantic-ai-slim[anthropic]'")],
    )
    def test_a_key_whose_library_is_missing_says_what_to_install(
        self,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
        installed: bool,
        said: str,
    ):
        monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: installed or None)
        load_app(DEMO)
        assert said in capsys.readouterr().out


class TestFastApi:
    @pytest.fixture
    async def url(self, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
        monkeypatch.setenv("TOKENS", "sesame:ada,open:bo")
        monkeypatch.syspath_prepend(EXAMPLES)
        import fastapi_app  # pyright: ignore[reportMissingImports]

        agents: App = fastapi_app.agents
        agents.store = "sqlite://:memory:"
        async with serving(fastapi_app.api) as url:
            yield url

    async def test_its_own_routes_use_the_agents(self, url: str):
        ask = f"{url}/questions/hello"
        async with aiohttp.ClientSession() as session:
            async with session.get(ask) as answer:
                assert answer.status == 401
            headers = {"authorization": "Bearer sesame"}
            async with session.get(ask, headers=headers) as answer:
                assert (await answer.json())["answer"].startswith('You said: "hello"')
            agent = f"{url}/chat/agents/assistant/ada/get-messages"
            async with session.get(agent, params={"token": "sesame"}) as answer:
                assert [message["role"] for message in await answer.json()] == ["user", "assistant"]

    @pytest.mark.parametrize(
        ("name", "token", "admitted"),
        [
            ("ada", "sesame", True),
            ("ada.2", "sesame", True),
            ("ada", "open", False),
            ("bo", "sesame", False),
            ("ada", "", False),
        ],
    )
    async def test_everybody_reaches_only_agents_of_their_own(
        self, url: str, name: str, token: str, admitted: bool
    ):
        socket_url = f"{url}/chat/agents/assistant/{name}?token={token}"
        async with aiohttp.ClientSession() as session, session.ws_connect(socket_url) as socket:
            first = await socket.receive()
            if admitted:
                assert loads(first.data)["type"] == "cf_agent_chat_messages"
            else:
                assert (first.type, first.data) == (aiohttp.WSMsgType.CLOSE, 4401)
