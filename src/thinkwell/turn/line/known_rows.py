"""What the rows of an agent's turns say, as far as its host knows that without reading them.

Only the activation that owns the agent writes them (its epoch keeps others out), so what it has
written last still holds. An activation begins without knowing anything.
"""

from __future__ import annotations

from thinkwell.journal.turns import TurnRecord


class KnownRows:
    """What accepting the next turn need not ask the store."""

    __slots__ = ("may_owe", "newest")

    def __init__(self) -> None:
        self.newest: TurnRecord | None = None
        """The turn accepted last, as it was accepted; None if that is not known. Right for whoever
        finds the line free (`TurnLine.is_free`): nobody else is being accepted then.
        """
        self.may_owe = True
        """Whether some reply may be waiting to be gone on with (`owe_continuation`)."""
