"""Running a turn again by hand that ended badly: a new turn with the same question.

Each turn has one end, so the old row stays as it is. The new turn's id says which one it repeats,
and asking twice gives the same turn. If the question is still the last one, the new reply is a
sibling of the old; if the conversation went on, the question is asked again at its end, so that
nothing that was said since is hidden.
"""

from __future__ import annotations

from msgspec.structs import replace

from thinkwell.core.errors import TurnError
from thinkwell.core.ids import new_id
from thinkwell.journal.turns import RETRIED, TurnRecord
from thinkwell.messages.message import UIMessage
from thinkwell.turn.ask.admission import TurnRequest
from thinkwell.turn.ask.run_options import recall_options
from thinkwell.turn.turns import Turns


async def retry_turn(turns: Turns, request_id: str) -> str:
    """Accept the new turn; its id.

    Raises `TurnError` if there is nothing to repeat, `CallerLostError` if what it needs is lost.
    """
    record = await turns.find(request_id)
    if record is None:
        raise TurnError(f"{turns.parts.owner.agent_id} has no turn {request_id!r}.")
    if not record.settled:
        raise TurnError(f"The turn {request_id!r} has not ended; it goes on by itself.")
    if record.status not in ("error", "aborted"):
        raise TurnError(f"The turn {request_id!r} ended as {record.status}; it needs no retry.")
    known = await turns.find(f"{request_id}{RETRIED}")
    if known is not None:
        return known.request_id
    if record.chosen is not None:
        recall_options(record.chosen)  # else the new turn would only be stored to fail
    async with turns.intake:
        request = await _request(turns, record)
        admission, _ = await turns.ask(request)
    return admission.record.request_id


async def _request(turns: Turns, record: TurnRecord) -> TurnRequest:
    again = TurnRequest(
        trigger="programmatic",
        request_id=f"{record.request_id}{RETRIED}",
        body=record.body,
        chosen=record.chosen,
        root=record.root_id,
        client_tools=record.client_tools,
        metadata=record.metadata,
        principal=record.principal,
        read_only=record.read_only,
    )
    path = await turns.parts.session.get_history()
    is_last = bool(path) and not turns.busy
    if record.continuation:
        if not is_last or path[-1]["id"] != record.message_id:
            raise TurnError(f"The conversation went on; {record.request_id!r} cannot go on in it.")
        return replace(again, continues=record.message_id)
    question = _question(record, path)
    if is_last and path[-1]["id"] in (question["id"], record.message_id):
        return replace(again, listed=(question["id"],), branch_from=question["id"])
    return replace(again, messages=({**question, "id": new_id()},), new_ids=True)


def _question(record: TurnRecord, path: list[UIMessage]) -> UIMessage:
    """What was asked, as it stands in the conversation; before a first attempt, as it came."""
    for message in path:
        if message["id"] == record.branch_from:
            return message
    if record.attempt == 0 and record.input:
        return record.input[-1]
    raise TurnError(f"The question of the turn {record.request_id!r} is no longer shown.")
