"""Turns as streams of events: one that runs, one that ended, one that goes on with an answer.

A turn that goes on (spec/01 §14.7) begins its stream by bringing the client's copy of the answer up
to date, because over HTTP nothing else would.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from thinkwell.core import json
from thinkwell.core.errors import TurnNotFoundError
from thinkwell.features.http_chat import tail
from thinkwell.features.http_chat.rebuild import (
    calls_of,
    chunks_of,
    outcomes_unknown_to,
    says_again,
    steps_after,
)
from thinkwell.features.http_chat.sse import DONE, STILL_HERE, events, told_events
from thinkwell.features.http_chat.tail import batches, last_chunks
from thinkwell.hooks.feature import Kit
from thinkwell.journal.turns import TurnRecord
from thinkwell.messages.chunks import Chunk
from thinkwell.messages.message import UIMessage, count_steps


async def turn_stream(kit: Kit, request_id: str) -> AsyncGenerator[bytes]:
    """A whole turn."""
    async with aclosing(kit.tail(request_id, silence=tail.KEEP_ALIVE)) as followed:
        async for batch in batches(followed):
            if isinstance(batch, TurnRecord):
                yield events(last_chunks(batch)) + DONE
            else:
                yield told_events(batch) if batch else STILL_HERE


def whole_stream(kit: Kit, record: TurnRecord) -> AsyncGenerator[bytes]:
    """An answer from its start, for whoever has nothing of it."""
    if record.continuation:
        return joined_stream(kit, record.request_id, record.message_id or "")
    return turn_stream(kit, record.request_id)


async def stream_again(kit: Kit, request_id: str) -> AsyncGenerator[bytes]:
    """A turn that was asked for before, from its start: as it runs, or as it was stored.

    For a client that does not know what became of its request and sends it once more.
    """
    record = await kit.find(request_id)
    if record is None:
        raise TurnNotFoundError(request_id)
    writing = next((other for other in kit.line() if _writes(other, record)), None)
    if writing is not None:
        async for body in whole_stream(kit, writing):
            yield body
        return
    ended = await kit.find(request_id) or record  # the end may have come after the first look
    stored = await kit.session.get_message(ended.message_id or "")
    chunks = [] if stored is None else _told_again(stored)
    yield events([*chunks, *last_chunks(ended)]) + DONE


def _writes(record: TurnRecord, other: TurnRecord) -> bool:
    """Whether this turn is that one, or goes on with its answer."""
    return record.request_id == other.request_id or (
        record.continuation and record.message_id == other.message_id
    )


async def joined_stream(
    kit: Kit, request_id: str, message_id: str, copy: UIMessage | None = None
) -> AsyncGenerator[bytes]:
    """A continuation, for a client with this copy of the answer, or with none."""
    yield events([{"type": "start", "messageId": message_id}])
    begun = False
    known: dict[str, bool] = {}
    async with aclosing(kit.tail(request_id, silence=tail.KEEP_ALIVE)) as followed:
        async for batch in batches(followed):
            if isinstance(batch, TurnRecord):
                if not begun:  # over before anything could be told: the stored answer has it all
                    yield events(_news_for(copy, await kit.session.get_message(message_id)))
                    yield events([{"type": "finish"}] if batch.status == "completed" else [])
                yield events(last_chunks(batch)) + DONE
                return
            if not batch:
                yield STILL_HERE
                continue
            if not begun:
                stored = await kit.session.get_message(message_id)
                if await _has_ended(kit, request_id):
                    continue  # the answer may hold what this stream would tell: see above
                begun = True
                known = {} if stored is None else calls_of(stored)
                yield events(_news_for(copy, stored))
            chunks: list[Chunk] = [json.loads(body) for body in batch]
            yield events(chunk for chunk in chunks if not says_again(chunk, known))


async def _has_ended(kit: Kit, request_id: str) -> bool:
    """Whether the turn's end may be in a message that was read before this is asked."""
    record = await kit.find(request_id)
    return record is None or record.settled


async def caught_up(kit: Kit, copy: UIMessage) -> AsyncGenerator[bytes]:
    """Nothing goes on: what the client has not seen, or nothing at all, in a legal stream."""
    stored = await kit.session.get_message(copy["id"])
    start: Chunk = {"type": "start", "messageId": copy["id"]}
    yield events([start, *_news_for(copy, stored), {"type": "finish"}]) + DONE


def _told_again(stored: UIMessage) -> list[Chunk]:
    """A stored answer as the stream that would write it."""
    start: Chunk = {"type": "start", "messageId": stored["id"]}
    return [start, *chunks_of(stored["parts"]), {"type": "finish"}]


def _news_for(copy: UIMessage | None, stored: UIMessage | None) -> list[Chunk]:
    if stored is None:
        return []
    if copy is None:
        return chunks_of(stored["parts"])
    seen = count_steps(copy["parts"])
    return outcomes_unknown_to(copy, stored) + chunks_of(steps_after(stored["parts"], seen))
