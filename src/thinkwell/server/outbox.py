"""Frames waiting for one socket.

An outbox is the `FrameSink` the host gets: it never blocks and never raises. `write` is the body
of the connection's writer task. A client that cannot keep up is cut off instead of filling the
memory; its agent goes on and the client resumes from the journal when it reconnects.

What is sent together may leave in one write; what was sent apart waits until the client has dealt
with all before it. Some clients (Node's) hand on all frames of one read before any code that one of
them woke up has run; a transcript there is overwritten by the chunks in front of it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from thinkwell.server.asgi import Message, Send

EXTENSION = "thinkwell.texts"
"""In the scope's extensions: the server takes several texts in one message."""
ABORT = "thinkwell.abort"
"""In the scope's extensions: a message of this type drops the connection, whatever waits in it."""
PAUSE = "thinkwell.pause"
"""In the scope's extensions: a message of this type is sent once the client has read all before."""
PAUSE_ELSEWHERE = 0.05
"""Seconds between what must stay apart, where the server cannot tell what a client has read."""
MOST_JOINED = 64
MAX_FRAMES = 10_000
MAX_CHARACTERS = 8 * 1024 * 1024


class Outbox:
    """A bounded queue of frame texts with one reader."""

    def __init__(self) -> None:
        self._frames: deque[str] = deque()
        self._sizes: deque[int] = deque()
        """How many of the frames belong together; 0 is a pause."""
        self._characters = 0
        self._most_frames = self._most_characters = 0
        self._filled = asyncio.Event()
        self._closed = False
        self._farewell: tuple[int, str] | None = None
        self.overflowed = asyncio.Event()
        """Set once the client is too far behind; nothing is queued from then on."""

    def send(self, frames: Sequence[str], *, apart: bool = False) -> None:
        """Queue frames behind the ones that wait already."""
        if self._closed or self._farewell is not None or not frames:
            return
        count, size = len(frames), sum(map(len, frames))
        if not self._frames:
            self._most_frames, self._most_characters = count, size
        else:
            self._most_frames = max(self._most_frames, count)
            self._most_characters = max(self._most_characters, size)
        self._frames.extend(frames)
        self._sizes.extend((0, count) if apart else (count,))
        self._characters += size
        if len(self._frames) > count and self._is_too_much():
            self.discard()
            self.overflowed.set()
            return
        self._filled.set()

    def close(self, code: int, reason: str) -> None:
        """Take nothing more, and close the socket once what waits has gone out."""
        if self._farewell is None:
            self._farewell = (code, reason)
            self._filled.set()

    def discard(self) -> None:
        """Drop what waits and take nothing more. Idempotent."""
        self._closed = True
        self._frames.clear()
        self._sizes.clear()
        self._filled.set()

    async def write(self, send: Send, *, joined: bool = False, pauses: bool = False) -> None:
        """Send frames in order until the outbox is closed or the socket fails.

        `joined`: the server takes several texts at once. `pauses`: it can tell what was read.
        """
        while not self._closed:
            while self._sizes:
                if self._sizes[0]:
                    await send(self._next(joined=joined))
                    continue
                self._sizes.popleft()
                if pauses:
                    await send({"type": PAUSE})
                else:
                    await asyncio.sleep(PAUSE_ELSEWHERE)
            if self._farewell is not None:
                code, reason = self._farewell
                await send({"type": "websocket.close", "code": code, "reason": reason})
                return
            self._filled.clear()
            await self._filled.wait()

    def _is_too_much(self) -> bool:
        """Whether the client is too far behind.

        The largest batch that came since the queue was empty does not count. A long transcript or
        replay may be larger than the limit; it is no sign of a slow client, nor is what stands
        before or behind it, and whoever reconnects must be able to catch up.
        """
        frames = len(self._frames) - self._most_frames
        return frames > MAX_FRAMES or self._characters - self._most_characters > MAX_CHARACTERS

    def _next(self, *, joined: bool) -> Message:
        count = min(self._sizes[0], MOST_JOINED) if joined else 1
        batch = [self._frames.popleft() for _ in range(count)]
        self._characters -= sum(map(len, batch))
        self._sizes[0] -= count
        if not self._sizes[0]:
            self._sizes.popleft()
        if count == 1:
            return {"type": "websocket.send", "text": batch[0]}
        return {"type": "websocket.send", "texts": batch}
