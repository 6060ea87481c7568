"""What ended turns have cost, summed up from their rows. There is no second set of books."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Literal, TypeAlias

import msgspec

from thinkwell.core.money import to_usd
from thinkwell.store.base import Row, Store

CostBy: TypeAlias = Literal["agent", "principal", "day", "model"]
"""What costs can be summed up by. Days are those of UTC."""
FOR_EVER = float("inf")


class CostLine(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What the turns of one agent, principal, day or model have cost."""

    key: str | None
    """Which one; None for turns of nobody in particular, and for a sum of everything."""
    nano_usd: int = 0
    """In billionths of a dollar, as far as prices are known."""
    input_tokens: int = 0
    output_tokens: int = 0
    turns: int = 0
    unpriced: int = 0
    """How many sums of one model in one turn are missing from the cost: nobody knew the price."""

    @property
    def usd(self) -> Decimal:
        """In dollars."""
        return to_usd(self.nano_usd)


def total_of(lines: Iterable[CostLine]) -> CostLine:
    """All of them together. Of turns that used two models, lines by model count each twice."""
    found = list(lines)
    numbers = ("nano_usd", "input_tokens", "output_tokens", "turns", "unpriced")
    return CostLine(
        key=None, **{name: sum(getattr(line, name) for line in found) for name in numbers}
    )


async def costs_by(
    store: Store, by: CostBy, *, agent: str | None, since: float = 0.0, until: float = FOR_EVER
) -> list[CostLine]:
    """Sums over the turns that ended in that time, the dearest first."""
    asked = {"by": by, "agent": agent, "since": since, "until": until}
    return [cost_line(row) for row in await store.fetch_in_background("costs_by", asked)]


def cost_line(row: Row) -> CostLine:
    """One row of `costs_by`."""
    return CostLine(**{name: row[name] for name in CostLine.__struct_fields__})
