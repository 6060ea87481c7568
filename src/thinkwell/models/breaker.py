"""A circuit breaker: a model that fails again and again is left alone for a while (pure).

Closed, every call goes through. After `FAILURES` failures in a row it is open: calls go elsewhere
for `COOL_DOWN` seconds. Then one call may try; if it fails the wait begins again. Only failures
that say something about the model count: a request that nobody could answer says nothing.
"""

from __future__ import annotations

from typing import Final

import msgspec

from thinkwell.models.error_classes import ErrorClass

FAILURES: Final = 3
COOL_DOWN: Final = 30.0
_ABOUT_THE_REQUEST: Final[frozenset[ErrorClass]] = frozenset(
    {"context_overflow", "invalid_request", "content_filter"}
)


class Breaker(msgspec.Struct, frozen=True):
    """How a model has behaved lately."""

    failures: int = 0
    """In a row."""
    tried_at: float = 0.0
    """When the last of them was, or when the one call began that may try."""

    def is_open(self, now: float) -> bool:
        """Whether calls should go elsewhere."""
        return self.failures >= FAILURES and now - self.tried_at < COOL_DOWN

    def trying(self, now: float) -> Breaker:
        """After a call was let through: of an open one, no second call tries meanwhile."""
        return Breaker(self.failures, now) if self.failures >= FAILURES else self

    def failed(self, kind: ErrorClass, now: float) -> Breaker:
        """After a failure."""
        return self if kind in _ABOUT_THE_REQUEST else Breaker(self.failures + 1, now)

    def answered(self) -> Breaker:
        """After a call that began to answer."""
        return Breaker() if self.failures else self
