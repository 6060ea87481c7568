"""A wrong set-up says what to set: for every provider, in the words that it really uses.

The samples are from the providers' documentation and public reports.
"""

from __future__ import annotations

import pytest

from tests.unit.models.helpers import collect, failure_of
from thinkwell.core.errors import ConfigurationError
from thinkwell.models.presets import NATIVE, PRESETS
from thinkwell.models.provider_errors import refusal_hint
from thinkwell.models.resolve import resolve_model

ALL = {**NATIVE, **PRESETS}
WITH_KEY = [name for name, preset in ALL.items() if preset.key_variable]


@pytest.mark.parametrize("provider", WITH_KEY)
def test_without_a_key_the_variable_and_the_argument_are_named(
    provider: str, monkeypatch: pytest.MonkeyPatch
):
    preset = ALL[provider]
    monkeypatch.delenv(preset.key_variable, raising=False)
    if preset.base_url:
        monkeypatch.delenv(preset.url_variable, raising=False)
    else:
        monkeypatch.setenv(preset.url_variable, "https://mine.example")
    with pytest.raises(ConfigurationError) as caught:
        resolve_model(f"{provider}:some-model")
    text = str(caught.value)
    assert f"'{provider}:some-model'" in text
    assert f"Set {preset.key_variable}" in text
    assert "api_key=" in text


@pytest.mark.parametrize("provider", ["azure"])
def test_without_an_address_the_variable_is_named(provider: str, monkeypatch: pytest.MonkeyPatch):
    preset = ALL[provider]
    monkeypatch.setenv(preset.key_variable, "k")
    monkeypatch.delenv(preset.url_variable, raising=False)
    with pytest.raises(ConfigurationError, match=f"Set {preset.url_variable}"):
        resolve_model(f"{provider}:some-model")


@pytest.mark.parametrize("provider", [name for name in ALL if ALL[name].url_variable])
async def test_a_server_that_does_not_listen_is_named_with_its_variable(
    provider: str, monkeypatch: pytest.MonkeyPatch
):
    preset = ALL[provider]
    monkeypatch.setenv(preset.url_variable, "http://127.0.0.1:9")
    if preset.key_variable:
        monkeypatch.setenv(preset.key_variable, "k")
    model = resolve_model(f"{provider}:some-model")
    text = str(failure_of(await collect(model)))
    assert "127.0.0.1:9" in text
    assert preset.url_variable in text


KEY, MODEL, ADDRESS = "Check the key", "Check the name of the", "Check the address"


@pytest.mark.parametrize(
    ("provider", "status", "text", "hint"),
    [
        ("openai", 401, '{"error":{"message":"Incorrect API key provided: k."}}', KEY),
        ("anthropic", 401, '{"error":{"type":"authentication_error"}}', KEY),
        ("xai", 400, '{"error":"Incorrect API key provided: k"}', KEY),
        ("groq", 401, '{"error":{"message":"Invalid API Key","code":"invalid_api_key"}}', KEY),
        ("azure", 401, '{"error":{"code":"401","message":"Access denied"}}', KEY),
        ("openai", 404, "The model `gpt-x` does not exist or you do not have access to it.", MODEL),
        ("anthropic", 404, '{"error":{"type":"not_found_error","message":"model: c"}}', MODEL),
        ("mistral", 400, '{"message":"Invalid model: m","code":"1500"}', MODEL),
        ("deepseek", 400, '{"error":{"message":"Model Not Exist"}}', MODEL),
        ("openrouter", 400, '{"error":{"message":"m is not a valid model ID"}}', MODEL),
        ("fireworks", 404, '{"error":{"message":"Model not found, inaccessible"}}', MODEL),
        ("ollama", 404, '{"error":{"message":"model \\"m\\" not found, try pulling it"}}', MODEL),
        ("azure", 404, '{"error":{"code":"DeploymentNotFound"}}', "name of the deployment"),
        ("vllm", 404, '{"detail":"Not Found"}', ADDRESS),
        ("openai-chat", 405, "<html>Method Not Allowed</html>", ADDRESS),
        ("openai", 400, "This model's maximum context length is 8192 tokens.", ""),
        ("openai", 400, "Unsupported parameter: 'temperature' with this model.", ""),
        ("openai", 500, "The model does not exist right now.", ""),
    ],
)
def test_a_refusal_says_what_to_check(provider: str, status: int, text: str, hint: str):
    names = ALL[provider].key_variable, ALL[provider].url_variable
    told = refusal_hint(provider, status, names, text)
    assert hint in told if hint else told == ""
    if hint == KEY:
        assert ALL[provider].key_variable in told
    if hint == MODEL:
        assert told.endswith(f'after "{provider}:".')
