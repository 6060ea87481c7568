"""What a user wrote as a model, as a `Model`.

Accepted: a `Model`, a pydantic-ai model object, a list of these (a fallback chain), or a string:
`demo`; `openai:NAME`, `openai-chat:NAME` and `anthropic:NAME` (native; they honour
`OPENAI_BASE_URL` and `ANTHROPIC_BASE_URL`); a preset such as `ollama:NAME`; and `provider:NAME` or
`pydantic-ai/provider:NAME` for every provider that pydantic-ai knows. Strings are case-sensitive.
Nothing is contacted here. `ModelPool` keeps resolved strings, so that calls share connections, and
closes them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, TypeAlias, cast

from thinkwell.core.errors import ConfigurationError, MissingExtraError
from thinkwell.core.ids import new_id
from thinkwell.models import misnamed
from thinkwell.models.base import Model
from thinkwell.models.fallback import FallbackModel, close_model
from thinkwell.models.presets import NATIVE, PRESETS
from thinkwell.models.prices import CATALOGUED, PriceBook
from thinkwell.models.pydantic_ai import PydanticAIModel, infer

ModelLike: TypeAlias = "str | Model | Sequence[str | Model | Any] | Any"
"""A string, a `Model`, a pydantic-ai model, or a list of these."""

_BRIDGE = "pydantic-ai/"
_MOST_CHAINS = 100
"""`get_model` may make new model objects for every turn."""


def resolve_model(like: ModelLike) -> Model:
    """The model `like` stands for. Raises `ConfigurationError` with the right forms."""
    if isinstance(like, str):
        return _from_string(like)
    # Before `Model`: that is a Protocol, and an object of pydantic-ai may happen to fit it.
    if is_pydantic_ai_model(like):
        return PydanticAIModel(cast("Any", like))
    if isinstance(like, Model) and not isinstance(like, type):
        return like
    if isinstance(like, list | tuple):
        return FallbackModel([resolve_model(item) for item in cast("list[ModelLike]", like)])
    raise misnamed.no_model(like)


def is_pydantic_ai_model(value: object) -> bool:
    """Whether `value` is a pydantic-ai model, found out without importing pydantic-ai."""
    return any(
        base.__name__ == "Model" and base.__module__ == "pydantic_ai.models"
        for base in type(value).__mro__
    )


class ModelPool:
    """Resolves strings once and owns the models it made."""

    def __init__(self) -> None:
        self._models: dict[str, Model] = {}
        self._chains: dict[tuple[int, ...], FallbackModel] = {}
        self._lent: dict[str, Model] = {}
        """Objects that were handed in, by the names they got here."""
        self.prices = PriceBook()
        """What they cost."""

    def resolve(self, like: ModelLike) -> Model:
        """Like `resolve_model`, but the same string gives the same model."""
        if isinstance(like, str):
            model = self._models.get(like) or self._lent.get(like)
            if model is None:
                model = self._models[like] = resolve_model(like)
            return model
        if isinstance(like, list | tuple):
            return self._chain([self.resolve(item) for item in cast("list[ModelLike]", like)])
        return resolve_model(like)

    def _chain(self, models: list[Model]) -> FallbackModel:
        """One chain for the same models, so that it remembers which of them fail."""
        key = tuple(map(id, models))  # the chain keeps its models, and so their ids, alive
        chain = self._chains.get(key)
        if chain is None:
            if len(self._chains) >= _MOST_CHAINS:
                self._chains.clear()
            chain = self._chains[key] = FallbackModel(models)
        return chain

    async def load(self, like: ModelLike) -> Model:
        """Like `resolve`, but what is imported for it is imported in a thread.

        pydantic-ai and a provider's library take a second, in which no agent would answer.
        """
        names: list[Any] = [like]
        if isinstance(like, list | tuple):
            names = [*cast("list[Any]", like)]
        for name in names:
            fresh = isinstance(name, str) and name not in self._models and name not in self._lent
            if fresh and _needs_bridge(name):
                made = await asyncio.to_thread(resolve_model, name)
                self._models.setdefault(name, made)
        model = self.resolve(cast("Any", like))
        if model.provider in CATALOGUED:
            self.prices.expect(model)
        return model

    def lend(self, like: ModelLike) -> str | tuple[str, ...]:
        """A name for a model that a row can keep; an object has it as long as the process lives."""
        if isinstance(like, str):
            return like
        if isinstance(like, list | tuple):
            return tuple(str(self.lend(each)) for each in cast("list[Any]", like))
        name = f"given:{new_id()}"
        self._lent[name] = resolve_model(like)
        return name

    async def aclose(self) -> None:
        """Close the connections of the models made here. Models handed in stay open."""
        models, self._models = self._models, {}
        self._chains.clear()
        for model in models.values():
            await close_model(model)


def _from_string(name: str) -> Model:
    if name == "demo":
        from thinkwell.models.demo import DemoModel

        return DemoModel()
    provider, _, model_id = name.removeprefix(_BRIDGE).partition(":")
    if not provider or not model_id:
        raise misnamed.no_provider(name)
    if name.startswith(_BRIDGE):
        return _through_bridge(name.removeprefix(_BRIDGE))
    return _native(provider, model_id) or _through_bridge(name)


def _needs_bridge(name: str) -> bool:
    provider, _, model_id = name.partition(":")
    return bool(model_id) and provider not in NATIVE and provider not in PRESETS


def _native(provider: str, model_id: str) -> Model | None:
    """The model behind an adapter of ours; None if there is none for `provider`."""
    if provider == "anthropic":
        from thinkwell.models.anthropic import AnthropicModel

        return AnthropicModel(model_id)
    if provider == "openai":
        from thinkwell.models.openai_responses import OpenAIModel

        return OpenAIModel(model_id)
    if provider == "openai-chat" or provider in PRESETS:
        from thinkwell.models.openai_chat import OpenAIChatModel

        return OpenAIChatModel(model_id, provider=provider)
    return None


def _through_bridge(name: str) -> Model:
    provider = name.partition(":")[0]
    try:
        return infer(name)
    except MissingExtraError as error:
        if provider in misnamed.BRIDGED:
            raise
        raise _unknown(name) or misnamed.nobody_has(name, error.extra) from None
    except ImportError as error:
        raise ConfigurationError(
            f"The model {name!r} needs the client library of {provider!r}. "
            f"Install it: pip install 'pydantic-ai-slim[{provider}]'"
        ) from error
    except Exception as error:
        # pydantic-ai knows providers that we do not: only it can say that there is none.
        wrong = _unknown(name) if str(error).startswith("Unknown model") else None
        raise wrong or misnamed.cannot_be_used(name, error) from error


def _unknown(name: str) -> ConfigurationError | None:
    return misnamed.unknown_provider(name, [*NATIVE, *PRESETS, *misnamed.BRIDGED])
