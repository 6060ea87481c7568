"""An HTTP answer that is a stream: its pieces leave as they come, and it ends when the client goes.

Starlette's own response does the same with a task group, which costs more than a short answer: here
one task listens for the client while the pieces are sent in the task that is there anyway. However
it ends, the stream is closed at once, not when somebody tidies up.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import cast

from starlette.responses import Response
from starlette.types import Receive, Scope, Send


class StreamedAnswer(Response):
    """Sends what an iterator gives."""

    def __init__(
        self, stream: AsyncIterator[bytes], status: int, headers: Mapping[str, str]
    ) -> None:
        self.status_code = status
        self.background = None
        self.init_headers(headers)
        self._stream = cast("AsyncGenerator[bytes]", stream)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Send it, until it ends or nobody is there to read it."""
        task = asyncio.current_task()
        gone = False

        def leave(listening: asyncio.Task[None]) -> None:
            nonlocal gone
            gone = not listening.cancelled() and listening.exception() is None
            if gone and task is not None:
                task.cancel()

        listening = asyncio.get_running_loop().create_task(_until_gone(receive))
        listening.add_done_callback(leave)
        try:
            await self._send(send)
        except asyncio.CancelledError:
            # Our own cancel is taken back; whoever else cancelled this task is heard.
            if not gone or task is None or task.uncancel():
                raise
        finally:
            listening.remove_done_callback(leave)
            listening.cancel()

    async def _send(self, send: Send) -> None:
        start = {"type": "http.response.start", "status": self.status_code}
        await send({**start, "headers": self.raw_headers})
        async with aclosing(self._stream) as pieces:
            async for piece in pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
