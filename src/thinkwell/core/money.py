"""Money as whole numbers: a billionth of a dollar is the unit of everything that is stored.

The cheapest models cost a few billionths a token, so a step has a whole price, and sums are exact.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal, InvalidOperation
from typing import Final

NANO: Final = 1_000_000_000
"""Units in a dollar."""


def to_nano(usd: Decimal) -> int:
    """Dollars in units, rounded up: what is counted is never less than what is billed."""
    return int((usd * NANO).to_integral_value(ROUND_CEILING))


def to_usd(nano: int) -> Decimal:
    """Units in dollars, exactly."""
    return Decimal(nano) / NANO


def show_usd(nano: int) -> str:
    """An amount for people: cents, and more digits only where cents would say nothing."""
    usd = to_usd(nano)
    if usd == usd.quantize(Decimal("0.01")) or abs(usd) >= 1:
        return f"${usd:,.2f}"
    return f"${usd:.4f}" if abs(usd) >= Decimal("0.0001") else f"${usd:.9f}".rstrip("0")


def read_amount(value: object) -> Decimal | None:
    """A number of dollars as somebody wrote it; None if it is none, negative or endless."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        return None
    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        return None
    return amount if amount.is_finite() and amount >= 0 else None
