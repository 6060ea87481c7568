"""Frames waiting for one socket.

An outbox is the `Sink` the host gets: it never blocks and never raises. `write` is the body
of the connection's writer task. What can be written without waiting goes out at once where the
server offers that: to wake the task would cost more than a delta. A client that cannot keep up is
cut off instead of filling the memory; its agent goes on and the client resumes from the journal
when it reconnects.

What is sent together may leave in one write; what was sent apart waits until the client has dealt
with all before it. Some clients (Node's) hand on all frames of one read before any code that one of
them woke up has run; a transcript there is overwritten by the chunks in front of it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, takewhile
from typing import TypeAlias

from thinkwell.server.asgi import Message, Send
from thinkwell.wire.encode import Frame, LongText

EXTENSION = "thinkwell.texts"
"""In the scope's extensions: the server takes several texts in one message. Its `write` takes them
without waiting, and says whether it could.
"""
ABORT = "thinkwell.abort"
"""In the scope's extensions: a message of this type drops the connection, whatever waits in it."""
PAUSE = "thinkwell.pause"
"""In the scope's extensions: a message of this type is sent once the client has read all before."""
PAUSE_ELSEWHERE = 0.05
"""Seconds between what must stay apart, where the server cannot tell what a client has read."""
MOST_JOINED = 64
SLICE = 128 * 1024
"""Bytes of a long text that are written at once."""
MAX_FRAMES = 10_000
MAX_CHARACTERS = 8 * 1024 * 1024


WriteNow: TypeAlias = Callable[[Sequence[str]], bool]
"""Writes texts if nobody has to wait for that, and says whether it did. Never raises."""


class Outbox:
    """A bounded queue of frame texts with one reader."""

    def __init__(self) -> None:
        self._frames: deque[Frame] = deque()
        self._sizes: deque[int] = deque()
        """How many of the frames belong together; 0 is a pause."""
        self._characters = 0
        self._most_frames = self._most_characters = 0
        self._filled = asyncio.Event()
        self._closed = False
        self._farewell: tuple[int, str] | None = None
        self._write_now: WriteNow | None = None
        """There while the writer has nothing to do: then nothing stands before what comes."""
        self.overflowed = asyncio.Event()
        """Set once the client is too far behind; nothing is queued from then on."""

    def send(self, frames: Sequence[Frame], *, apart: bool = False) -> None:
        """Queue frames behind the ones that wait already."""
        if self._closed or self._farewell is not None or not frames:
            return
        if self._write_now is not None and not apart and self._has_written(frames):
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
        # A client that has nothing else to read is not slow, however large this is.
        if len(self._frames) > count and self._is_too_much():
            self.discard()
            self.overflowed.set()
            return
        self._filled.set()

    def _has_written(self, frames: Sequence[Frame]) -> bool:
        if self._frames or self._write_now is None or len(frames) > MOST_JOINED:
            return False
        texts = [frame for frame in frames if isinstance(frame, str)]
        return len(texts) == len(frames) and self._write_now(texts)

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

    async def write(
        self,
        send: Send,
        *,
        joined: bool = False,
        pauses: bool = False,
        write_now: WriteNow | None = None,
    ) -> None:
        """Send frames in order until the outbox is closed or the socket fails.

        `joined`: the server takes several texts at once. `pauses`: it can tell what was read.
        `write_now`: how it takes texts without waiting.
        """
        while not self._closed:
            while self._sizes:
                if not self._sizes[0]:
                    self._sizes.popleft()
                    await self._pause(send, pauses=pauses)
                elif isinstance(self._frames[0], LongText):
                    await self._write_long(send, joined=joined)
                else:
                    await send(self._next(joined=joined))
            if self._farewell is not None:
                code, reason = self._farewell
                await send({"type": "websocket.close", "code": code, "reason": reason})
                return
            self._filled.clear()
            self._write_now = write_now
            try:
                await self._filled.wait()
            finally:
                self._write_now = None

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
        short = takewhile(lambda frame: isinstance(frame, str), islice(self._frames, count))
        batch = self._take(len(list(short)))
        if len(batch) == 1:
            return {"type": "websocket.send", "text": batch[0]}
        return {"type": "websocket.send", "texts": batch}

    def _take(self, count: int) -> list[Frame]:
        batch = [self._frames.popleft() for _ in range(count)]
        self._characters -= sum(map(len, batch))
        self._sizes[0] -= count
        if not self._sizes[0]:
            self._sizes.popleft()
        return batch

    async def _write_long(self, send: Send, *, joined: bool) -> None:
        """Send a long text in slices, between which others have their turn."""
        (frame,) = self._take(1)
        if isinstance(frame, str) or not joined:
            await send({"type": "websocket.send", "text": str(frame)})
            return
        for fragment in _fragments(frame):
            await send({"type": "websocket.send", "fragment": fragment})
            # A transcript of megabytes must not hold up the chunks of everybody else.
            await asyncio.sleep(0)

    async def _pause(self, send: Send, *, pauses: bool) -> None:
        if pauses:
            await send({"type": PAUSE})
        else:
            await asyncio.sleep(PAUSE_ELSEWHERE)


def _fragments(frame: LongText) -> Iterator[tuple[memoryview, bool, bool]]:
    """The slices of a long text, each with whether it is the first and the last."""
    slices = [
        memoryview(piece)[start : start + SLICE]
        for piece in frame.pieces
        for start in range(0, len(piece), SLICE)
    ]
    for place, each in enumerate(slices):
        yield each, place == 0, place == len(slices) - 1
