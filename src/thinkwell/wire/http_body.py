"""What a request says, or a refusal that tells its sender what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from thinkwell.core import json
from thinkwell.core.errors import MessageTooLargeError
from thinkwell.core.tasks import in_pieces
from thinkwell.messages.limits import enforce_row_size_limit
from thinkwell.messages.message import UIMessage
from thinkwell.wire.client_json import TooLargeError, parse_body
from thinkwell.wire.http import HttpRequest, HttpResponse


class Refusal(Exception):  # noqa: N818 - an answer, not a defect
    """A request that cannot be served. Becomes the answer; never leaves the route."""

    def __init__(
        self,
        status: int,
        text: str,
        headers: Mapping[str, str] | None = None,
        *,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(text)
        self.facts = facts or {}
        """What a JSON answer says beside the text."""
        self.status = status
        self.text = text
        self.headers = headers or {}


def json_response(value: Any, status: int = 200) -> HttpResponse:
    """An answer in JSON."""
    return HttpResponse(status=status, body=json.dump_bytes(value), content_type="application/json")


async def read_object(request: HttpRequest) -> dict[str, Any]:
    """The JSON object in the body.

    The content type must say JSON: a page of another site cannot send that without asking first.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refusal(415, "Send JSON with the header `content-type: application/json`.")
    try:
        value = await in_pieces(parse_body(request.body))
    except RecursionError:
        raise Refusal(400, "The body is nested too deeply.") from None
    except TooLargeError as error:
        raise Refusal(413, f"The body is too large: {error}.") from error
    except ValueError:
        raise Refusal(400, "The body is not JSON.") from None
    if not isinstance(value, dict):
        raise Refusal(400, "The body must be a JSON object.")
    return cast("dict[str, Any]", value)


def check_sizes(messages: Iterable[UIMessage]) -> None:
    """Refuse messages that could not be stored, before anything is accepted (spec/01 §7.7)."""
    try:
        for message in messages:
            enforce_row_size_limit(message)
    except MessageTooLargeError as error:
        raise Refusal(413, str(error)) from error
