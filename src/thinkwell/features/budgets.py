"""`agent.budgets`: how the budgets of an agent stand, and more for one of them.

What a client may do is answer a question that a budget asks, as every approval. Only the app's own
code raises a budget by an amount of its choice.
"""

from __future__ import annotations

from decimal import Decimal
from typing import cast

from thinkwell.core.budgets import BudgetState, Per, Whose
from thinkwell.hooks.feature import Feature


class Budgets(Feature):
    """The budgets that this agent's turns are under: those of its class, and the app's."""

    name = "budgets"

    async def states(
        self, *, principal: str | None = None, message_id: str | None = None
    ) -> list[BudgetState]:
        """How they stand now. Those of a principal or an answer are of the one that is named."""
        return await self.kit.budgets.states(Whose(principal=principal, message_id=message_id))

    async def extend(
        self,
        *,
        usd: float | str | Decimal | None = None,
        tokens: int | None = None,
        per: Per | tuple[Per, ...] = "agent",
        principal: str | None = None,
        message_id: str | None = None,
    ) -> BudgetState:
        """Allow so much more, for this agent, principal, answer or day only.

        A turn that waits for an answer goes on when its question is answered. Raises `BudgetError`.
        """
        named = (per,) if isinstance(per, str) else tuple(per)
        whose = Whose(principal=principal, message_id=message_id)
        return await self.kit.budgets.extend(cast("tuple[Per, ...]", named), usd, tokens, whose)
