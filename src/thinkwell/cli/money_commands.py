"""The commands about money: what turns have cost, and how budgets stand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

Decorate = Callable[[Any], Any]


def add_money(main: click.Group, json_option: Decorate, store_option: Decorate) -> None:
    """Add them to the program."""

    @main.command()
    @click.option(
        "--by",
        type=click.Choice(("agent", "principal", "day", "model")),
        default="agent",
        show_default=True,
        help="What to sum up by. Days are those of UTC.",
    )
    @click.option("--since", default="7d", show_default=True, help="How far back: 24h, 7d, 4w.")
    @click.option("--agent", help="Only turns of one agent (class/name).")
    @json_option
    @store_option
    def costs(store: str, **options: Any) -> None:
        """What turns have cost: tokens, and dollars where prices are known."""
        from thinkwell.cli.costs import show_costs

        show_costs(store, **options)

    @main.command()
    @click.option("--agent", help="Only those of one agent (class/name) and its answers.")
    @click.option("--limit", default=30, show_default=True, help="How many, the last used first.")
    @json_option
    @store_option
    def budgets(store: str, **options: Any) -> None:
        """How budgets stand: what is spent, and what is reserved by steps that run."""
        from thinkwell.cli.costs import show_budgets

        show_budgets(store, **options)
