"""What is wrong with the name of a model, and which one was probably meant (pure)."""

from __future__ import annotations

import re
from typing import Final

from thinkwell.core.errors import ConfigurationError
from thinkwell.core.spelling import nearest

BRIDGED: Final = (
    "bedrock",
    "cohere",
    "github",
    "google",
    "google-cloud",
    "heroku",
    "huggingface",
    "meta",
    "moonshotai",
    "vercel",
    "zai",
)
"""Providers that pydantic-ai knows, as far as we can tell without it. It may know more."""
_FAMILIES: Final = {
    "claude": "anthropic",
    "deepseek": "deepseek",
    "gemini": "google",
    "gpt": "openai",
    "grok": "xai",
    "llama": "ollama",
    "mistral": "mistral",
    "o1": "openai",
    "o3": "openai",
    "o4": "openai",
    "qwen": "ollama",
}
"""How names of models begin, and who has them."""
_FORMS: Final = (
    'Write "openai:NAME", "anthropic:NAME", a preset such as "ollama:NAME", "provider:NAME" for a '
    'provider that pydantic-ai knows, "demo", or pass a model object.'
)
_KEY: Final = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*_(?:KEY|TOKEN)\b")


def no_model(like: object) -> ConfigurationError:
    """The error for something that is neither a model nor a name."""
    return ConfigurationError(f"{like!r:.100} is no model. {_FORMS}")


def no_provider(name: str) -> ConfigurationError:
    """The error for a name without `provider:`."""
    if name.endswith(":"):
        return ConfigurationError(f"{name!r} names no model. {_FORMS}")
    beginning = re.split(r"[-_.:/]", name)[0].lower()
    family = next((key for key in _FAMILIES if beginning.startswith(key)), None)
    near = "" if family is None else f' Did you mean "{_FAMILIES[family]}:{name}"?'
    return ConfigurationError(f"{name!r} names no provider.{near} {_FORMS}")


def unknown_provider(name: str, known: list[str]) -> ConfigurationError | None:
    """The error for a provider that is almost one of `known`; None if it is like none of them."""
    provider, _, model_id = name.partition(":")
    meant = nearest(provider, known)
    if meant is None:
        return None
    return ConfigurationError(
        f'There is no provider {provider!r}. Did you mean "{meant}:{model_id}"?'
    )


def nobody_has(name: str, extra: str) -> ConfigurationError:
    """The error for a provider that is not ours while pydantic-ai is not installed."""
    return ConfigurationError(
        f"There is no provider {name.partition(':')[0]!r} here. {_FORMS} For those that "
        f"pydantic-ai knows: pip install 'thinkwell[{extra}]'"
    )


def cannot_be_used(name: str, error: Exception) -> ConfigurationError:
    """The error for what pydantic-ai says about a model: mostly, that its key is missing."""
    keys = list(dict.fromkeys(_KEY.findall(str(error))))
    if keys:
        return ConfigurationError(f"The model {name!r} needs a key. Set {' or '.join(keys)}.")
    if str(error).startswith("Unknown model"):
        provider = name.partition(":")[0]
        return ConfigurationError(f"There is no provider {provider!r}. {_FORMS}")
    return ConfigurationError(f"The model {name!r} cannot be used: {error}")
