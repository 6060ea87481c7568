"""A loud OpenAI-compatible provider on loopback, for adapter tests and benchmarks.

Owns a real HTTP server with scripted replies. It complains like a real provider (a request that a
provider would refuse gets 400) and louder: a request that no reply was scripted for gets 500, and
leaving the context then raises. `Reply` is written in burst (a few large socket writes) or paced
(one delta per interval); `RawReply` is bytes as they are, for everything a provider should never
send.

As a process: `python -m thinkwell.testing.mock_provider --port 0 --deltas 200` prints its port on
the first line and answers every request. A model name overrides the options for one request:
`burst-20000` sends 20,000 deltas at once, `paced-200-5` one every 5 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, cast

from thinkwell.core import json

if TYPE_CHECKING:
    from aiohttp import web

WRITE_SIZE = 256 * 1024
_MODEL_NAME = re.compile(r"^(?:burst-(\d+)|paced-(\d+)-(\d+(?:\.\d+)?))$")


@dataclass(frozen=True, kw_only=True, slots=True)
class MockCall:
    """A tool call in a reply, its arguments cut into the given pieces."""

    name: str
    arguments: Sequence[str] = ("{}",)
    id: str = "call-1"


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """A well-formed answer."""

    deltas: Sequence[str] = ()
    """Text deltas."""
    reasoning: Sequence[str] = ()
    """Reasoning deltas, sent before the text."""
    calls: Sequence[MockCall] = ()
    """Tool calls, sent after the text."""
    finish_reason: str | None = None
    """Default: `tool_calls` with calls, else `stop`."""
    usage: Mapping[str, Any] = field(
        default_factory=lambda: {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
    )
    interval: float = 0.0
    """Seconds between two deltas; 0 means burst."""


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


AnyReply: TypeAlias = Reply | RawReply
Responder: TypeAlias = "Callable[[dict[str, Any]], AnyReply]"


@dataclass(frozen=True, kw_only=True, slots=True)
class ReceivedRequest:
    """A request as the server got it."""

    headers: Mapping[str, str]
    body: dict[str, Any]


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

    @property
    def base_url(self) -> str:
        """What an adapter takes as its base URL."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def connections(self) -> int:
        """How many connections requests came over."""
        return len(self._connections)

    async def start(self) -> None:
        """Listen on loopback."""
        from aiohttp import web

        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/v1/chat/completions", self._serve)
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
        self.requests.append(ReceivedRequest(headers=dict(request.headers), body=body))
        self._connections.add(request.transport)
        if complaint := find_fault(body):
            return self._complain(400, complaint)
        reply = self._next_reply(body)
        if reply is None:
            return self._complain(500, f"request {len(self.requests)} was not scripted")
        try:
            if isinstance(reply, RawReply):
                return await self._write_raw(request, reply)
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
        events = encode_reply(reply, model)
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


def find_fault(body: Mapping[str, Any]) -> str | None:
    """What a real provider would refuse about this request, or None."""
    messages = cast("list[dict[str, Any]]", body.get("messages") or [])
    if not messages or not body.get("model") or body.get("stream") is not True:
        return "a request needs a model, messages and stream: true"
    waiting: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                return f"tool result {message['tool_call_id']!r} answers no call"
            waiting.discard(message["tool_call_id"])
            continue
        if waiting:
            break
        waiting = {call["id"] for call in message.get("tool_calls", ())}
    return f"tool calls without a result: {sorted(waiting)}" if waiting else None


def encode_reply(reply: Reply, model: str) -> list[bytes]:
    """The events of a reply, ready for the socket; usage and the end marker come last."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": text} for text in reply.reasoning]
    deltas += [{"content": text} for text in reply.deltas]
    for index, call in enumerate(reply.calls):
        function = {"name": call.name, "arguments": ""}
        first = {"index": index, "id": call.id, "type": "function", "function": function}
        pieces = [{"index": index, "function": {"arguments": text}} for text in call.arguments]
        deltas += [{"tool_calls": [item]} for item in (first, *pieces)]
    reason = reply.finish_reason or ("tool_calls" if reply.calls else "stop")
    events = [_event(model, [{"index": 0, "delta": d, "finish_reason": None}]) for d in deltas]
    events.append(_event(model, [{"index": 0, "delta": {}, "finish_reason": reason}]))
    events.append(_event(model, [], usage=dict(reply.usage)))
    return [*events, b"data: [DONE]\n\n"]


def _event(model: str, choices: list[dict[str, Any]], **extra: Any) -> bytes:
    chunk = {
        "id": "chatcmpl-mock",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": model,
        "system_fingerprint": "fp_mock",
        "choices": choices,
        **extra,
    }
    return b"data: " + json.dump_bytes(chunk) + b"\n\n"


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
        if options.call and body["messages"][-1]["role"] == "user":
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
