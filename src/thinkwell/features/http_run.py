"""Turns for other programs: JSON in, JSON out.

    POST run              {input, metadata?, idempotencyKey?, wait?}: the result, or with
                          `wait: false` only that it was accepted
    GET  run/{requestId}  how a turn stands

A run is durable: whoever asked may go away, and with the same idempotency key ask again for the
same result. Of messages only a user's count, as everywhere from outside (DESIGN §8.12).
"""

from __future__ import annotations

import asyncio
from typing import Any, cast
from urllib.parse import unquote

from thinkwell.core.errors import HostClosedError, SubmissionConflictError
from thinkwell.core.tasks import CutOffError
from thinkwell.journal.turns import TurnRecord
from thinkwell.messages.message import UIMessage, text_of
from thinkwell.messages.visible import visible_message
from thinkwell.turn.ask.admission import MOST_NEW, TurnRequest
from thinkwell.turn.ask.chat_request import ask_as_client, asker_of, demand_send
from thinkwell.turn.ask.forgery import report_copies
from thinkwell.turn.ask.inputs import as_messages, from_client, is_empty
from thinkwell.turn.turns import Turns
from thinkwell.wire.http import RETRY_LATER, HttpResponse
from thinkwell.wire.http_body import (
    AgentRequest,
    Refusal,
    check_sizes,
    json_response,
    read_object,
)

_FIELDS = ("input", "metadata", "idempotencyKey", "wait")
_EXAMPLE = '`{"input": "hello"}`'
LONGEST_KEY = 255


async def post_run(turns: Turns, visit: AgentRequest) -> HttpResponse:
    """Accept a turn; answer with its result, or with its id."""
    body = await read_object(visit.request)
    wait = _flag(body, "wait", default=True)
    request = _turn_request(body, visit)
    asker = asker_of(visit, request.trigger)
    newest = request.messages[-1]["id"] if request.messages else None
    await demand_send(turns, asker, None, newest)
    if isinstance(body["input"], list):
        await report_copies(turns, cast("list[Any]", body["input"]), asker.principal)
    try:
        admission, _ = await ask_as_client(turns, request, asker)
    except SubmissionConflictError as error:
        raise Refusal(409, str(error)) from error
    record = admission.record
    if not wait:
        status = {"status": record.status, "accepted": admission.accepted}
        return json_response({"requestId": record.request_id, **status}, 202)
    return json_response(await _report(turns, await _settled(turns, record)))


async def get_run(turns: Turns, visit: AgentRequest) -> HttpResponse:
    """How a turn stands."""
    request_id = unquote(visit.request.path.rpartition("/")[2])
    record = await turns.find(request_id)
    if record is None:
        raise Refusal(404, f"There is no turn {request_id!r}.")
    return json_response(await _report(turns, record))


def _turn_request(body: dict[str, Any], visit: AgentRequest) -> TurnRequest:
    for name in body:
        if name not in _FIELDS:
            raise Refusal(400, f"There is no field {name!r}. Known: {', '.join(_FIELDS)}.")
    asked = body.get("input")
    if not isinstance(asked, str | dict | list) or is_empty(cast("Any", asked)):
        raise Refusal(400, f"`input` must be a text, a message or a list of messages: {_EXAMPLE}.")
    try:
        given = as_messages(cast("Any", asked))
        messages = tuple(from_client(m) for m in given if m["role"] == "user")
    except ValueError as error:
        raise Refusal(400, f"`input` cannot be used: {error}.") from error
    if not messages:
        raise Refusal(400, "`input` has no user message: the server writes all others itself.")
    if len(messages) > MOST_NEW:
        raise Refusal(413, f"`input` has {len(messages)} messages; at most {MOST_NEW} may come.")
    check_sizes(messages)
    return TurnRequest(
        trigger="submission",
        messages=messages,
        new_ids=isinstance(asked, str),
        metadata=_metadata(body),
        idempotency_key=_key(body),
        principal=visit.request.principal,
        read_only=visit.read_only,
    )


def _metadata(body: dict[str, Any]) -> dict[str, Any] | None:
    value = body.get("metadata")
    if value is not None and not isinstance(value, dict):
        raise Refusal(400, "`metadata` must be an object.")
    return cast("dict[str, Any] | None", value)


def _key(body: dict[str, Any]) -> str | None:
    value = body.get("idempotencyKey")
    if value is not None and not (isinstance(value, str) and 0 < len(value) <= LONGEST_KEY):
        raise Refusal(400, f"`idempotencyKey` must be a text of 1 to {LONGEST_KEY} characters.")
    return value


def _flag(body: dict[str, Any], name: str, *, default: bool) -> bool:
    value = body.get(name, default)
    if not isinstance(value, bool):
        raise Refusal(400, f"`{name}` must be true or false.")
    return value


async def _settled(turns: Turns, record: TurnRecord) -> TurnRecord:
    """The row of a turn once it has ended. Nobody who leaves here stops it."""
    request_id = record.request_id
    handle = next((t for t in turns.handles() if t.record.request_id == request_id), None)
    if handle is not None:
        try:
            await handle.wait()
        except HostClosedError as error:
            raise _later(request_id, str(error)) from error
        except asyncio.CancelledError as cut:
            said = _later(request_id, "The server stops; the turn goes on at its next start.")
            raise CutOffError({"error": said.text, **said.facts}) from cut
    found = await turns.find(request_id)
    if found is None or not found.settled:
        raise _later(request_id, "The turn has no stored end yet.")
    return found


def _later(request_id: str, why: str) -> Refusal:
    """The turn is accepted and will end, but not while this request waits."""
    text = f"{why} Ask for it later: `run/{request_id}`."
    return Refusal(503, text, RETRY_LATER, facts={"requestId": request_id})


async def _report(turns: Turns, record: TurnRecord) -> dict[str, Any]:
    message = await _reply_of(turns, record)
    report: dict[str, Any] = {
        "requestId": record.request_id,
        "status": record.status,
        "text": "" if message is None else text_of(message),
        "message": message,
        "usage": record.usage if record.settled else None,
    }
    if record.settled:
        report["stopReason"] = record.stop_reason
    if record.output is not None:
        report["output"] = record.output
    if record.status == "error":
        report["error"] = record.client_error
    return report


async def _reply_of(turns: Turns, record: TurnRecord) -> UIMessage | None:
    if record.message_id is None or not record.settled:
        return None
    stored = await turns.parts.session.get_message(record.message_id)
    return None if stored is None else visible_message(stored)
