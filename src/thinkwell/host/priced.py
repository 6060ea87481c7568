"""A budget in dollars on a model that nobody knows the price of is refused at the start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from thinkwell.core.budgets import Budget, read_budgets
from thinkwell.core.errors import ConfigurationError
from thinkwell.models.prices import Price, full_name, without_price


def check_priced(cls: type, shared: Sequence[Budget], given: Mapping[str, Price]) -> None:
    """Raise for a class whose turns would all end with an error. `shared` are the app's budgets.

    A model that is an object, or chosen in `get_model`, is known when it is called.
    """
    own: Any = getattr(cls, "budget", ())
    mine = () if not own or hasattr(own, "__get__") else read_budgets(own, f"{cls.__name__}.budget")
    if all(budget.usd is None for budget in (*mine, *shared)):
        return
    model: Any = getattr(cls, "model", None)
    names = cast("Sequence[Any]", model) if isinstance(model, list | tuple) else [model]
    for name in names:
        if without_price(name, given):
            entry = f'"{full_name(name)}": Price(input=..., output=...)'
            raise ConfigurationError(
                f"{cls.__name__} has a budget in dollars, and nobody knows the price of its model "
                f"{name!r}. Give it: `App(prices={{{entry}}})`; "
                "or install thinkwell[prices]; or give the budget in tokens."
            )
