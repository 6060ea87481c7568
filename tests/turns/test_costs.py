"""What turns cost: in the result, on the row, in the journal, in sums (spec/02 §8)."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import CliRunner

from thinkwell import App, Think, tool
from thinkwell.cli.main import main
from thinkwell.core import json
from thinkwell.core.errors import ConfigurationError
from thinkwell.models import Price
from thinkwell.testing import ScriptedModel, call

PRICES = {"scripted:scripted": Price(input=2, output=10), "scripted:b": Price(input=1, output=1)}
STEP = (10 * 2 + 5 * 10) * 1000
"""What a scripted step costs: ten tokens in, five out."""


def clerk(*steps: object, model_id: str = "scripted") -> type[Think]:
    class Priced(Think):
        model = ScriptedModel(steps, model_id=model_id)  # type: ignore[arg-type]

        @tool
        def look(self) -> str:
            """Look."""
            return "seen"

    return Priced


def store_of(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/costs.db"


async def test_a_turn_costs_what_its_steps_cost(tmp_path: Path):
    cls = clerk([call("look")], "done")
    async with App([cls], store=store_of(tmp_path), prices=PRICES) as app:
        result = await app.agent(cls).run("go")
        assert result.usage.cost == Decimal(2 * STEP) / 10**9
        assert result.usage.nano_usd == 2 * STEP


async def test_a_model_without_a_price_has_no_cost(tmp_path: Path):
    cls = clerk("done")
    async with App([cls], store=store_of(tmp_path)) as app:
        assert (await app.agent(cls).run("go")).usage.cost is None


async def test_costs_are_summed_from_the_rows_of_turns(tmp_path: Path):
    cls = clerk("one", "two", "three")
    async with App([cls], store=store_of(tmp_path), prices=PRICES) as app:
        alice, bob = app.agent(cls, "alice"), app.agent(cls, "bob")
        for agent in (alice, alice, bob):
            await agent.run("go")
        sums = await alice.costs.today()
        assert (sums.nano_usd, sums.turns, sums.input_tokens) == (2 * STEP, 2, 20)
        assert sums.usd == Decimal(2 * STEP) / 10**9
        (by_model,) = await alice.costs.by("model")
        assert (by_model.key, by_model.unpriced) == ("scripted:scripted", 0)
        (day,) = await bob.costs.by("day", timedelta(days=1))
        assert (day.key, day.turns) == (datetime.now(UTC).date().isoformat(), 1)
        assert (await alice.costs.total(datetime.now(UTC) + timedelta(days=1))).turns == 0


async def test_a_sum_since_a_time_without_a_zone_is_refused(tmp_path: Path):
    cls = clerk()
    async with App([cls], store=store_of(tmp_path)) as app:
        agent = app.agent(cls)
        with pytest.raises(ConfigurationError, match="tzinfo=UTC"):
            await agent.costs.total(datetime(2026, 5, 1))  # noqa: DTZ001 - that is the mistake
        with pytest.raises(ConfigurationError, match="'principal'"):
            await agent.costs.by(cast("Any", "user"))


async def test_the_command_line_sums_up_and_shows_single_turns(tmp_path: Path):
    cls, store = clerk("one", "two", model_id="b"), store_of(tmp_path)
    async with App([cls], store=store, prices=PRICES) as app:
        agent = app.agent(cls, "alice")
        result = await agent.run("go")
        await agent.run("again")
    run = CliRunner().invoke
    shown = json.loads(run(main, ["costs", "--by", "model", "--json", "--store", store]).output)
    assert [(line["key"], line["nanoUsd"], line["turns"]) for line in shown] == [
        ("scripted:b", 30_000, 2)
    ]
    table = run(main, ["costs", "--by", "agent", "--store", store]).output
    assert "priced/alice" in table
    assert "$0.00003" in table
    assert "$0.000015" in run(main, ["turns", "list", "--store", store]).output
    asked = ["turns", "show", result.request_id, "--json", "--store", store]
    whole = json.loads((await asyncio.to_thread(run, main, asked)).output)
    assert whole["cost"] == 0.000015
    ended = [event for event in whole["events"] if event["kind"] == "model"]
    assert ended[0]["usage"]["nanoUsd"] == 15_000
    assert ended[0]["answeredBy"] == "scripted:b"
    wrong = run(main, ["costs", "--since", "soon", "--store", store])
    assert "7d" in wrong.output


async def test_costs_without_prices_say_that_they_are_not_whole(tmp_path: Path):
    cls, store = clerk("one"), store_of(tmp_path)
    async with App([cls], store=store) as app:
        await app.agent(cls).run("go")
    shown = CliRunner().invoke(main, ["costs", "--store", store]).output
    assert "$0.00+" in shown
    assert "App(prices={...})" in shown


def test_prices_must_be_prices_by_name(tmp_path: Path):
    with pytest.raises(ConfigurationError, match=r"Price\(input=3, output=12\)"):
        App([clerk()], prices={"gpt-4o": 3})  # type: ignore[dict-item]
