"""Providers by name: where they are, which variables hold their keys, where they differ.

All but Anthropic speak OpenAI's chat completions. What is not given to a model's constructor is
looked up here and in the environment.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

import msgspec

from thinkwell.core.errors import ConfigurationError
from thinkwell.models.openai_chat_request import COMPATIBLE, OPENAI, Dialect


class Preset(msgspec.Struct, frozen=True, kw_only=True):
    """One of them."""

    base_url: str = ""
    """Empty if everybody has an address of their own: then `url_variable` must be set."""
    key_variable: str = ""
    """The environment variable with the key; empty if it needs none."""
    url_variable: str = ""
    """The environment variable that moves it elsewhere."""
    path: str = ""
    """What stands between the address in `url_variable` and the API."""
    key_header: str = "Authorization"
    dialect: Dialect = COMPATIBLE

    @property
    def bearer(self) -> bool:
        """Whether the key is a bearer token."""
        return self.key_header == "Authorization"


_MISTRAL: Final = Dialect(seed="random_seed", stream_options=False, short_call_ids=True)

_OPENAI: Final = Preset(
    base_url="https://api.openai.com/v1",
    key_variable="OPENAI_API_KEY",
    url_variable="OPENAI_BASE_URL",
    dialect=OPENAI,
)

NATIVE: Final[dict[str, Preset]] = {
    "anthropic": Preset(
        base_url="https://api.anthropic.com",
        key_variable="ANTHROPIC_API_KEY",
        url_variable="ANTHROPIC_BASE_URL",
        key_header="x-api-key",
    ),
    "openai": _OPENAI,
    "openai-chat": _OPENAI,
}
"""Those with an adapter of their own. A server at another address needs no key."""

PRESETS: Final[dict[str, Preset]] = {
    "azure": Preset(
        key_variable="AZURE_OPENAI_API_KEY",
        url_variable="AZURE_OPENAI_ENDPOINT",
        path="/openai/v1",
        key_header="api-key",
        dialect=OPENAI,
    ),
    "cerebras": Preset(base_url="https://api.cerebras.ai/v1", key_variable="CEREBRAS_API_KEY"),
    "deepseek": Preset(base_url="https://api.deepseek.com/v1", key_variable="DEEPSEEK_API_KEY"),
    "fireworks": Preset(
        base_url="https://api.fireworks.ai/inference/v1", key_variable="FIREWORKS_API_KEY"
    ),
    "groq": Preset(base_url="https://api.groq.com/openai/v1", key_variable="GROQ_API_KEY"),
    "lmstudio": Preset(base_url="http://127.0.0.1:1234/v1", url_variable="LMSTUDIO_BASE_URL"),
    "mistral": Preset(
        base_url="https://api.mistral.ai/v1", key_variable="MISTRAL_API_KEY", dialect=_MISTRAL
    ),
    "ollama": Preset(base_url="http://127.0.0.1:11434/v1", url_variable="OLLAMA_BASE_URL"),
    "openrouter": Preset(
        base_url="https://openrouter.ai/api/v1", key_variable="OPENROUTER_API_KEY"
    ),
    "together": Preset(base_url="https://api.together.xyz/v1", key_variable="TOGETHER_API_KEY"),
    "vllm": Preset(base_url="http://127.0.0.1:8000/v1", url_variable="VLLM_BASE_URL"),
    "xai": Preset(base_url="https://api.x.ai/v1", key_variable="XAI_API_KEY"),
}


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """Where a provider is reached, and with which headers."""

    base_url: str
    headers: Mapping[str, str]
    moved: bool
    """Not where the provider itself is: another server that speaks its protocol."""
    key_variable: str
    """The variable that the key came from, or would have; empty if it was given."""
    url_variable: str


def look_up(
    provider: str, model_id: str, *, base_url: str | None = None, api_key: str | None = None
) -> Address:
    """The address of a provider. Raises `ConfigurationError` that names what to set."""
    preset = NATIVE.get(provider) or PRESETS.get(provider) or Preset()
    named = base_url or (os.environ.get(preset.url_variable) if preset.url_variable else None)
    url = (named or preset.base_url).rstrip("/")
    if not url:
        needed = preset.url_variable or "base_url=..."
        raise ConfigurationError(
            f"The model {_named(provider, model_id)!r} needs an address. Set {needed}."
        )
    if not base_url and preset.path and not url.endswith(preset.path):
        url += preset.path
    moved = bool(preset.base_url) and url != preset.base_url
    key = api_key
    if key is None:
        key = os.environ.get(preset.key_variable, "") if preset.key_variable else ""
        if preset.key_variable and not key and not moved:
            raise ConfigurationError(_no_key(provider, model_id, preset))
    header = {preset.key_header: f"Bearer {key}" if preset.bearer else key} if key else {}
    return Address(
        base_url=url,
        headers=header,
        moved=moved,
        key_variable=preset.key_variable if api_key is None else "",
        url_variable=preset.url_variable if base_url is None else "",
    )


def _no_key(provider: str, model_id: str, preset: Preset) -> str:
    ways = f"Set {preset.key_variable}, or pass api_key=...."
    if preset.url_variable:
        ways = (
            f"Set {preset.key_variable}, pass api_key=..., or point {preset.url_variable} at a "
            "server that needs none."
        )
    return f"The model {_named(provider, model_id)!r} needs a key. {ways}"


def _named(provider: str, model_id: str) -> str:
    return f"{provider}:{model_id}"
