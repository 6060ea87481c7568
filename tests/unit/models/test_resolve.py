"""From what a user wrote to a model (DESIGN §4)."""

import re
import sys
import threading
from typing import Any

import pytest
from msgspec.structs import replace
from pydantic_ai.models.test import TestModel as EveryToolModel

from tests.unit.models.helpers import collect, failure_of, finish_of, text_of
from thinkwell.core.clock import SystemClock
from thinkwell.core.errors import ConfigurationError, MissingExtraError, ModelError
from thinkwell.core.signal import AbortController
from thinkwell.models import resolve
from thinkwell.models.anthropic import AnthropicModel
from thinkwell.models.breaker import COOL_DOWN, FAILURES
from thinkwell.models.demo import DemoModel
from thinkwell.models.fallback import FallbackModel
from thinkwell.models.openai_chat import OpenAIChatModel
from thinkwell.models.openai_responses import OpenAIModel
from thinkwell.models.presets import PRESETS
from thinkwell.models.pydantic_ai import PydanticAIModel, infer
from thinkwell.models.resolve import ModelPool, resolve_model
from thinkwell.testing import ScriptedModel, error, text
from thinkwell.testing.mock_provider import MockProvider, Reply


class TestStrings:
    def test_demo(self):
        assert isinstance(resolve_model("demo"), DemoModel)

    def test_openai_chat_honours_the_environment(self, monkeypatch):
        monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
        model = resolve_model("openai-chat:gpt-x:latest")
        assert isinstance(model, OpenAIChatModel)
        assert (model.model_id, model.base_url) == ("gpt-x:latest", "http://127.0.0.1:9/v1")

    @pytest.mark.parametrize("name", sorted(PRESETS))
    def test_a_preset_knows_its_address(self, name, monkeypatch):
        preset = PRESETS[name]
        for variable in filter(None, [preset.key_variable]):
            monkeypatch.setenv(variable, "k")
        address = preset.base_url
        if not address:
            monkeypatch.setenv(preset.url_variable, "https://mine.example/")
            address = f"https://mine.example{preset.path}"
        model = resolve_model(f"{name}:m")
        assert isinstance(model, OpenAIChatModel)
        assert (model.provider, model.base_url) == (name, address)

    def test_azure_needs_an_address_of_ones_own(self, monkeypatch):
        monkeypatch.delenv("AZURE_OPENAI_ENDPOINT", raising=False)
        with pytest.raises(ConfigurationError, match=r"address\. Set AZURE_OPENAI_ENDPOINT"):
            resolve_model("azure:m")

    async def test_azure_gets_its_key_in_a_header_of_its_own(self, monkeypatch):
        async with MockProvider([Reply(deltas=["a"])]) as provider:
            monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", provider.base_url)
            monkeypatch.setenv("AZURE_OPENAI_API_KEY", "secret")
            monkeypatch.setitem(PRESETS, "azure", replace(PRESETS["azure"], path="/v1"))
            pool = ModelPool()
            await collect(pool.resolve("azure:m"))
            await pool.aclose()
        headers = provider.requests[0].headers
        assert (headers["api-key"], "Authorization" in headers) == ("secret", False)

    @pytest.mark.parametrize(
        ("name", "kind"), [("openai:m", OpenAIModel), ("anthropic:m", AnthropicModel)]
    )
    def test_openai_and_anthropic_are_native(self, name, kind, monkeypatch):
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
        monkeypatch.setitem(sys.modules, "pydantic_ai.models", None)
        assert isinstance(resolve_model(name), kind)

    def test_a_local_preset_can_be_moved(self, monkeypatch):
        monkeypatch.setenv("OLLAMA_BASE_URL", "http://127.0.0.1:9/v1")
        model = resolve_model("ollama:m")
        assert isinstance(model, OpenAIChatModel)
        assert model.base_url == "http://127.0.0.1:9/v1"

    async def test_a_preset_never_gets_the_key_of_openai(self, monkeypatch):
        monkeypatch.setenv("OPENAI_API_KEY", "secret")
        async with MockProvider([Reply(deltas=["a"])]) as provider:
            monkeypatch.setenv("OLLAMA_BASE_URL", provider.base_url)
            pool = ModelPool()
            await collect(pool.resolve("ollama:m"))
            await pool.aclose()
        assert "Authorization" not in provider.requests[0].headers

    def test_a_preset_without_its_key_names_the_variable(self, monkeypatch):
        monkeypatch.delenv("GROQ_API_KEY", raising=False)
        with pytest.raises(ConfigurationError, match=r"'groq:m' needs a key\. Set GROQ_API_KEY"):
            resolve_model("groq:m")

    @pytest.mark.parametrize(
        "name", ["pydantic-ai/openai:gpt-5-mini", "pydantic-ai/openai-chat:gpt-5-mini"]
    )
    def test_other_providers_go_through_the_bridge(self, name, monkeypatch):
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        model = resolve_model(name)
        assert isinstance(model, PydanticAIModel)
        assert model.model_id == "gpt-5-mini"

    def test_without_pydantic_ai_the_error_names_the_extra(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "pydantic_ai.models", None)
        with pytest.raises(MissingExtraError, match=r"thinkwell\[pydantic-ai\]"):
            resolve_model("cohere:m")

    @pytest.mark.parametrize("name", ["", "gpt-5", "openai-chat:", ":m", "pydantic-ai/x"])
    def test_a_string_without_provider_and_name_shows_the_right_forms(self, name):
        with pytest.raises(ConfigurationError, match='Write "openai:NAME"'):
            resolve_model(name)

    def test_a_provider_nobody_knows_shows_the_right_forms(self):
        with pytest.raises(ConfigurationError, match='Write "openai:NAME"'):
            resolve_model("nobody:m")


