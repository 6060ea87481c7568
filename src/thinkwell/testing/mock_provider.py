"""A loud provider on loopback, for adapter tests and benchmarks.

Owns a real HTTP server with scripted replies. It speaks OpenAI's chat completions and responses,
and Anthropic's messages. It complains like a real provider (a request that a provider would refuse
gets 400) and louder: a request that no reply was scripted for gets 500, and leaving the context
then raises. `Reply` is written in burst (a few large socket writes) or paced (one delta per
interval); `RawReply` is bytes as they are, for everything a provider should never send.

As a process: `python -m thinkwell.testing.mock_provider --port 0 --deltas 200` prints its port on
the first line and answers every request. A model name overrides the options for one request:
`burst-20000` sends 20,000 deltas at once, `paced-200-5` one every 5 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import typing
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeAlias, cast

from thinkwell.core import json
from thinkwell.testing.protocols import anthropic_messages, chat_completions, openai_responses
from thinkwell.testing.protocols.kept_responses import KeptResponses
from thinkwell.testing.protocols.reply import MockCall, Reply

if TYPE_CHECKING:
    from aiohttp import web

WRITE_SIZE = 256 * 1024
_MODEL_NAME = re.compile(r"^(?:burst-(\d+)|paced-(\d+)-(\d+(?:\.\d+)?))$")


@dataclass(frozen=True, kw_only=True, slots=True)
class RawReply:
    """Bytes as they are, each written on its own."""

    chunks: Sequence[bytes] = ()
    status: int = 200
    content_type: str = "text/event-stream"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    hold: Literal["", "headers", "end"] = ""
    """Wait for the client to go away, before the headers or instead of the end."""
    cut: bool = False
    """Cut the connection instead of ending the response."""


class Protocol(typing.Protocol):
    """How a provider reads requests and writes answers."""

    def find_fault(self, body: Mapping[str, Any], /) -> str | None:
        """What it would refuse about a request."""
        ...

    def encode_reply(self, reply: Reply, model: str, /) -> list[bytes]:
        """The events of an answer."""
        ...


PROTOCOLS: Final[Mapping[str, Protocol]] = {
    chat_completions.PATH: chat_completions,
    openai_responses.PATH: openai_responses,
    anthropic_messages.PATH: anthropic_messages,
}
"""By path."""

AnyReply: TypeAlias = Reply | RawReply
Responder: TypeAlias = "Callable[[dict[str, Any]], AnyReply]"


@dataclass(frozen=True, kw_only=True, slots=True)
class ReceivedRequest:
    """A request as the server got it."""

    headers: Mapping[str, str]
    body: dict[str, Any]
    path: str = chat_completions.PATH


class MockProvider:
    """The server. `async with MockProvider([...]) as provider:` then use `provider.base_url`."""

    def __init__(self, script: Sequence[AnyReply] | Responder, *, port: int = 0) -> None:
        """A list is used up reply by reply; a function is asked for every request."""
        self._replies = None if callable(script) else list(script)
        self._responder = script if callable(script) else None
        self._runner: web.AppRunner | None = None
        self._connections: set[object] = set()
        self.port = port
        self.requests: list[ReceivedRequest] = []
        self.problems: list[str] = []
        self.arrived = asyncio.Semaphore(0)
        """Released once per request that reached its reply."""
        self.left = asyncio.Event()
        """Set when a client went away before its reply ended."""
        self.kept = KeptResponses()
        """Answers of requests with `background`, and what was asked of them later."""

    @property
    def base_url(self) -> str:
        """What an adapter for one of OpenAI's protocols takes as its base URL."""
        return f"{self.origin}/v1"

    @property
    def origin(self) -> str:
        """What an adapter for Anthropic's protocol takes as its base URL."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def connections(self) -> int:
        """How many connections requests came over."""
        return len(self._connections)

    async def start(self) -> None:
        """Listen on loopback."""
        from aiohttp import web

        app = web.Application(client_max_size=64 * 1024 * 1024)
        for path in PROTOCOLS:
            app.router.add_post(path, self._serve)
        self.kept.add_routes(app)
        self._runner = web.AppRunner(
            app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Stop listening and drop what is open."""
        if self._runner is not None:
            await self._runner.cleanup()

    def assert_complete(self) -> None:
        """Complain about bad requests and replies that nobody asked for."""
        problems = list(self.problems)
        if self._replies:
            problems.append(f"{len(self._replies)} scripted replies were never asked for")
        if problems:
            raise AssertionError("Mock provider: " + "; ".join(problems))

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        await self.stop()
        if error is None:
            self.assert_complete()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        from aiohttp import web

        body = cast("dict[str, Any]", json.loads(await request.read()))
        received = ReceivedRequest(headers=dict(request.headers), body=body, path=request.path)
        self.requests.append(received)
        self._connections.add(request.transport)
        if complaint := PROTOCOLS[request.path].find_fault(body):
            return self._complain(400, complaint)
        reply = self._next_reply(body)
        if reply is None:
            return self._complain(500, f"request {len(self.requests)} was not scripted")
        try:
            if isinstance(reply, RawReply):
                return await self._write_raw(request, reply)
            if body.get("background") and request.path == openai_responses.PATH:
                kept = self.kept.begin(reply, str(body["model"]))
                self.arrived.release()
                return await kept.stream(request)
            return await self._write(request, reply, str(body["model"]))
        except asyncio.CancelledError:
            self.left.set()
            raise
        except ConnectionError:
            self.left.set()
            return web.Response(status=499)  # nobody is there to read it

    def _next_reply(self, body: dict[str, Any]) -> AnyReply | None:
        if self._responder is not None:
            return self._responder(body)
        return self._replies.pop(0) if self._replies else None

    def _complain(self, status: int, text: str) -> web.Response:
        from aiohttp import web

        self.problems.append(text)
        error = {"error": {"message": text, "type": "mock_provider_error"}}
        return web.Response(
            status=status, body=json.dump_bytes(error), content_type="application/json"
        )

    async def _write(self, request: web.Request, reply: Reply, model: str) -> web.StreamResponse:
        response = await _prepared(request, 200, {"Content-Type": "text/event-stream"})
        self.arrived.release()
        events = PROTOCOLS[request.path].encode_reply(reply, model)
        if reply.interval:
            for event in events:
                await response.write(event)
                await asyncio.sleep(reply.interval)
        else:
            burst = b"".join(events)
            for start in range(0, len(burst), WRITE_SIZE):
                await response.write(burst[start : start + WRITE_SIZE])
        await response.write_eof()
        return response

    async def _write_raw(self, request: web.Request, reply: RawReply) -> web.StreamResponse:
        if reply.hold == "headers":
            self.arrived.release()
            await asyncio.Event().wait()
        headers = {"Content-Type": reply.content_type, **reply.headers}
        response = await _prepared(request, reply.status, headers)
        for chunk in reply.chunks:
            await response.write(chunk)
            await asyncio.sleep(0)
        self.arrived.release()
        if reply.hold == "end":
            await asyncio.Event().wait()
        if reply.cut and request.transport is not None:
            request.transport.abort()
        else:
            await response.write_eof()
        return response


