"""How long a reader may take for one piece of an answer.

A server that waits for a reader keeps what the reader has not taken: its own buffer, and the turn's
stream behind it. So a reader that takes nothing for a while is disconnected. The turn goes on, and
what it says is stored: whoever comes back gets it from there.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from starlette.requests import ClientDisconnect

from thinkwell.core.tasks import within
from thinkwell.server.asgi import Message, Send

log = logging.getLogger("thinkwell.server")


def patient(send: Send, seconds: float | None) -> Send:
    """`send`, which raises `ClientDisconnect` and ends the connection after so many seconds."""

    async def send_in_time(message: Message) -> None:
        limit = asyncio.timeout(seconds)
        try:
            await within(limit, send(message))
        except TimeoutError:
            if not limit.expired():
                raise
            log.warning("a reader was too slow and is disconnected", extra={"action": "read"})
            await _abort(send)
            raise ClientDisconnect from None

    return send_in_time


async def _abort(send: Send) -> None:
    """Drop the connection with all that waits in it: a close would wait for the reader as well.

    ASGI has no word for this. uvicorn's `send` belongs to what has the transport; where another
    server, or something between it and us, hides that, ending the response is all there is.
    """
    transport: Any = getattr(getattr(send, "__self__", None), "transport", None)
    abort = getattr(transport, "abort", None)
    if callable(abort):
        abort()
        await asyncio.sleep(0)  # the server hears of it before we return
