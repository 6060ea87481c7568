"""Responses that OpenAI keeps and goes on with by itself (`background`), whoever listens.

A kept response comes into being event by event, without its listeners. It can be read from any
number on (`starting_after`), asked how it stands, and cancelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from thinkwell.core import json
from thinkwell.core.tasks import TaskOwner
from thinkwell.testing.protocols import openai_responses
from thinkwell.testing.protocols.reply import Reply, event

if TYPE_CHECKING:
    from aiohttp import web

_ENDED: Final = ("completed", "incomplete", "failed", "cancelled")


class KeptResponse:
    """One response, as far as it has come."""

    def __init__(self, response_id: str, reply: Reply, model: str) -> None:
        self.id = response_id
        self.model = model
        self.status = "in_progress"
        self._events = openai_responses.encode_reply(reply, model, response_id)
        cut = reply.finish_reason not in (None, "completed")
        self._end = "incomplete" if cut else "completed"
        self._ready = 0
        self._news = asyncio.Condition()
        self._released = asyncio.Event()
        self._hold_after = reply.hold_after
        self._interval = reply.interval
        self._listeners: list[web.Request] = []
        self.sent = 0
        """How many events somebody was sent; set once no more are ready."""

    async def grow(self) -> None:
        """Come into being."""
        for number in range(len(self._events)):
            if number == self._hold_after:
                await self._released.wait()
            if self._interval:
                await asyncio.sleep(self._interval)
            if self.status in _ENDED:
                return
            await self._set(self._ready + 1, self.status)
        await self._set(self._ready, self._end)

    def release(self) -> None:
        """Go on behind `hold_after`."""
        self._released.set()

    async def end(self, status: str) -> None:
        """End it early: `failed` says so in the stream, `cancelled` just stops."""
        if self.status in _ENDED:
            return
        if status == "failed":
            frame = openai_responses.response_frame(self.id, self.model, "failed")
            frame["error"] = {"code": "server_error", "message": "The model had an accident."}
            said = {"type": "response.failed", "sequence_number": self._ready, "response": frame}
            self._events[self._ready :] = [event(said, named=True)]
            self._ready += 1
        await self._set(self._ready, status)
        self.release()

    async def _set(self, ready: int, status: str) -> None:
        async with self._news:
            self._ready, self.status = ready, status
            self._news.notify_all()

    async def _more_than(self, sent: int) -> int:
        """How many events there are, once there are more or no more will come."""
        async with self._news:
            await self._news.wait_for(lambda: sent < self._ready or self.status in _ENDED)
        return self._ready

    async def stream(self, request: web.Request, after: int = -1) -> web.StreamResponse:
        """Send every event behind `after`, as they come."""
        from aiohttp import web

        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        sent = after + 1
        self._listeners.append(request)
        try:
            while (ready := await self._more_than(sent)) > sent:
                await response.write(b"".join(self._events[sent:ready]))
                sent = ready
                if self.is_held:
                    self.sent = sent
            await response.write_eof()
        finally:
            self._listeners.remove(request)
        return response

    @property
    def is_held(self) -> bool:
        """Whether it waits to be released."""
        return self._ready == self._hold_after and not self._released.is_set()

    def cut_listeners(self) -> None:
        """Whoever reads it loses the connection."""
        for request in self._listeners:
            if request.transport is not None:
                request.transport.abort()

    def as_json(self) -> Mapping[str, Any]:
        """How it stands."""
        return {**openai_responses.response_frame(self.id, self.model, self.status)}


class KeptResponses:
    """All kept responses of a mock provider, and what was asked of them."""

    def __init__(self) -> None:
        self.responses: dict[str, KeptResponse] = {}
        self.taken_up: list[tuple[str, int]] = []
        """Ids that were read again, and behind which event; -1 from the beginning."""
        self.asked: list[str] = []
        """Ids of which somebody asked how they stand."""
        self.cancelled: list[str] = []
        """Ids that were cancelled."""
        self.refuse = 0
        """Status with which reading again is refused; 0 means not at all."""
        self.refuse_once = 0
        """The same for the next time only."""
        self._tasks = TaskOwner("mock-provider")

    def add_routes(self, app: web.Application) -> None:
        """Serve them."""
        path = f"{openai_responses.PATH}/{{id}}"
        app.router.add_get(path, self._read)
        app.router.add_post(f"{path}/cancel", self._cancel)
        app.on_shutdown.append(self._stop)

    def begin(self, reply: Reply, model: str) -> KeptResponse:
        """A new one, which comes into being by itself."""
        kept = KeptResponse(f"resp_{len(self.responses) + 1}", reply, model)
        self.responses[kept.id] = kept
        self._tasks.spawn(kept.grow(), name=f"mock {kept.id}")
        return kept

    async def _stop(self, _app: web.Application) -> None:
        await self._tasks.close()

    async def _read(self, request: web.Request) -> web.StreamResponse:
        response_id = request.match_info["id"]
        streams = request.query.get("stream") == "true"
        after = int(request.query.get("starting_after", "-1"))
        if streams:
            self.taken_up.append((response_id, after))
        else:
            self.asked.append(response_id)
        kept = self.responses.get(response_id)
        refusal, self.refuse_once = self.refuse or self.refuse_once, 0
        if streams and refusal:
            return _answer({"error": {"message": "refused", "type": "error"}}, refusal)
        if kept is None:
            return _unknown(response_id)
        return await kept.stream(request, after) if streams else _answer(kept.as_json())

    async def _cancel(self, request: web.Request) -> web.StreamResponse:
        response_id = request.match_info["id"]
        kept = self.responses.get(response_id)
        if kept is None:
            return _unknown(response_id)
        self.cancelled.append(response_id)
        await kept.end("cancelled")
        return _answer(kept.as_json())


def _unknown(response_id: str) -> web.Response:
    text = f"Response with id '{response_id}' not found."
    return _answer({"error": {"message": text, "type": "invalid_request_error"}}, 404)


def _answer(body: Mapping[str, Any], status: int = 200) -> web.Response:
    from aiohttp import web

    return web.Response(status=status, body=json.dump_bytes(body), content_type="application/json")
