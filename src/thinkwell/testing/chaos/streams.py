"""Whether the journal of a turn is one legal stream, and the stored reply what it makes. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from thinkwell.core import json
from thinkwell.messages.chunks import check_chunk
from thinkwell.messages.fold import Fold
from thinkwell.messages.message import UIMessage


def stream_problem(bodies: Sequence[str], *, completed: bool) -> str | None:
    """What is wrong with a stream that several processes may have written; None if nothing is."""
    chunks: list[dict[str, Any]] = [json.loads(body) for body in bodies]
    return next(_problems(chunks, completed=completed), None)


def _problems(chunks: list[dict[str, Any]], *, completed: bool) -> Iterator[str]:
    kinds = [chunk["type"] for chunk in chunks]
    for chunk in chunks:
        if problem := check_chunk(chunk):
            yield f"its stream holds a chunk that is none: {problem}"
    for kind in ("start", "finish"):
        if kinds.count(kind) > 1:
            yield f"its stream has {kinds.count(kind)} chunks {kind!r}"
    if completed and chunks and kinds[-1] != "finish":
        yield f"its stream ends with {kinds[-1]!r}"
    yield from _nesting(chunks)


def _nesting(chunks: list[dict[str, Any]]) -> Iterator[str]:
    """Steps do not overlap; a part is used between its start and its end, and begun once."""
    in_step, begun, open_parts = False, set[str](), set[str]()
    for chunk in chunks:
        kind, part = chunk["type"], chunk.get("id", "")
        if kind in ("start-step", "finish-step"):
            if in_step != (kind == "finish-step") or open_parts:
                yield f"its stream has a {kind!r} in the wrong place"
            in_step = not in_step
        elif part and kind.endswith("-start"):
            if part in begun:
                yield f"its stream begins the part {part} twice"
            begun.add(part)
            open_parts.add(part)
        elif part and kind.endswith(("-delta", "-end")):
            if part not in open_parts:
                yield f"its stream writes into the part {part}, which is not open"
            open_parts -= {part} if kind.endswith("-end") else set()


def folded(message_id: str, bodies: Sequence[str]) -> UIMessage:
    """The message a stream makes."""
    fold = Fold({"id": message_id, "role": "assistant", "parts": []})
    for body in bodies:
        fold.apply(json.loads(body))
    return fold.message
