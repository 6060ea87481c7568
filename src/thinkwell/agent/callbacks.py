"""`chat` with a callback: the chunks of one turn, told to an object (spec/02 §2.18-2.22).

The callback is called in the task of whoever called `chat`, behind the turn and never in its way
(DESIGN §8.4). What it raises stops the turn and reaches the caller.
Invariant: after `on_start` exactly one of `on_done`, `on_error`, `on_aborted` and `on_interrupted`
is called, where the callback has it. One that keeps up hears its end together with the clients,
before the hooks of the end.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing, suppress
from typing import Any, Protocol

import msgspec

from thinkwell.core.errors import StoreError
from thinkwell.core.user_code import call_user
from thinkwell.journal.tail import Chunks, Ended
from thinkwell.journal.turns import EndStatus
from thinkwell.turn.handle import TurnHandle
from thinkwell.turn.turns import Turns

LEFT = "the callback failed"


class ChatCallback(Protocol):
    """What `chat` calls; each method may be async. `on_aborted` and `on_interrupted` are optional.

    `on_aborted(reason)` is told of a stop, `on_interrupted()` that the app stops and the turn goes
    on at its next start.
    """

    def on_start(self, info: dict[str, str], /) -> Any:
        """`{"request_id": ...}`, before the turn is in line."""
        ...

    def on_event(self, chunk: str, /) -> Any:
        """One chunk as JSON, once it is durable."""
        ...

    def on_done(self) -> Any:
        """The turn completed, and its answer is stored."""
        ...

    def on_error(self, text: str, /) -> Any:
        """The turn failed."""
        ...


class ChatOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What `chat` with a callback returns."""

    status: EndStatus
    """`completed`, `error`, `aborted` or `skipped`."""
    request_id: str
    """The turn's id."""


async def call(function: Callable[..., Any] | None, *arguments: Any) -> None:
    """Call a function that may be async, or missing."""
    if function is not None:
        await call_user("the callback of chat()", function, *arguments)


async def feed_callback(turns: Turns, handle: TurnHandle, callback: ChatCallback) -> ChatOutcome:
    """Tell the turn to the callback to its end."""
    request_id = handle.record.request_id
    try:
        async with aclosing(handle.tail()) as events:
            async for event in events:
                if isinstance(event, Chunks):
                    for body in event.bodies:
                        await call(callback.on_event, body)
                elif isinstance(event, Ended):
                    await _feed_end(event, callback)
    except BaseException:
        with suppress(StoreError):  # a store that is gone has nothing to stop
            await turns.cancel(request_id, LEFT)
        raise
    result = await turns.wait(handle)
    return ChatOutcome(status=result.status, request_id=request_id)


async def _feed_end(end: Ended, callback: ChatCallback) -> None:
    record = end.record
    if end.failure is not None:
        await call(getattr(callback, "on_interrupted", None))
    elif record.status == "completed":
        await call(callback.on_done)
    elif record.status == "error":
        await call(callback.on_error, record.error or "")
    else:
        reason = record.error or record.stop_reason or record.status
        await call(getattr(callback, "on_aborted", None), reason)
