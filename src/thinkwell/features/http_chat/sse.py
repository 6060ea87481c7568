"""Chunks as server-sent events, for clients that check every one of them (spec/01 §14.2-14.4).

Over HTTP the AI SDK refuses a stream with a chunk it does not know, and older versions one with a
field they do not know. So what leaves here is the common ground: known kinds, known fields, no
nulls. Anything else is left out; the stored message has it all the same.

One kind is sent although old clients refuse it: `reset-step`. It takes back what a hook has
changed, and a client that fails is better than one that goes on showing it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

import msgspec

from thinkwell.core import json
from thinkwell.messages.chunks import Chunk, check_chunk, is_data_kind
from thinkwell.messages.plain_parts import EVERYWHERE

STREAM_TYPE = "text/event-stream"
STREAM_HEADERS: Mapping[str, str] = {
    "cache-control": "no-cache",
    "connection": "keep-alive",
    "x-vercel-ai-ui-message-stream": "v1",
    "x-accel-buffering": "no",
}
DONE = b"data: [DONE]\n\n"
STILL_HERE = b": keep-alive\n\n"
"""A comment: clients skip it, and proxies see that the connection lives."""

_PM = ("providerMetadata",)
_CALL = ("toolCallId", "toolName", "providerExecuted", "providerMetadata", "dynamic", "title")
_FIELDS: Mapping[str, frozenset[str]] = {
    kind: frozenset(("type", *fields))
    for kind, fields in {
        "start": ("messageId", "messageMetadata"),
        "start-step": (),
        "finish-step": (),
        "reset-step": (),
        "text-start": ("id", *_PM),
        "text-delta": ("id", "delta", *_PM),
        "text-end": ("id", *_PM),
        "reasoning-start": ("id", *_PM),
        "reasoning-delta": ("id", "delta", *_PM),
        "reasoning-end": ("id", *_PM),
        "tool-input-start": _CALL,
        "tool-input-delta": ("toolCallId", "inputTextDelta"),
        "tool-input-available": (*_CALL, "input"),
        "tool-input-error": (*_CALL, "input", "errorText"),
        "tool-approval-request": ("approvalId", "toolCallId"),
        "tool-output-available": (
            "toolCallId",
            "output",
            "preliminary",
            "dynamic",
            "providerExecuted",
        ),
        "tool-output-error": ("toolCallId", "errorText", "dynamic", "providerExecuted"),
        "tool-output-denied": ("toolCallId",),
        **{kind: part.fields for kind, part in EVERYWHERE.items()},
        "message-metadata": ("messageMetadata",),
        "finish": ("finishReason", "messageMetadata"),
        "abort": ("reason",),
        "error": ("errorText",),
    }.items()
}
_DATA = frozenset({"type", "data", "id", "transient"})
_MAY_BE_NULL = ("input", "output", "data")


class _Plain(msgspec.Struct, tag_field="type", forbid_unknown_fields=True, gc=False):
    """A chunk without anything that has to be looked at: most of a stream."""


class _Start(_Plain, tag="start"):
    messageId: str  # noqa: N815 - as the wire has it


class _Stopped(_Plain, tag="finish"):
    finishReason: Literal["stop"]  # noqa: N815


class _StepStart(_Plain, tag="start-step"):
    pass


class _StepEnd(_Plain, tag="finish-step"):
    pass


class _TextStart(_Plain, tag="text-start"):
    id: str


class _TextDelta(_Plain, tag="text-delta"):
    id: str
    delta: str


class _TextEnd(_Plain, tag="text-end"):
    id: str


class _ReasoningDelta(_Plain, tag="reasoning-delta"):
    id: str
    delta: str


class _InputDelta(_Plain, tag="tool-input-delta"):
    toolCallId: str  # noqa: N815 - as the wire has it
    inputTextDelta: str  # noqa: N815


_Plains: TypeAlias = (
    _Start
    | _Stopped
    | _StepStart
    | _StepEnd
    | _TextStart
    | _TextDelta
    | _TextEnd
    | _ReasoningDelta
    | _InputDelta
)
_plain = msgspec.json.Decoder(_Plains)


def legal_chunk(chunk: Chunk) -> Chunk | None:
    """The chunk as every supported client can read it over HTTP; None if there is no such form."""
    kind = chunk.get("type")
    if not isinstance(kind, str):
        return None
    fields = _FIELDS.get(kind) or (_DATA if is_data_kind(kind) else None)
    if fields is None:
        return None
    if not (fields >= chunk.keys() and None not in chunk.values()):
        chunk = {
            name: value
            for name, value in chunk.items()
            if name in fields and (value is not None or name in _MAY_BE_NULL)
        }
    return chunk if check_chunk(chunk) is None else None


def told_events(bodies: Iterable[str]) -> bytes:
    """The same of chunks as the journal has them."""
    return b"".join(map(_told_event, bodies))


def _told_event(body: str) -> bytes:
    try:
        _plain.decode(body)
    except msgspec.ValidationError:
        return events((json.loads(body),))
    return b"data: %b\n\n" % body.encode()


def events(chunks: Iterable[Chunk]) -> bytes:
    """The chunks as events, without what clients cannot read."""
    legal = (legal_chunk(chunk) for chunk in chunks)
    return b"".join(b"data: %b\n\n" % json.dump_bytes(chunk) for chunk in legal if chunk)