class TestObjects:
    def test_a_model_stays_itself(self):
        model = ScriptedModel()
        assert resolve_model(model) is model

    def test_a_pydantic_ai_model_is_wrapped(self):
        assert isinstance(resolve_model(EveryToolModel()), PydanticAIModel)

    @pytest.mark.parametrize("value", [None, 5, object(), ScriptedModel])
    def test_anything_else_shows_the_right_forms(self, value):
        with pytest.raises(ConfigurationError, match="is no model"):
            resolve_model(value)


class TestPool:
    async def test_the_same_string_is_the_same_model_until_the_pool_is_closed(self):
        pool = ModelPool()
        first = pool.resolve("demo")
        assert pool.resolve("demo") is first
        await pool.aclose()
        assert pool.resolve("demo") is not first

    async def test_what_the_bridge_imports_is_imported_in_a_thread(self, monkeypatch):
        threads: list[int] = []

        def infer_here(name: str) -> Any:
            threads.append(threading.get_ident())
            return infer(name)

        monkeypatch.setenv("OPENAI_API_KEY", "k")
        monkeypatch.setattr(resolve, "infer", infer_here)
        pool = ModelPool()
        model = await pool.load("pydantic-ai/openai:gpt-5-mini")
        assert threads
        assert threading.get_ident() not in threads
        assert pool.resolve("pydantic-ai/openai:gpt-5-mini") is model
        chain = await pool.load(["demo", "pydantic-ai/openai:gpt-5-mini"])
        assert (len(threads), chain.provider) == (1, "demo")

    def test_a_chain_is_made_of_pooled_models(self):
        pool = ModelPool()
        chain = pool.resolve(["demo", ScriptedModel()])
        assert isinstance(chain, FallbackModel)
        assert chain.models[0] is pool.resolve("demo")