async def _prepared(
    request: web.Request, status: int, headers: Mapping[str, str]
) -> web.StreamResponse:
    from aiohttp import web

    response = web.StreamResponse(status=status, headers=headers)
    response.enable_chunked_encoding()
    await response.prepare(request)
    return response


def responder(options: argparse.Namespace) -> Responder:
    """Answers every request as the command line, or the request's model name, says."""

    def respond(body: dict[str, Any]) -> Reply:
        count, interval = options.deltas, options.interval_ms
        if match := _MODEL_NAME.match(str(body["model"])):
            burst, paced, pace = match.groups()
            count, interval = int(burst or paced), float(pace or 0)
        asked = cast("list[dict[str, Any]]", body.get("messages") or body.get("input") or [{}])
        if options.call and asked[-1].get("role") == "user":
            name, _, arguments = options.call.partition(":")
            return Reply(calls=[MockCall(name=name, arguments=[arguments or "{}"])])
        return Reply(deltas=[options.text] * count, interval=interval / 1000)

    return respond


async def _run(options: argparse.Namespace) -> None:
    provider = MockProvider(responder(options), port=options.port)
    await provider.start()
    sys.stdout.write(f"{provider.port}\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


def main() -> None:
    """Serve until the process is ended."""
    parser = argparse.ArgumentParser(prog="python -m thinkwell.testing.mock_provider")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--deltas", type=int, default=200)
    parser.add_argument("--interval-ms", type=float, default=0.0)
    parser.add_argument("--text", default=" word")
    parser.add_argument("--call", default="", metavar="NAME:JSON", help="call this tool first")
    with suppress(KeyboardInterrupt):
        asyncio.run(_run(parser.parse_args()))


if __name__ == "__main__":
    main()
