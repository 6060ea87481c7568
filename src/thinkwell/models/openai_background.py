"""Answers that OpenAI keeps (`background`): read with bookmarks, taken up again, cancelled.

Every event of such an answer has a number. A bookmark says behind which one to go on, and what was
open there, because the events that follow do not say it again. An event that becomes several of
ours has a bookmark behind each of them: `skip` says how many are known.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any, Final, cast
from urllib.parse import quote

from thinkwell.core.errors import ModelError
from thinkwell.core.signal import AbortSignal
from thinkwell.models.base import Bookmark, Failure, ModelEvent, ModelRequest
from thinkwell.models.openai_responses_events import ResponseEvent
from thinkwell.models.openai_responses_request import PROVIDER
from thinkwell.models.openai_responses_stream import ResponseStream
from thinkwell.models.provider_http import ProviderClient

log = logging.getLogger("thinkwell.models")

_RUNS: Final = ("queued", "in_progress")
_SHORT: Final = 15.0
"""Seconds for a call that says or asks how an answer stands."""


class BackgroundStream(ResponseStream):
    """A response that is kept: its events carry bookmarks."""

    def __init__(self, token: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self._id = ""
        self._number = -1
        self._skip = 0
        if token is not None:
            self._id = str(token["id"])
            self._number, self._skip = int(token["after"]), int(token.get("skip", 0))
            self._take_up(token.get("state") or {})
            self._began = True
        self._state = self._kept_state()

    def _take(self, event: ResponseEvent, events: list[ModelEvent]) -> None:
        first = len(events)
        super()._take(event, events)
        if event.sequence_number < 0:
            return  # a server that does not number its events cannot be asked for the rest
        if not self._id and self._response.id:
            self._id = self._response.id
            self._number = event.sequence_number
            events.insert(first, Bookmark(self._token()))
            first += 1
        made = events[first:]
        if self.failed:  # the answer itself has failed: nothing of it is left to read
            events.insert(len(events) - 1, Bookmark(None))
            return
        skipped, self._skip = self._skip, 0
        marked: list[ModelEvent] = []
        for place, each in enumerate(made[:-1], 1):
            marked.append(Bookmark(self._token(skip=place), each))
        self._number, self._state = event.sequence_number, self._kept_state()
        marked.extend(Bookmark(self._token(), each) for each in made[-1:])
        events[first:] = marked[skipped:]

    def _token(self, *, skip: int = 0) -> dict[str, Any]:
        token: dict[str, Any] = {"id": self._id, "after": self._number}
        if skip:
            token["skip"] = skip
        return {**token, "state": self._state} if self._state else token


async def take_up(
    client: ProviderClient, token: Mapping[str, Any], request: ModelRequest, signal: AbortSignal
) -> AsyncIterator[ModelEvent]:
    """The rest of a kept answer, behind the bookmark."""
    if "id" not in token:  # what was a chain before a deploy
        yield Bookmark(None)
        yield Failure(ModelError("The kept answer is not one of this model.", provider=PROVIDER))
        return
    where = _path(token)
    path = f"{where}?stream=true"
    if int(token["after"]) >= 0:
        path += f"&starting_after={token['after']}"
    heard = False
    stream = client.stream(None, BackgroundStream(token), request, signal, path=path)
    async with aclosing(cast("Any", stream)) as events:
        async for event in events:
            if isinstance(event, Failure):
                async for each in _ending(client, where, event, heard=heard):
                    yield each
                return
            heard = True
            yield event


async def _ending(
    client: ProviderClient, where: str, failure: Failure, *, heard: bool
) -> AsyncIterator[ModelEvent]:
    """The failure; first that nothing is left to take up, where that is so."""
    error = failure.error
    refused = isinstance(error, ModelError) and error.status is not None and not error.retryable
    ended = "" if refused or heard else await _ended_status(client, where, error)
    if ended:
        text = f"OpenAI says that the kept answer has the status {ended!r}: {error}"
        failure = Failure(ModelError(text, provider=PROVIDER))
    if refused or ended:
        yield Bookmark(None)
    yield failure


async def _ended_status(client: ProviderClient, where: str, error: Exception) -> str:
    """How an answer has ended whose stream said nothing; empty if it runs, or nobody knows."""
    # A lost connection says nothing about the answer: the stream is asked for again.
    if not isinstance(error, ModelError) or not error.cut or error.__cause__ is not None:
        return ""
    try:
        code, said = await client.call("GET", where, limit=_SHORT)
    except ModelError:
        return ""
    fields = cast("dict[str, Any]", said) if isinstance(said, dict) else {}
    status = str(fields.get("status") or ("gone" if code in (400, 404, 410) else ""))
    return "" if status in _RUNS else status


async def cancel(client: ProviderClient, token: Mapping[str, Any]) -> None:
    """Tell OpenAI that nobody wants the answer any more. One that has ended needs no cancel."""
    if "id" not in token:
        return
    status, said = await client.call("POST", f"{_path(token)}/cancel", limit=_SHORT)
    if status >= 500 or status in (401, 403, 429):
        raise ModelError(
            f"OpenAI answered {status} to the cancel of {token['id']}: {said}",
            provider=PROVIDER,
            status=status,
        )


def _path(token: Mapping[str, Any]) -> str:
    return f"/{quote(str(token['id']), safe='')}"