class ManualClock(SystemClock):
    """A clock that goes on when it is told to."""

    def __init__(self) -> None:
        self._now = 1_000.0

    def monotonic(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        self._now += seconds


class TestFallbackChain:
    async def test_the_next_model_is_asked_when_one_fails_before_it_spoke(self):
        first, second = ScriptedModel([[error(ValueError("down"))]]), ScriptedModel(["Hi there"])
        events = await collect(resolve_model([first, second]))
        assert text_of(events) == "Hi there"
        assert finish_of(events).reason == "stop"

    async def test_a_failure_after_content_is_told_as_it_is(self):
        first, second = ScriptedModel([[text("A"), error(ValueError("cut"))]]), ScriptedModel()
        assert str(failure_of(await collect(resolve_model([first, second])))) == "cut"
        assert second.requests == []

    async def test_the_last_failure_is_told_when_all_fail(self):
        models = [ScriptedModel([[error(ValueError(name))]]) for name in "ab"]
        assert str(failure_of(await collect(resolve_model(models)))) == "b"

    async def test_an_abort_asks_no_further_model(self):
        controller, second = AbortController(), ScriptedModel()

        def fail(_request):
            controller.abort()
            return [error(ValueError("down"))]

        events = await collect(
            resolve_model([ScriptedModel([fail]), second]), signal=controller.signal
        )
        assert (events, second.requests) == ([], [])

    async def test_the_answer_says_why_the_chain_moved_on(self, caplog):
        busy = ModelError("busy", status=529, retryable=True)
        chain = resolve_model([ScriptedModel([[error(busy)]]), ScriptedModel(["Hi"])])
        finish = finish_of(await collect(chain))
        assert finish.warnings == ("scripted:scripted failed (transient): busy",)
        assert "the next model of the chain is asked" in caplog.text

    async def test_a_model_that_keeps_failing_is_left_alone_for_a_while(self):
        clock = ManualClock()
        busy = ModelError("busy", status=529, retryable=True)
        first = ScriptedModel([*([error(busy)] for _ in range(FAILURES)), "I am back"])
        chain = FallbackModel([first, ScriptedModel(["Hi"] * (FAILURES + 1))], clock=clock)
        for _ in range(FAILURES + 1):
            assert text_of(await collect(chain)) == "Hi"
        assert len(first.requests) == FAILURES
        clock.advance(COOL_DOWN)
        assert text_of(await collect(chain)) == "I am back"

    async def test_a_model_is_asked_although_it_keeps_failing_if_no_other_is_left(self):
        busy = ModelError("busy", status=529, retryable=True)
        only = ScriptedModel([*([error(busy)] for _ in range(FAILURES)), "Hi"])
        chain = FallbackModel([only], clock=ManualClock())
        for _ in range(FAILURES):
            failure_of(await collect(chain))
        assert text_of(await collect(chain)) == "Hi"

    async def test_a_model_that_rests_is_asked_when_the_others_fail(self):
        busy = ModelError("busy", status=529, retryable=True)
        first = ScriptedModel([*([error(busy)] for _ in range(FAILURES)), "I am back"])
        second = ScriptedModel([*(["Hi"] * FAILURES), [error(busy)]])
        chain = FallbackModel([first, second], clock=ManualClock())
        for _ in range(FAILURES):
            await collect(chain)
        assert text_of(await collect(chain)) == "I am back"

    async def test_a_request_that_nobody_could_answer_says_nothing_about_the_model(self):
        long = ModelError("prompt is too long", status=400)
        first = ScriptedModel([[error(long)]] * 5)
        chain = FallbackModel([first, ScriptedModel(["Hi"] * 5)], clock=ManualClock())
        for _ in range(5):
            await collect(chain)
        assert len(first.requests) == 5

    async def test_the_same_chain_remembers_across_turns(self):
        pool = ModelPool()
        models = [ScriptedModel(), ScriptedModel()]
        assert pool.resolve(models) is pool.resolve(list(models))

    def test_a_chain_of_nothing_is_refused(self):
        with pytest.raises(ConfigurationError, match="needs a model"):
            resolve_model([])


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("opnai:gpt-4o", "There is no provider 'opnai'. Did you mean \"openai:gpt-4o\"?"),
        ("gpt-4o", "'gpt-4o' names no provider. Did you mean \"openai:gpt-4o\"?"),
        ("acme:large", "There is no provider 'acme'"),
    ],
)
@pytest.mark.parametrize("installed", [True, False])
def test_a_misspelt_provider_is_named_with_and_without_the_extra(
    name: str, told: str, installed: bool, monkeypatch: pytest.MonkeyPatch
):
    if not installed:
        monkeypatch.setitem(sys.modules, "pydantic_ai.models", None)
    with pytest.raises(ConfigurationError, match=re.escape(told)) as caught:
        resolve_model(name)
    assert ("pip install" in str(caught.value)) == (not installed and name == "acme:large")


def test_a_key_that_is_missing_behind_the_bridge_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigurationError) as caught:
        resolve_model("pydantic-ai/openai:gpt-4o")
    assert str(caught.value) == "The model 'openai:gpt-4o' needs a key. Set OPENAI_API_KEY."
