"""What models cost and how much they can read: `genai-prices`, and what the author says himself.

The catalog is data inside a package (extra `prices`); nothing is asked over the network. It takes
half a second to import, so it is loaded in a thread, and only for providers that it knows. A price
that the author gives for a name (`App(prices={"openai:ft:acme": Price(...)})`) comes first.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping
from decimal import ROUND_CEILING, Decimal
from functools import cache
from importlib.util import find_spec
from typing import Any, Final, Protocol, cast

import msgspec

from thinkwell.core.errors import ConfigurationError
from thinkwell.core.money import read_amount, to_nano
from thinkwell.messages.usage import Usage
from thinkwell.models.base import Finish, Model

log = logging.getLogger("thinkwell.models")

CATALOGUED: Final[Mapping[str, str]] = {
    **{name: name for name in ("anthropic", "azure", "cerebras", "cohere", "deepseek")},
    **{name: name for name in ("fireworks", "google", "groq", "mistral", "moonshotai")},
    **{name: name for name in ("openai", "openrouter", "perplexity", "together")},
    "bedrock": "aws",
    "google-gla": "google",
    "google-vertex": "google",
    "grok": "x-ai",
    "openai-chat": "openai",
    "openai-responses": "openai",
    "xai": "x-ai",
}
"""Providers as we call them, and as the catalog does. Nobody waits for the price of others."""
MOST_KEPT: Final = 200
"""Models that are known by name; a gateway that invents names must not fill the memory."""


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """What a model costs, in dollars per million tokens, and how much it can read and write."""

    input: float | str | Decimal
    output: float | str | Decimal
    cached_input: float | str | Decimal | None = None
    """Input that the provider had in its cache; None: as much as other input."""
    cache_write: float | str | Decimal | None = None
    """Input that the provider puts into its cache; None: as much as other input."""
    reasoning: float | str | Decimal | None = None
    """Output that is reasoning; None: as much as other output."""
    context_window: int | None = None
    """Tokens that fit into one call."""
    max_output_tokens: int | None = None
    """Tokens that the model writes at most in one call."""

    def __post_init__(self) -> None:
        """Refuse what is no amount."""
        for name in ("input", "output", "cached_input", "cache_write", "reasoning"):
            given = getattr(self, name)
            if given is not None and read_amount(given) is None:
                raise ConfigurationError(
                    f"Price({name}={given!r}) is no amount. Give dollars per million tokens, for "
                    "example `Price(input=2.50, output=10)`."
                )

    def cost_of(self, usage: Usage) -> int:
        """What a call cost, in billionths of a dollar."""
        given, out = usage.input_tokens or 0, usage.output_tokens or 0
        cached = min(usage.cached_input_tokens or 0, given)
        written = min(usage.cache_write_tokens or 0, given - cached)
        thought = min(usage.reasoning_tokens or 0, out)
        total = (
            (given - cached - written) * _per_million(self.input)
            + cached * _per_million(_either(self.cached_input, self.input))
            + written * _per_million(_either(self.cache_write, self.input))
            + (out - thought) * _per_million(self.output)
            + thought * _per_million(_either(self.reasoning, self.output))
        )
        return int((total * 1000).to_integral_value(ROUND_CEILING))

    def worst_of(self, input_tokens: int, output_tokens: int) -> int:
        """The most that a call with so many tokens can cost."""
        dear_in = max(map(_per_million, (self.input, self.cached_input, self.cache_write)))
        dear_out = max(map(_per_million, (self.output, self.reasoning)))
        total = input_tokens * dear_in + output_tokens * dear_out
        return int((total * 1000).to_integral_value(ROUND_CEILING))


class KnownPrice(Protocol):
    """What is known of a model: a `Price`, or an entry of the catalog."""

    @property
    def context_window(self) -> int | None:
        """Tokens that fit into one call."""
        ...

    @property
    def max_output_tokens(self) -> int | None:
        """Tokens that the model writes at most."""
        ...

    def cost_of(self, usage: Usage) -> int:
        """What a call cost."""
        ...

    def worst_of(self, input_tokens: int, output_tokens: int) -> int:
        """The most that a call can cost."""
        ...


class _CatalogPrice:
    """An entry of `genai-prices`. Its prices have tiers and times, so the library does the sum."""

    max_output_tokens = None  # the catalog does not say

    def __init__(self, provider: Any, model: Any) -> None:
        self._provider, self._model = provider, model
        self.context_window: int | None = model.context_window

    def cost_of(self, usage: Usage) -> int:
        given = usage.input_tokens or 0
        cached = min(usage.cached_input_tokens or 0, given)
        return self._sum(
            input_tokens=given,
            output_tokens=usage.output_tokens or 0,
            cache_read_tokens=cached,
            cache_write_tokens=min(usage.cache_write_tokens or 0, given - cached),
        )

    def worst_of(self, input_tokens: int, output_tokens: int) -> int:
        # Input that is written to the cache costs more than plain input with some providers.
        return max(
            self._sum(
                input_tokens=input_tokens, output_tokens=output_tokens, cache_write_tokens=written
            )
            for written in (0, input_tokens)
        )

    def _sum(self, **tokens: int) -> int:
        from genai_prices import Usage as CatalogUsage

        counted = CatalogUsage(**{name: n for name, n in tokens.items() if n})
        return to_nano(self._model.calc_price(counted, self._provider).total_price)


class PriceBook:
    """The prices that an app knows, and what its models have cost since it started."""

    def __init__(self, given: Mapping[str, Price] | None = None) -> None:
        self.given = given or {}
        """What the author says, by `provider:name`."""
        self._found: dict[tuple[str, str], KnownPrice | None] = {}
        self._loading: asyncio.Future[Any] | None = None
        self._catalog: Any = None
        self.spent: Counter[tuple[str, str]] = Counter()
        """By model and word (`input`, `output`, `nano_usd`), for the metrics."""

    def needs_catalog(self, provider: str, model_id: str) -> bool:
        """Whether only the catalog can say, and it is not loaded."""
        if self._catalog is not None or f"{provider}:{model_id}" in self.given:
            return False
        return provider in CATALOGUED and has_catalog()

    def expect(self, model: Model) -> None:
        """The model is about to be called: begin to load what is needed for its price."""
        if self._loading is None and self.needs_catalog(model.provider, model.model_id):
            self._loading = asyncio.get_running_loop().run_in_executor(None, _load)

    async def load(self, model: Model) -> None:
        """Have the catalog, if this model needs it."""
        for each in chain_of(model):
            if self.needs_catalog(each.provider, each.model_id):
                self.expect(each)
                if self._loading is not None:
                    self._catalog = await asyncio.shield(self._loading)

    def find(self, provider: str, model_id: str) -> KnownPrice | None:
        """What is known of a model. Without a loaded catalog, only what the author said."""
        named = self.given.get(f"{provider}:{model_id}")
        if named is not None:
            return named
        if self._catalog is None:
            return None
        key = (provider, model_id)
        if key not in self._found:
            if len(self._found) >= MOST_KEPT:
                self._found.clear()
            self._found[key] = _look_up(self._catalog, provider, model_id)
        return self._found[key]

    def priced(self, model: Model, finish: Finish) -> Finish:
        """The end of a call with its cost and the name of the model that answered."""
        if finish.usage.is_empty:
            return finish
        provider, model_id = _answering(model, finish)
        name = f"{provider}:{model_id}"
        price = None
        if finish.model_id is not None and name not in self.given:
            price = self.find(provider, finish.model_id)  # an alias may stand for a dearer one
        price = price or self.find(provider, model_id)
        usage = finish.usage
        if price is not None and usage.nano_usd is None:
            usage = msgspec.structs.replace(usage, nano_usd=price.cost_of(usage))
        return msgspec.structs.replace(finish, usage=usage, answered_by=name)


def chain_of(model: Model) -> tuple[Model, ...]:
    """The models that may answer: those of a fallback chain, or the one."""
    chain = getattr(model, "models", None)
    return cast("tuple[Model, ...]", chain) if isinstance(chain, tuple) else (model,)


def context_window(model: str | Model) -> int | None:
    """How many tokens fit into one call of a model; None if nobody knows.

    Reads the catalog of the extra `prices`, which takes half a second the first time.
    """
    if isinstance(model, str):
        provider, _, model_id = model.removeprefix("pydantic-ai/").partition(":")
    else:
        provider, model_id = model.provider, model.model_id
    if provider not in CATALOGUED or not has_catalog():
        return None
    found = _look_up(_load(), provider, model_id)
    return None if found is None else found.context_window


def full_name(name: str) -> str:
    """How a model is named where prices are given: one without a provider is its own."""
    return name if ":" in name else f"{name}:{name}"


def without_price(name: object, given: Mapping[str, Price]) -> bool:
    """Whether nobody can know the price of a model that is written as this name."""
    if not isinstance(name, str) or full_name(name) in given:
        return False
    provider = name.removeprefix("pydantic-ai/").partition(":")[0]
    return provider not in CATALOGUED or not has_catalog()


@cache
def has_catalog() -> bool:
    """Whether the extra is installed. Imports nothing."""
    return find_spec("genai_prices") is not None


def _load() -> Any:
    from genai_prices.data_snapshot import get_snapshot

    return get_snapshot()


def _look_up(catalog: Any, provider: str, model_id: str) -> KnownPrice | None:
    known = CATALOGUED.get(provider)
    if known is None:
        return None
    try:
        return _CatalogPrice(*catalog.find_provider_model(model_id, None, known, None))
    except LookupError:
        return None


def _answering(model: Model, finish: Finish) -> tuple[str, str]:
    if finish.answered_by is not None:
        provider, _, model_id = finish.answered_by.partition(":")
        return provider, model_id
    return model.provider, model.model_id


def _either(chosen: Any, default: Any) -> Any:
    return default if chosen is None else chosen


def _per_million(usd: object) -> Decimal:  # None is a price that is not given
    return read_amount(usd) or Decimal(0)
