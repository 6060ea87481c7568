"""What a budget is: how much turns may cost, and what happens when that is not enough.

The ledger that keeps them is `journal/spending.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Literal, TypeAlias, cast, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from thinkwell.core.errors import ConfigurationError, TurnError
from thinkwell.core.money import read_amount, to_nano

Per: TypeAlias = Literal["turn", "agent", "principal", "day"]
OnBreach: TypeAlias = Literal["stop", "ask"]
_EXAMPLE = '`Budget(usd=5, per="day")`'


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """How much turns may cost: dollars, tokens or both, for each of what `per` names."""

    usd: float | str | Decimal | None = None
    tokens: int | None = None
    """Input and output together."""
    per: Per | tuple[Per, ...] = "turn"
    """A turn with its continuations, an agent, a principal, a day; or `("principal", "day")`."""
    on_breach: OnBreach = "stop"
    """What happens before a step that might not fit: end the turn, or ask somebody for more."""
    more_usd: float | str | Decimal | None = None
    """How much is asked for at a time; None: as much as `usd`."""
    more_tokens: int | None = None
    approvers: tuple[str, ...] | None = None
    """Who may allow more, by id; None: whoever may approve calls."""
    timezone: str = "UTC"
    """Where a day begins at midnight."""

    def __post_init__(self) -> None:
        """Refuse what is no budget."""
        problem = _problem(self)
        if problem is not None:
            raise ConfigurationError(problem)

    @property
    def pers(self) -> tuple[Per, ...]:
        """What `per` names, as a tuple."""
        return (self.per,) if isinstance(self.per, str) else tuple(self.per)

    @property
    def subject(self) -> str:
        """Whose sum it is: `turn`, `agent`, `principal`, or `all` of them."""
        return next((each for each in self.pers if each != "day"), "all")

    @property
    def words(self) -> str:
        """For people: `per principal and day`."""
        return f"per {' and '.join(self.pers)}"

    @property
    def cap(self) -> Amount:
        """How much there is."""
        return Amount(_nano(self.usd), self.tokens)

    @property
    def more(self) -> Amount:
        """How much is asked for at a time."""
        return Amount(
            _nano(self.usd if self.more_usd is None else self.more_usd),
            self.tokens if self.more_tokens is None else self.more_tokens,
        )


class Amount(msgspec.Struct, frozen=True):
    """Money and tokens; None where there is no limit to it."""

    nano_usd: int | None
    tokens: int | None


def _nano(usd: object) -> int | None:
    return None if usd is None else to_nano(read_amount(usd) or Decimal(0))


def _problem(budget: Budget) -> str | None:
    """What is wrong with it, and what to write."""
    wrong = [name for name in ("usd", "more_usd") if not _is_amount(getattr(budget, name))]
    counts = ("tokens", "more_tokens")
    wrong += [name for name in counts if not _is_count(getattr(budget, name))]
    if wrong:
        given = getattr(budget, wrong[0])
        return f"Budget({wrong[0]}={given!r}) is wrong. Give an amount above 0: {_EXAMPLE}."
    if budget.usd is None and budget.tokens is None:
        return f"This Budget limits nothing. Give `usd`, `tokens` or both: {_EXAMPLE}."
    pers = budget.pers
    if "tree" in cast("tuple[str, ...]", pers):
        return (
            'Budget(per="tree") comes with sub-agents, which there are none of yet. '
            'Write per="turn", "agent", "principal" or "day".'
        )
    known = get_args(Per)
    if not pers or len(set(pers)) < len(pers) or any(each not in known for each in pers):
        return f"Budget(per={budget.per!r}) is unknown. Use {', '.join(map(repr, known))}."
    if len([each for each in pers if each != "day"]) > 1 or set(pers) == {"turn", "day"}:
        return (
            f"Budget(per={budget.per!r}) names two sums. Write "
            '`budget = [Budget(...), Budget(...)]`; only "agent" and "principal" go with "day".'
        )
    if budget.on_breach not in get_args(OnBreach):
        return f'Budget(on_breach={budget.on_breach!r}) is unknown. Write "stop" or "ask".'
    if budget.on_breach == "stop" and (budget.more_usd or budget.more_tokens or budget.approvers):
        return 'This Budget says what to ask for and never asks. Add on_breach="ask".'
    try:
        ZoneInfo(budget.timezone)
    except (ZoneInfoNotFoundError, ValueError, TypeError):
        return f'Budget(timezone={budget.timezone!r}) is unknown. Write e.g. "Europe/Berlin".'
    return None


def _is_amount(value: object) -> bool:
    amount = read_amount(value)
    return value is None or (amount is not None and amount > 0)


def _is_count(value: object) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0)


def read_budgets(given: object, where: str) -> tuple[Budget, ...]:
    """A budget or a list of them, as somebody wrote it. Raises `ConfigurationError`."""
    many = cast("list[object]", given) if isinstance(given, list | tuple) else [given]
    found = [each for each in many if isinstance(each, Budget)]
    if len(found) < len(many):
        raise ConfigurationError(
            f"{where} is {given!r:.60}. Give a Budget or a list of them: `budget = Budget(usd=5, "
            'per="day")`.'
        )
    for unit in ("usd", "tokens"):
        seen: set[frozenset[Per]] = set()
        for each in found:
            if getattr(each, unit) is None:
                continue
            if frozenset(each.pers) in seen:
                raise ConfigurationError(
                    f"{where} has two budgets of {unit} {each.words}. Keep one."
                )
            seen.add(frozenset(each.pers))
    return tuple(found)


class BudgetError(TurnError):
    """A budget cannot be kept: the price of a model is not known, or there is no such budget."""


class BudgetExceededError(BudgetError):
    """A budget has no room for the next step of the turn.

    `figures` are for people: `budget`, `spent`, `reserved` by steps that run, `needed` at most.
    """

    client_text = "This answer would exceed its budget."
    """What clients read; amounts are the operator's business."""

    def __init__(self, words: str, figures: Mapping[str, str], asked: str = "") -> None:
        super().__init__(
            f"The budget {words} of {figures['budget']} has no room for this step: "
            f"spent {figures['spent']}, reserved by steps that run {figures['reserved']}, "
            f"and the step may need up to {figures['needed']}.{asked} Raise the budget, allow more "
            "with `agent.budgets.extend(...)`, or set a lower max_output_tokens."
        )
        self.budget = words
        self.figures = dict(figures)


class BudgetState(msgspec.Struct, frozen=True, kw_only=True):
    """How one budget stands."""

    per: tuple[Per, ...]
    shared: bool
    """Whether it is the app's, for all its agents; else that of the class."""
    usd: Decimal | None
    """How much there is, with what was added; None: no limit in dollars."""
    tokens: int | None
    spent_usd: Decimal
    spent_tokens: int
    reserved_usd: Decimal
    """Set aside for steps that run."""
    reserved_tokens: int


class Whose(msgspec.Struct, frozen=True, kw_only=True):
    """Which sum of a budget is meant: those of a principal or a message need to know whose."""

    principal: str | None = None
    message_id: str | None = None
