"""Going on with an answer over HTTP: tool outputs and approvals (spec/01 §14.7).

The client sends its whole list; the last message is its copy of the answer, with outputs and
decisions in it. What is new there is applied like an answer over the socket, and the turn that
goes on is the response. Its stream begins by bringing the client's copy up to date, because over
HTTP nothing else would.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from thinkwell.core import json
from thinkwell.features.http_chat.rebuild import (
    calls_of,
    chunks_of,
    outcomes_unknown_to,
    says_again,
    steps_after,
)
from thinkwell.features.http_chat.sse import DONE, STILL_HERE, events
from thinkwell.features.http_chat.tail import end_of, follow, last_chunks
from thinkwell.messages.chunks import Chunk
from thinkwell.messages.message import UIMessage, count_steps
from thinkwell.turn.ask import copied_answer
from thinkwell.turn.ask.chat_request import Asker
from thinkwell.turn.handle import TurnHandle
from thinkwell.turn.turns import Turns
from thinkwell.wire.frames import ChatRequest


async def go_on(
    turns: Turns, copy: UIMessage, asked: ChatRequest, asker: Asker
) -> AsyncGenerator[bytes]:
    """Go on with the client's copy of an answer; the stream of what comes of it."""
    handle, stored = await copied_answer.go_on(turns, copy, asked, asker)
    if handle is not None:
        return joined_stream(turns, handle, copy)
    return _caught_up(copy, stored or copy)


async def joined_stream(
    turns: Turns, handle: TurnHandle, copy: UIMessage | None = None
) -> AsyncGenerator[bytes]:
    """A continuation as events, for a client with this copy of the answer, or with none."""
    message_id = handle.record.message_id or ""
    yield events([{"type": "start", "messageId": message_id}])
    begun = False
    known: dict[str, bool] = {}
    async with aclosing(follow(handle)) as batches:
        async for bodies in batches:
            if not bodies:
                yield STILL_HERE
                continue
            if not begun:
                stored = await turns.parts.session.get_message(message_id)
                if _is_stored(turns, handle):
                    continue  # the answer may hold what this stream would tell: see below
                begun = True
                known = {} if stored is None else calls_of(stored)
                yield events(_news_for(copy, stored))
            chunks: list[Chunk] = [json.loads(body) for body in bodies]
            yield events(chunk for chunk in chunks if not says_again(chunk, known))
    end = end_of(handle)
    if not begun:  # it was over before anything could be told: the stored answer has it all
        yield events(_news_for(copy, await turns.parts.session.get_message(message_id)))
        yield events([{"type": "finish"}] if end.status == "completed" else [])
    yield events(last_chunks(end)) + DONE


async def _caught_up(copy: UIMessage, stored: UIMessage) -> AsyncGenerator[bytes]:
    """Nothing goes on: what the client has not seen, or nothing at all, in a legal stream."""
    start: Chunk = {"type": "start", "messageId": stored["id"]}
    yield events([start, *_news_for(copy, stored), {"type": "finish"}]) + DONE


def told_again(stored: UIMessage) -> list[Chunk]:
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


def _is_stored(turns: Turns, handle: TurnHandle) -> bool:
    """Whether the end of the turn may be in what was just read from the store."""
    running = turns.running
    if running is None or running.record.request_id != handle.record.request_id:
        return True
    return running.stored
