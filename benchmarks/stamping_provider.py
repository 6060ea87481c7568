"""A mock provider cheap enough for 10,000 deltas a second; every delta carries its own time.

OpenAI-compatible chat completions on loopback, in a process of its own, shared by all subjects of
a run. The model name says what to send: `burst-2000` gives 2,000 deltas in one write and
`paced-300-100` one delta each 100 ms, its first at once. A delta's text is ` ~<microseconds>`, the
monotonic clock when it was handed to the socket; the clock is the machine's, so the client can
subtract. Requests are checked only for what the reply needs: `thinkwell.testing.mock_provider` is
the strict one.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from typing import Any, cast

import uvloop

MODEL = re.compile(r"^(?:burst-(\d+)|paced-(\d+)-(\d+))")
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
    b"Cache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n"
)
SHORTEST_WAIT = 0.001
"""Seconds between two deltas of one answer, at least: late ones are not sent together."""


def sse(model: str, choices: list[dict[str, Any]], usage: dict[str, int] | None = None) -> bytes:
    """One event of the stream."""
    chunk = {
        "id": "chatcmpl-mock",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": model,
        "choices": choices,
        **({} if usage is None else {"usage": usage}),
    }
    return b"data: " + json.dumps(chunk, separators=(",", ":")).encode() + b"\n\n"


def http_chunk(data: bytes) -> bytes:
    """`data` in the chunked encoding of HTTP."""
    return b"%x\r\n%b\r\n" % (len(data), data)


class Answer:
    """The pieces of one model's answers, encoded once."""

    def __init__(self, model: str) -> None:
        found = MODEL.match(model)
        if found is None:
            raise ValueError(f"no model is named {model!r}")
        burst, paced, interval = found.groups()
        self.deltas = int(burst or paced)
        self.interval = int(interval or 0) / 1000
        delta = {"content": " ~STAMP"}
        choice = {"index": 0, "delta": delta, "finish_reason": None}
        before, _, after = sse(model, [choice]).partition(b"STAMP")
        self._template = before + b"%d" + after
        first = {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}
        self.first = HEAD + http_chunk(sse(model, [first]))
        last = {"index": 0, "delta": {}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 7, "completion_tokens": self.deltas}
        usage["total_tokens"] = usage["prompt_tokens"] + usage["completion_tokens"]
        end = sse(model, [last]) + sse(model, [], usage) + b"data: [DONE]\n\n"
        self.end = http_chunk(end) + b"0\r\n\r\n"

    def stamped(self, count: int) -> bytes:
        """So many deltas of this moment."""
        event = self._template % (time.monotonic_ns() // 1000)
        return http_chunk(event * count)


class Connection(asyncio.Protocol):
    """One keep-alive connection: reads a request, writes its answer, reads the next."""

    answers: dict[str, Answer] = {}  # noqa: RUF012 - shared by all connections on purpose

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._input = b""
        self._transport = cast("asyncio.Transport", None)
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=64 * 1024 * 1024)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        self._input += data
        head, found, rest = self._input.partition(b"\r\n\r\n")
        length = LENGTH.search(head)
        if not found or length is None or len(rest) < int(length[1]):
            return
        self._input = rest[int(length[1]) :]
        model = str(json.loads(rest[: int(length[1])])["model"])
        answer = self.answers.get(model)
        if answer is None:
            answer = self.answers[model] = Answer(model)
        self._start(answer)

    def _start(self, answer: Answer) -> None:
        self._transport.write(answer.first)
        if answer.interval:
            self._write_next(answer, answer.deltas, self._loop.time())
        else:
            self._transport.write(answer.stamped(answer.deltas))
            self._transport.write(answer.end)

    def _write_next(self, answer: Answer, left: int, due: float) -> None:
        if not left:
            self._transport.write(answer.end)
            return
        self._transport.write(answer.stamped(1))
        due += answer.interval
        wait = max(SHORTEST_WAIT, due - self._loop.time())
        self._timer = self._loop.call_later(wait, self._write_next, answer, left - 1, due)


async def main(port: int) -> None:
    """Answer until the process is ended."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Connection, "127.0.0.1", port, backlog=2048)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1])))
