"""Token counts of one model call and what it cost, and their sum."""

from __future__ import annotations

from decimal import Decimal
from typing import cast

import msgspec

from thinkwell.core.money import to_usd


class Usage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Token counts. None: the provider did not say. Stored: change only with a migration."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_input_tokens: int | None = None
    """Input tokens that the provider had in its cache; `input_tokens` counts them too."""
    cache_write_tokens: int | None = None
    """Input tokens that the provider put into its cache; `input_tokens` counts them too."""
    nano_usd: int | None = None
    """What it cost, in billionths of a dollar; None if a price is not known."""

    @property
    def cost(self) -> Decimal | None:
        """What it cost in dollars; None if the price of a model in it is not known."""
        return None if self.nano_usd is None else to_usd(self.nano_usd)

    @property
    def known(self) -> dict[str, int]:
        """The counts that somebody gave, by their names on the wire. A row holds only these."""
        counts = cast("dict[str, int | None]", msgspec.to_builtins(self))
        return {name: count for name, count in counts.items() if count is not None}

    @property
    def is_empty(self) -> bool:
        """Whether no provider has counted anything."""
        return not (self.input_tokens or self.output_tokens or self.total_tokens)

    def __add__(self, other: Usage) -> Usage:
        """The sum; a count nobody gave stays None."""
        return Usage(
            input_tokens=_sum(self.input_tokens, other.input_tokens),
            output_tokens=_sum(self.output_tokens, other.output_tokens),
            total_tokens=_sum(self.total_tokens, other.total_tokens),
            reasoning_tokens=_sum(self.reasoning_tokens, other.reasoning_tokens),
            cached_input_tokens=_sum(self.cached_input_tokens, other.cached_input_tokens),
            cache_write_tokens=_sum(self.cache_write_tokens, other.cache_write_tokens),
            nano_usd=_cost(self, other),
        )

    def __sub__(self, other: Usage) -> Usage:
        """What is left of a sum without one of its parts."""
        left = {
            name: None if (count := getattr(self, name)) is None else count - taken
            for name in self.__struct_fields__
            if (taken := getattr(other, name) or 0)
        }
        return msgspec.structs.replace(self, **left) if left else self


def _sum(a: int | None, b: int | None) -> int | None:
    if a is None or b is None:
        return b if a is None else a
    return a + b


def _cost(a: Usage, b: Usage) -> int | None:
    """Half a bill would be read as the whole one: tokens without a price make the sum unknown."""
    if (a.nano_usd is None and not a.is_empty) or (b.nano_usd is None and not b.is_empty):
        return None
    return _sum(a.nano_usd, b.nano_usd)
