"""The budgets of an agent as its own code sees them: how they stand, and more for one of them."""

from __future__ import annotations

from collections.abc import Sequence

from thinkwell.core.budgets import Amount, Budget, BudgetError, BudgetState, Per, Whose
from thinkwell.core.money import read_amount, to_nano, to_usd
from thinkwell.core.principal import Principal
from thinkwell.journal.spending import (
    ALL_AGENTS,
    UNUSED,
    Limit,
    ScopeSums,
    add_allowance,
    limit_of,
    standings,
)
from thinkwell.journal.turns import TurnRecord
from thinkwell.turn.parts import held_budgets
from thinkwell.turn.turns import Turns


class TurnBudgets:
    """What `agent.budgets` is made of."""

    def __init__(self, turns: Turns) -> None:
        self._parts = turns.parts

    async def states(self, whose: Whose) -> list[BudgetState]:
        """How the budgets stand now, those of the class first."""
        limits = self._limits(whose)
        if whose.message_id is None:
            limits = [limit for limit in limits if limit.held.budget.subject != "turn"]
        found = await standings(self._parts.store, limits)
        return [_state(limit, found.get(limit.scope, UNUSED)) for limit in limits]

    async def extend(
        self, per: Sequence[Per], usd: object, tokens: int | None, whose: Whose
    ) -> BudgetState:
        """Allow more than a budget says. Raises `BudgetError`."""
        limits = self._limits(whose)
        named = [each for each in limits if set(each.held.budget.pers) == set(per)]
        named.sort(key=lambda each: not _has_units(each.held.budget, usd, tokens))
        limit = named[0] if named else None
        if limit is None:
            known = ", ".join(each.held.budget.words for each in limits) or "none"
            wanted = " and ".join(per)
            raise BudgetError(f"There is no budget per {wanted} here. There are: {known}.")
        more = _amount(limit.held.budget, usd, tokens)
        if limit.held.budget.subject == "turn" and whose.message_id is None:
            raise BudgetError(
                "A budget per turn is that of one answer. Say which: "
                '`extend(usd=2, per="turn", message_id=...)`.'
            )
        parts, now = self._parts, self._parts.clock.now()
        await parts.commits.run(parts.owner, lambda tx: add_allowance(tx, limit, more, now=now))
        found = await standings(parts.store, [limit])
        return _state(limit, found.get(limit.scope, UNUSED))

    def _limits(self, whose: Whose) -> list[Limit]:
        parts = self._parts
        asked = TurnRecord(
            agent_id=parts.owner.agent_id,
            request_id="",
            trigger="programmatic",
            status="completed",
            generation=0,
            principal=None if whose.principal is None else Principal(id=whose.principal),
            message_id=whose.message_id,
        )
        return [limit_of(held, asked, parts.clock.now()) for held in held_budgets(parts)]


def _amount(budget: Budget, usd: object, tokens: int | None) -> Amount:
    amount = None if usd is None else read_amount(usd)
    wrong = (usd is not None and not amount) or (tokens is not None and tokens <= 0)
    if wrong or (usd is None and tokens is None):
        raise BudgetError('Say how much more: `extend(usd=2, per="day")`, or `tokens=...`.')
    if not _has_units(budget, usd, tokens):
        unit = "tokens" if budget.usd is None else "dollars"
        raise BudgetError(f"The budget {budget.words} is in {unit} only, so more is too.")
    return Amount(None if amount is None else to_nano(amount), tokens)


def _has_units(budget: Budget, usd: object, tokens: int | None) -> bool:
    """Whether a budget limits whatever is given."""
    in_usd, in_tokens = budget.usd is not None, budget.tokens is not None
    return (usd is None or in_usd) and (tokens is None or in_tokens)


def _state(limit: Limit, standing: ScopeSums) -> BudgetState:
    cap = limit.held.budget.cap
    nano = None if cap.nano_usd is None else cap.nano_usd + standing.added_nano_usd
    return BudgetState(
        per=limit.held.budget.pers,
        shared=limit.held.owner == ALL_AGENTS,
        usd=None if nano is None else to_usd(nano),
        tokens=None if cap.tokens is None else cap.tokens + standing.added_tokens,
        spent_usd=to_usd(standing.nano_usd),
        spent_tokens=standing.tokens,
        reserved_usd=to_usd(standing.reserved_nano_usd),
        reserved_tokens=standing.reserved_tokens,
    )
