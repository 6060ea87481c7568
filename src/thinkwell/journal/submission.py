"""What whoever asks for a turn without waiting for it gets."""

from __future__ import annotations

import msgspec

from thinkwell.journal.turns import TurnRecord, TurnStatus

OF_TASKS = "schedule:"
"""How the keys begin under which scheduled prompts are submitted. Clients may not use them: they
could take the place of a prompt that is still to come."""


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """What `submit` returns."""

    request_id: str
    """The turn's id."""
    status: TurnStatus
    """How it stands now."""
    accepted: bool
    """False if it had been submitted before."""

    @classmethod
    def of(cls, record: TurnRecord, *, accepted: bool = True) -> Submission:
        """What to say about a turn."""
        return cls(request_id=record.request_id, status=record.status, accepted=accepted)
