"""The most that a model call can cost, before it is made: never too little, often too much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from thinkwell.core import json
from thinkwell.core.budgets import BudgetError
from thinkwell.journal.spending import HeldBudget, Need
from thinkwell.messages.model_messages import FileContent, ModelMessage
from thinkwell.models.base import Model, ModelRequest
from thinkwell.models.prices import KnownPrice, chain_of
from thinkwell.turn.end.ending import StageError
from thinkwell.turn.run.running import RunningTurn
from thinkwell.turn.run.step import Step

SAFE_OUTPUTS: Final = (4096, 1024)
"""Limits of the output that every model accepts, if nobody gave one and there is little room."""
PER_MESSAGE: Final = 16
"""Tokens that a provider adds around a message or a tool."""
PER_IMAGE: Final = 50_000
"""More than any provider counts for an image, whatever its size."""


def worst_cases(turn: RunningTurn, step: Step, budgets: Sequence[HeldBudget]) -> list[Need]:
    """The worst case, and smaller ones that a limit of the output would make of it."""
    priced = any(held.budget.usd is not None for held in budgets)
    find = turn.parts.prices.find
    known = {each: find(each.provider, each.model_id) for each in chain_of(step.model)}
    unknown = next((model for model, price in known.items() if price is None), None)
    if priced and unknown is not None:
        raise StageError("step", no_price(unknown))
    given = estimate_input(step.request)
    windows = [price.context_window for price in known.values() if price is not None]
    if windows and all(windows):
        given = min(given, max(cast("list[int]", windows)))  # a longer request is refused
    thinking = _thinking(step.request)
    if (limit := step.request.max_output_tokens) is not None:
        return [_need(known, given, limit + thinking, priced=priced)]
    needs: list[Need] = []
    outputs = [_output_limit(model, price) for model, price in known.items()]
    if all(outputs):
        most = max(cast("list[int]", outputs))
        needs.append(_need(known, given, most + thinking, priced=priced))
    for limit in SAFE_OUTPUTS:
        need = _need(known, given, limit + thinking, priced=priced)
        needs.append(msgspec.structs.replace(need, limit=limit))
    return needs


def _need(
    known: Mapping[Model, KnownPrice | None], given: int, output: int, *, priced: bool
) -> Need:
    """Of a chain the dearest model counts: any of them may be the one that answers."""
    prices = [price for price in known.values() if price is not None] if priced else []
    nano = max((price.worst_of(given, output) for price in prices), default=0)
    return Need(nano_usd=nano, tokens=given + output)


def _output_limit(model: Model, price: KnownPrice | None) -> int | None:
    if model.provider == "anthropic":
        from thinkwell.models.anthropic_request import default_max_tokens

        return default_max_tokens(model.model_id)  # what the adapter sends
    return None if price is None else price.max_output_tokens or price.context_window


def _thinking(request: ModelRequest) -> int:
    """Tokens of reasoning that Anthropic is allowed on top of the limit."""
    found: Any = request.provider_options
    for name in ("anthropic", "thinking", "budget_tokens"):
        found = cast("Any", found).get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, int) else 0


def estimate_input(request: ModelRequest) -> int:
    """No fewer tokens than any provider counts: a token is at least one byte of text."""
    total = len(request.system.encode()) + PER_MESSAGE
    if request.tools:
        total += len(json.dump_bytes(request.tools)) + PER_MESSAGE * len(request.tools)
    if request.response_format is not None:
        total += len(json.dump_bytes(dict(request.response_format)))
    return total + sum(_message_tokens(message) for message in request.messages)


def _message_tokens(message: ModelMessage) -> int:
    if isinstance(message.content, str):
        return PER_MESSAGE + len(message.content.encode())
    return PER_MESSAGE + sum(
        _file_tokens(part) if isinstance(part, FileContent) else len(json.dumps(part).encode())
        for part in message.content
    )


def _file_tokens(file: FileContent) -> int:
    if file.media_type.startswith("image/"):
        return PER_IMAGE
    # Of a file behind an address nobody knows the size; a context window cuts this down.
    return len(file.url) if file.url.startswith("data:") else 1_000_000


def no_price(model: Model) -> BudgetError:
    """The error for a model under a budget in dollars that nobody knows the price of."""
    name = f"{model.provider}:{model.model_id}"
    return BudgetError(
        f"A budget in dollars needs the price of {name!r}, which is not known. Give it: "
        f'`App(prices={{"{name}": Price(input=..., output=...)}})`, in dollars per million tokens; '
        "or install thinkwell[prices]; or give the budget in tokens."
    )
