"""Plain `useChat` over HTTP: ask, stop, join what runs (spec/01 §14).

    POST chat                  {id, messages, trigger, messageId?, ...}: the answer is the stream
    POST chat/stop             stops the turn that runs
    GET  chat/{chatId}/stream  joins the turn that runs, from its start; 204 if none does

The same turns as over the socket: the same acceptance, the same queue, the same journal. A client
that leaves stops nothing, and may send the same question again: it gets the same turn. The agent is
the chat, so the chat's id says nothing new.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, cast

from thinkwell.core.ids import new_id
from thinkwell.features.http_chat.sse import STREAM_HEADERS, STREAM_TYPE
from thinkwell.features.http_chat.streams import (
    caught_up,
    joined_stream,
    stream_again,
    turn_stream,
    whole_stream,
)
from thinkwell.hooks.feature import Feature
from thinkwell.hooks.routes import Route, RouteRequest
from thinkwell.wire.frames import ChatRequest
from thinkwell.wire.http import HttpRequest, HttpResponse
from thinkwell.wire.http_body import Refusal, read_object

_OWN_KEYS = frozenset({"id", "messages", "trigger", "messageId", "clientTools"})


class HttpChat(Feature):
    """Chat over plain HTTP, for `useChat` and whatever else reads server-sent events."""

    name = "http_chat"
    namespace = False

    def routes(self) -> Sequence[Route]:
        """Refusals are texts, which chat clients show. The kit asks `authorize` itself."""
        return (
            Route("POST", "chat", self.post, asks=False, errors="text"),
            Route("POST", "chat/stop", self.stop, asks=False, errors="text"),
            Route("GET", "chat/{chat_id:path}/stream", self.join, errors="text"),
        )

    async def post(self, asked: RouteRequest) -> HttpResponse:
        """Accept what a client asks for and stream the answer."""
        chat = await _read(asked.request)
        sent = await self.kit.send(chat, asked)
        copy = chat.copied_answer()
        if sent is None:  # a copy in which nothing is new: questions are accepted or refused
            stream = caught_up(self.kit, chat.messages[-1])
        elif copy is not None:
            stream = joined_stream(self.kit, sent.request_id, copy["id"], copy)
        elif sent.accepted:
            stream = turn_stream(self.kit, sent.request_id)
        else:
            stream = stream_again(self.kit, sent.request_id)
        return _response(stream)

    async def stop(self, asked: RouteRequest) -> HttpResponse:
        """Stop the turn that runs, or else the one that would run next."""
        line = self.kit.line()
        await self.kit.cancel(line[0].request_id if line else "", asked)
        return HttpResponse(status=204)

    async def join(self, asked: RouteRequest) -> HttpResponse:
        """The stream of the turn that runs, from its start (14.5)."""
        line = self.kit.line()
        if not line:
            return HttpResponse(status=204)
        if asked.request.method == "HEAD":  # nobody will read it
            return HttpResponse(content_type=STREAM_TYPE)
        return _response(whole_stream(self.kit, line[0]))


def _response(stream: AsyncIterator[bytes]) -> HttpResponse:
    """An answer that is a stream of events (14.2)."""
    return HttpResponse(content_type=STREAM_TYPE, headers=STREAM_HEADERS, stream=stream)


async def _read(request: HttpRequest) -> ChatRequest:
    body = await read_object(request)
    messages, tools = body.get("messages"), body.get("clientTools")
    if not isinstance(messages, list):
        raise Refusal(400, "The body needs a list `messages`.")
    if not messages:
        raise Refusal(400, "`messages` is empty: there is nothing to answer.")
    regenerate = body.get("trigger") == "regenerate-message"
    return ChatRequest(
        id=new_id(),
        messages=cast("list[Any]", messages),
        trigger="regenerate-message" if regenerate else "submit-message",
        client_tools=cast("list[Any]", tools) if isinstance(tools, list) else None,
        body={key: value for key, value in body.items() if key not in _OWN_KEYS},
    )
