"""Which real providers can be asked, and which cannot and why. Reads the environment only.

A provider is asked if its key is set. `THINKWELL_LIVE_GROQ=some-model` chooses another model than
the usual one, and is the only way to ask those that have none: a deployment at Azure, a server on
this machine.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from thinkwell.models.presets import NATIVE, PRESETS

USUAL: Final[Mapping[str, str]] = {
    "anthropic": "claude-haiku-4-5",
    "openai": "gpt-5-mini",
    "openai-chat": "gpt-4o-mini",
    "cerebras": "llama-3.3-70b",
    "deepseek": "deepseek-chat",
    "fireworks": "accounts/fireworks/models/llama-v3p3-70b-instruct",
    "groq": "llama-3.3-70b-versatile",
    "mistral": "mistral-small-latest",
    "openrouter": "openai/gpt-4o-mini",
    "together": "meta-llama/Llama-3.3-70B-Instruct-Turbo",
    "xai": "grok-3-mini",
}
"""Small ones: the suite makes some thirty calls."""


@dataclass(frozen=True)
class Live:
    """A provider that can be asked."""

    provider: str
    model: str


@dataclass(frozen=True)
class Skipped:
    """A provider that cannot, and what to set."""

    provider: str
    reason: str


def variable_of(provider: str) -> str:
    """What names the model to ask there."""
    return f"THINKWELL_LIVE_{provider.upper().replace('-', '_')}"


def look_around(environment: Mapping[str, str] | None = None) -> list[Live | Skipped]:
    """Every native provider, in the order of the page."""
    found = os.environ if environment is None else environment
    return [_judge(name, found) for name in (*NATIVE, *PRESETS)]


def _judge(provider: str, environment: Mapping[str, str]) -> Live | Skipped:
    preset = {**NATIVE, **PRESETS}[provider]
    variable = variable_of(provider)
    if preset.key_variable and not environment.get(preset.key_variable):
        return Skipped(provider, f"{preset.key_variable} is not set")
    if not preset.base_url and not environment.get(preset.url_variable):
        return Skipped(provider, f"{preset.url_variable} is not set")
    model = environment.get(variable) or USUAL.get(provider)
    if not model:
        return Skipped(provider, f"{variable} names no model")
    return Live(provider, model)
