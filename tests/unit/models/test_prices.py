"""What a call cost, and the most that it can cost (spec/02 §8)."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkwell.core.errors import ConfigurationError
from thinkwell.core.money import show_usd, to_nano
from thinkwell.messages.usage import Usage
from thinkwell.models import Finish, Price, context_window
from thinkwell.models.fallback import FallbackModel
from thinkwell.models.prices import PriceBook
from thinkwell.testing import ScriptedModel


class Named(ScriptedModel):
    """A scripted model that claims to be somebody's."""

    def __init__(self, provider: str, model_id: str) -> None:
        super().__init__(["hi"], model_id=model_id)
        self._provider = provider

    @property
    def provider(self) -> str:
        return self._provider


def used(**tokens: int) -> Usage:
    return Usage(**tokens)


def test_each_kind_of_token_has_its_own_price():
    price = Price(input=2, output=10, cached_input="0.5", cache_write=3, reasoning=20)
    usage = used(
        input_tokens=1000,
        cached_input_tokens=300,
        cache_write_tokens=200,
        output_tokens=100,
        reasoning_tokens=40,
    )
    dollars = (500 * 2 + 300 * 0.5 + 200 * 3 + 60 * 10 + 40 * 20) / 1e6
    assert price.cost_of(usage) == round(dollars * 1e9)


def test_what_has_no_price_of_its_own_costs_like_the_rest():
    price = Price(input=2, output=10)
    usage = used(
        input_tokens=10, cached_input_tokens=5, cache_write_tokens=5, output_tokens=3,
        reasoning_tokens=3,
    )  # fmt: skip
    assert price.cost_of(usage) == 10 * 2000 + 3 * 10_000


def test_a_fraction_of_the_smallest_unit_counts_as_a_whole_one():
    assert Price(input="0.0001", output=0).cost_of(used(input_tokens=1)) == 1


@given(
    st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6),
    st.integers(0, 10**6), st.tuples(*[st.integers(0, 50)] * 5),
)  # fmt: skip
def test_no_call_costs_more_than_the_worst_case(given_in, cached, written, out, thought, prices):
    """Settled never exceeds reserved while the tokens keep to what was reserved."""
    a, b, c, d, e = prices
    price = Price(input=a, output=b, cached_input=c, cache_write=d, reasoning=e)
    usage = used(
        input_tokens=given_in, cached_input_tokens=cached, cache_write_tokens=written,
        output_tokens=out, reasoning_tokens=thought,
    )  # fmt: skip
    assert price.cost_of(usage) <= price.worst_of(given_in, out)


@pytest.mark.parametrize("wrong", [-1, "free", float("inf"), True])
def test_what_is_no_amount_is_refused_with_the_right_call(wrong: object):
    with pytest.raises(ConfigurationError, match=r"Price\(input=2.50, output=10\)"):
        Price(input=wrong, output=1)  # pyright: ignore[reportArgumentType]


async def test_the_catalog_knows_the_models_of_known_providers():
    book, model = PriceBook(), Named("openai-chat", "gpt-4o")
    assert book.find("openai-chat", "gpt-4o") is None  # not loaded: nothing waits for it
    await book.load(model)
    usage = used(input_tokens=1000, cached_input_tokens=500, output_tokens=10)
    ended = book.priced(model, Finish(reason="stop", usage=usage))
    assert ended.usage.cost == Decimal("0.001975")
    assert ended.answered_by == "openai-chat:gpt-4o"


async def test_the_worst_case_of_the_catalog_takes_the_dearest_way_to_read_the_input():
    book, model = PriceBook(), Named("anthropic", "claude-sonnet-4-5")
    await book.load(model)
    known = book.find("anthropic", "claude-sonnet-4-5")
    assert known is not None
    written = used(input_tokens=1000, cache_write_tokens=1000, output_tokens=10)
    assert (
        known.worst_of(1000, 10)
        == known.cost_of(written)
        > known.cost_of(used(input_tokens=1000, output_tokens=10))
    )


async def test_the_model_that_answered_is_priced_and_not_the_name_that_was_called():
    book, model = PriceBook(), Named("openai", "gpt-4o-mini")
    await book.load(model)
    usage = used(input_tokens=1_000_000)
    dated = book.priced(model, Finish(reason="stop", usage=usage, model_id="gpt-4o-2024-05-13"))
    assert dated.usage.cost == 5


async def test_a_given_price_comes_before_the_catalog():
    book = PriceBook({"openai:gpt-4o": Price(input=1, output=1)})
    model = Named("openai", "gpt-4o")
    ended = book.priced(
        model, Finish(reason="stop", usage=used(input_tokens=7), model_id="gpt-4o-2024-05-13")
    )
    assert ended.usage.nano_usd == 7000


async def test_a_chain_is_priced_by_the_model_that_answered():
    cheap, dear = Named("a", "cheap"), Named("b", "dear")
    book = PriceBook({"a:cheap": Price(input=1, output=1), "b:dear": Price(input=9, output=9)})
    chain = FallbackModel([cheap, dear])
    ended = Finish(reason="stop", usage=used(input_tokens=1), answered_by="b:dear")
    assert book.priced(chain, ended).usage.nano_usd == 9000


async def test_a_model_that_nobody_knows_has_tokens_and_no_cost():
    book, model = PriceBook(), Named("acme", "secret")
    await book.load(model)
    ended = book.priced(model, Finish(reason="stop", usage=used(input_tokens=7)))
    assert ended.usage.cost is None


def test_half_a_bill_is_no_bill():
    known, unknown = Usage(input_tokens=1, nano_usd=5), Usage(input_tokens=1)
    assert (known + known).nano_usd == 10
    assert (known + unknown).nano_usd is None
    assert (known + Usage()).nano_usd == 5  # a hook that answered has used nothing


def test_context_windows_come_from_the_catalog():
    assert context_window("openai:gpt-4o") == 128_000
    assert context_window(Named("anthropic", "claude-sonnet-4-5")) == 200_000
    assert context_window("acme:secret") is None


@pytest.mark.parametrize(
    ("usd", "shown"),
    [("0", "$0.00"), ("2", "$2.00"), ("1234.567", "$1,234.57"), ("0.0123", "$0.0123"),
     ("0.10", "$0.10"), ("0.000002", "$0.000002")],
)  # fmt: skip
def test_amounts_are_shown_with_as_many_digits_as_they_need(usd: str, shown: str):
    assert show_usd(to_nano(Decimal(usd))) == shown
