"""Turns for other programs: JSON in, JSON out.

    POST run              {input, metadata?, idempotencyKey?, wait?}: the result, or with
                          `wait: false` only that it was accepted
    GET  run/{requestId}  how a turn stands

A run is durable: whoever asked may go away, and with the same idempotency key ask again for the
same result. Of messages only a user's count, as everywhere from outside (DESIGN §8.12).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

from thinkwell.core.errors import HostClosedError, SubmissionConflictError
from thinkwell.core.tasks import CutOffError
from thinkwell.hooks.feature import Feature
from thinkwell.hooks.routes import Route, RouteRequest
from thinkwell.journal.submission import Submission
from thinkwell.journal.turns import TurnRecord
from thinkwell.messages.message import UIMessage, text_of, visible_message
from thinkwell.wire.http import RETRY_LATER, HttpResponse
from thinkwell.wire.http_body import Refusal, json_response, read_object

_FIELDS = ("input", "metadata", "idempotencyKey", "wait")
_EXAMPLE = '`{"input": "hello"}`'
LONGEST_KEY = 255


class HttpRun(Feature):
    """One turn, asked for and answered in JSON."""

    name = "http_run"
    namespace = False

    def routes(self) -> Sequence[Route]:
        """The kit asks `authorize` itself."""
        return (
            Route("POST", "run", self.post, asks=False),
            Route("GET", "run/{request_id}", self.get),
        )

    async def post(self, asked: RouteRequest) -> HttpResponse:
        """Accept a turn; answer with its result, or with its id."""
        body = await read_object(asked.request)
        wait = _flag(body, "wait", default=True)
        sent = await self._admit(body, asked)
        if not wait:
            status = {"status": sent.status, "accepted": sent.accepted}
            return json_response({"requestId": sent.request_id, **status}, 202)
        return json_response(await self._report(await self._settled(sent.request_id)))

    async def get(self, asked: RouteRequest) -> HttpResponse:
        """How a turn stands."""
        request_id = asked.params["request_id"]
        record = await self.kit.find(request_id)
        if record is None:
            raise Refusal(404, f"There is no turn {request_id!r}.")
        return json_response(await self._report(record))

    async def _admit(self, body: dict[str, Any], asked: RouteRequest) -> Submission:
        for name in body:
            if name not in _FIELDS:
                raise Refusal(400, f"There is no field {name!r}. Known: {', '.join(_FIELDS)}.")
        given = body.get("input")
        if not isinstance(given, str | dict | list) or not given:
            raise Refusal(
                400, f"`input` must be a text, a message or a list of messages: {_EXAMPLE}."
            )
        metadata, key = _metadata(body), _key(body)
        try:
            return await self.kit.admit(
                cast("Any", given), by=asked, metadata=metadata, idempotency_key=key
            )
        except SubmissionConflictError as error:
            raise Refusal(409, str(error)) from error
        except ValueError as error:
            raise Refusal(400, f"`input` cannot be used: {error}.") from error

    async def _settled(self, request_id: str) -> TurnRecord:
        """The row of a turn that is over. Nobody who leaves here stops it."""
        try:
            found = await self.kit.wait(request_id)
        except HostClosedError as stop:
            raise _later(request_id, str(stop)) from stop
        except asyncio.CancelledError as cut:
            said = _later(request_id, "The server stops; the turn goes on at its next start.")
            raise CutOffError({"error": said.text, **said.facts}) from cut
        if not found.settled:
            raise _later(request_id, "The turn has no stored end yet.")
        return found

    async def _report(self, record: TurnRecord) -> dict[str, Any]:
        message = await self._answer_of(record)
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

    async def _answer_of(self, record: TurnRecord) -> UIMessage | None:
        if record.message_id is None or not record.settled:
            return None
        stored = await self.kit.session.get_message(record.message_id)
        return None if stored is None else visible_message(stored)


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


def _later(request_id: str, why: str) -> Refusal:
    """The turn is accepted and will end, but not while this request waits."""
    text = f"{why} Ask for it later: `run/{request_id}`."
    return Refusal(503, text, RETRY_LATER, facts={"requestId": request_id})
