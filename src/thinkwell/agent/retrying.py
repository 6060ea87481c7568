"""Running a turn again by hand that ended badly: a new turn with the same question.

Each turn has one end, so the old row stays as it is. The new turn's id says which one it repeats,
and asking twice gives the same turn.
"""

from __future__ import annotations

from msgspec.structs import replace

from thinkwell.agent.turns import Turns
from thinkwell.core.errors import TurnError
from thinkwell.journal.turns import TurnRecord
from thinkwell.turn.admission import TurnRequest

RETRIED = ":retry"
"""What the id of the new turn has at its end; `list_turns` knows it too."""


async def retry_turn(turns: Turns, request_id: str) -> str:
    """Accept the new turn; its id. Raises `TurnError` if there is nothing to repeat."""
    record = await turns.find(request_id)
    if record is None:
        raise TurnError(f"{turns.parts.owner.agent_id} has no turn {request_id!r}.")
    if not record.settled:
        raise TurnError(f"The turn {request_id!r} has not ended; it goes on by itself.")
    if record.status not in ("error", "aborted"):
        raise TurnError(f"The turn {request_id!r} ended as {record.status}; it needs no retry.")
    question = record.branch_from
    if question and await turns.parts.session.get_message(question) is None:
        question = None
    admission, _ = await turns.ask(_request(record, question))
    return admission.record.request_id


def _request(record: TurnRecord, question: str | None) -> TurnRequest:
    again = TurnRequest(
        trigger="programmatic",
        request_id=f"{record.request_id}{RETRIED}",
        body=record.body,
        client_tools=record.client_tools,
        metadata=record.metadata,
        principal=record.principal,
        read_only=record.read_only,
        message_ids=record.message_ids,
    )
    if record.continuation:
        return replace(again, continues=record.message_id)
    if question is not None:
        return replace(again, listed=(question,), branch_from=question)
    if record.attempt > 0 or not record.input:
        raise TurnError(f"The question of the turn {record.request_id!r} was deleted.")
    return replace(again, messages=record.input)
