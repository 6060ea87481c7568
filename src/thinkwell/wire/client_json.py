"""JSON that a client sent, whatever its size and shape.

The parser holds the interpreter while it works, threads or not. So what would take it long is
refused before it begins (elements are counted, not guessed from the size), what nobody needs is
skipped without becoming objects, and between the parts of a long list others go first: these
functions are generators (`core/tasks.py`).

A client sends its whole conversation with every question. Of messages that are not the user's own
only id, role and the states of the parts are kept, except for the last one, which may bring answers
(DESIGN §8.12). That saving is for long texts; short ones are parsed as they are.
"""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Any, TypeVar

import msgspec

from thinkwell.core import json
from thinkwell.core.tasks import Pieces

T = TypeVar("T")

CHAT_REQUEST = "cf_agent_use_chat_request"
SHORT = 64 * 1024
"""Bytes up to which a text is parsed in one go."""
MAX_OBJECTS = 500_000
"""Objects a request may have that are skipped."""
MAX_ELEMENTS = 200_000
"""Elements that may become objects in one go: a few dozen milliseconds."""
MAX_SAID = 50_000
"""Elements of a user message that is not stored yet: each costs again where it is stored and read.
A short text cannot hold so many.
"""
LAST = 16
"""So many messages at the end of a list are read even if they are stored: they tell what a client
has seen.
"""
MAX_FIELDS = 4 * 1024 * 1024
"""Bytes of everything in a request beside its messages, and of one user message."""
PIECE = 256 * 1024
"""Bytes of messages after which others go first."""

_SAFE_DEPTH = 400
_STACK_RESERVE = 200
_MENDED = 2_000
_LONGEST_RUN = 1_000
_SHORT_RAW = 1_000
_REPLACED = b"\\ufffd"
_SURROGATE = re.compile(rb"\\u[dD]([89a-fA-F])[0-9a-fA-F]{2}")
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"')
_AT_MOST = f"at most {MAX_FIELDS} are read"
_ELEMENTS = f"at most {MAX_ELEMENTS} are read"
_NULL = msgspec.Raw(b"null")

NOT_READ = ()
"""The parts of a message that is stored: nothing a client can send. Objects that hold nothing but
such are none of the garbage collector's business, and there may be tens of thousands of them.
"""


class TooLargeError(ValueError):
    """A text that would hold up everybody else. Says what there is too much of."""


class _PartState(msgspec.Struct, gc=False):
    type: str | None = None
    state: str | None = None


class _Seen(msgspec.Struct, gc=False):
    """What is looked at of a message that the server has written itself."""

    id: msgspec.Raw = _NULL
    role: msgspec.Raw = _NULL
    parts: msgspec.Raw = _NULL


class _Init(msgspec.Struct):
    method: str | None = None
    body: msgspec.Raw = _NULL


class _Frame(msgspec.Struct):
    type: str | None = None
    id: str | None = None
    after: str | None = None
    init: _Init | None = None


class _Named(msgspec.Struct):
    """What says to whom a frame belongs that is too large to be read."""

    type: msgspec.Raw = _NULL
    id: msgspec.Raw = _NULL
    toolCallId: msgspec.Raw = _NULL  # noqa: N815 - as the wire has it
    toolName: msgspec.Raw = _NULL  # noqa: N815
    autoContinue: msgspec.Raw = _NULL  # noqa: N815


class _Body(msgspec.Struct):
    messages: msgspec.Raw = _NULL


class _Object(msgspec.Struct, gc=False):
    pass


_any = msgspec.json.Decoder[Any]()
_string = msgspec.json.Decoder(str)
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_list = msgspec.json.Decoder(list[msgspec.Raw])
_objects = msgspec.json.Decoder(list[_Object])
_frame = msgspec.json.Decoder(_Frame)
_named = msgspec.json.Decoder(_Named)
_body = msgspec.json.Decoder(_Body)
_seen = msgspec.json.Decoder(_Seen)
_states = msgspec.json.Decoder(list[_PartState])


def parse_in_pieces(text: str | bytes, most: int = MAX_ELEMENTS) -> Pieces[Any]:
    """JSON data that a client sent, read with pauses in which others go first. Raises `ValueError`
    or `RecursionError`. All of it becomes objects, of at most so many elements."""
    data = text.encode() if isinstance(text, str) else text
    check_elements(data, most)
    if len(data) > PIECE:
        yield
    value = yield from _decode(_any, data)
    if len(data) > PIECE:
        yield
    if data.count(b"{") + data.count(b"[") > _SAFE_DEPTH:
        _check_depth(value)
    return value


def parse_body(text: str | bytes, stored: Container[str] | None = None) -> Pieces[Any]:
    """The body of a request, which may hold a list `messages`: a long one is read message by
    message. Of those whose ids are `stored` only that becomes an object, with `NOT_READ` as parts;
    None: nobody knows which are.
    """
    data = text.encode() if isinstance(text, str) else text
    if len(data) <= SHORT:
        return (yield from parse_in_pieces(data))
    if (objects := data.count(b"{")) > MAX_OBJECTS:
        raise TooLargeError(f"it has {objects} objects and at most {MAX_OBJECTS} are read")
    yield
    try:
        listed = (yield from _decode(_body, data)).messages
    except msgspec.ValidationError:  # some other JSON than an object
        return (yield from parse_in_pieces(data))
    beside = len(data) - _length(listed)
    if beside > MAX_FIELDS:
        raise TooLargeError(f"its fields beside `messages` have {beside} bytes; {_AT_MOST}")
    if beside > SHORT and _count(data) - _count(bytes(listed)) > MAX_ELEMENTS:
        raise TooLargeError(f"its fields beside `messages` have too many elements; {_ELEMENTS}")
    body: dict[str, Any] = {}
    for key, raw in (yield from _decode(_fields, data)).items():
        yield
        body[key] = yield from (_messages(raw, stored) if key == "messages" else _whole(raw))
    return body


def parse_frame(text: str) -> Pieces[Any]:
    """A whole frame. Of a long chat request only `type`, `id`, `after`, and `init` with `method`
    and `body`, which is text in turn.
    """
    data = text.encode()
    if len(data) <= SHORT:
        return (yield from parse_in_pieces(data))
    yield
    try:
        frame = yield from _decode(_frame, data)
    except msgspec.ValidationError:  # no object, or an `init` of another shape
        return (yield from parse_in_pieces(data))
    yield
    if frame.type != CHAT_REQUEST or frame.init is None:
        return (yield from parse_in_pieces(data))
    init = {"method": frame.init.method, "body": (yield from _unescaped(frame.init.body))}
    return {"type": frame.type, "id": frame.id, "after": frame.after, "init": init}


def _unescaped(raw: msgspec.Raw) -> Pieces[bytes | None]:
    """The text in a JSON string, as UTF-8; None for anything else.

    It is cut behind commas: they stand for themselves, so no escape and no character is cut in two.
    """
    data = bytes(raw)
    if data[:1] != b'"':
        return None
    parts: list[bytes] = []
    start, end = 1, len(data) - 1
    while start < end:
        cut = data.find(b",", start + PIECE, end) + 1 or end
        text = yield from _decode(_string, b'"' + data[start:cut] + b'"')
        parts.append(text.encode())
        start = cut
        yield
    return b"".join(parts)


def parse_names(text: str) -> Pieces[dict[str, Any]]:
    """Of a frame that is too large, what names it: its sender waits for an answer to that."""
    data = text.encode()
    yield
    try:
        named = yield from _decode(_named, data)
    except (ValueError, RecursionError):
        return {}
    return {key: _small(getattr(named, key)) for key in named.__struct_fields__}


def check_elements(data: bytes, most: int = MAX_ELEMENTS) -> None:
    """Refuse data with too many elements before they become objects.

    Commas and brackets are counted, at first those inside of strings too: that costs nothing. Only
    if they are too many, and the data is not too long for it, those are left out.
    """
    if len(data) <= most:
        return  # each of them takes a byte
    count = _count(data)
    if count > most and len(data) <= MAX_FIELDS:
        count = _count(_STRING.sub(b"", data))
    if count > most:
        raise TooLargeError(f"it has {count} elements; at most {most} are read")


def _count(data: bytes) -> int:
    return data.count(b",") + data.count(b"[") + data.count(b"{")


def _messages(raw: msgspec.Raw, stored: Container[str] | None) -> Pieces[Any]:
    try:
        _objects.decode(raw)  # first: millions of other things would become as many pieces
    except msgspec.ValidationError:
        return (
            [None] if bytes(memoryview(raw)[:1]) == b"[" else None
        )  # whoever checks it says what is wrong
    yield
    entries = _list.decode(raw)
    yield
    result: list[Any] = []
    read = 0
    for left, entry in zip(range(len(entries) - 1, -1, -1), entries, strict=True):
        read += _length(entry) + _SHORT_RAW // 4
        if read > PIECE:
            read = 0
            yield
        result.append((yield from _message(entry, stored, left=left)))
    return result


def _message(raw: msgspec.Raw, stored: Container[str] | None, *, left: int) -> Pieces[Any]:
    """A message with so many behind it."""
    seen = _seen.decode(raw)
    by_user = bytes(seen.role) == b'"user"'
    most = MAX_ELEMENTS
    if stored is not None:
        known = _small(seen.id)
        is_stored = isinstance(known, str) and known in stored
        if is_stored and left >= LAST:
            return {"id": known, "role": _small(seen.role), "parts": NOT_READ}
        most = MAX_SAID if by_user and not is_stored else most
    if by_user and _length(raw) > MAX_FIELDS:
        raise TooLargeError(f"one of its messages has {_length(raw)} bytes; {_AT_MOST}")
    if _length(raw) > PIECE:
        yield
    if by_user or (not left and _count(bytes(raw)) <= MAX_ELEMENTS):
        if _length(raw) > PIECE:
            yield
        return (yield from _whole(raw, most))
    return {"id": _small(seen.id), "role": _small(seen.role), "parts": _part_states(seen.parts)}


def _part_states(raw: msgspec.Raw) -> list[dict[str, str | None]]:
    try:
        return [{"type": part.type, "state": part.state} for part in _states.decode(raw)]
    except msgspec.ValidationError:
        return []


def _small(raw: msgspec.Raw) -> Any:
    """An id or a role; anything large is none."""
    return json.loads(bytes(raw)) if _length(raw) <= _SHORT_RAW else None


def _whole(raw: msgspec.Raw, most: int = MAX_ELEMENTS) -> Pieces[Any]:
    return (yield from parse_in_pieces(bytes(raw), most))


def _length(raw: msgspec.Raw) -> int:
    return len(memoryview(raw))


def _decode(decoder: msgspec.json.Decoder[T], data: bytes) -> Pieces[T]:
    r"""Decode, with lone surrogates replaced if there are any.

    A browser writes half an emoji as `\ud83d`, which the decoder refuses. Losing the whole message
    over one character would be worse than replacing that character.
    """
    try:
        return decoder.decode(data)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        if b"\\ud" not in data and b"\\uD" not in data:
            raise
    mended = yield from _mended(data)
    yield
    return decoder.decode(mended)


def _mended(data: bytes) -> Pieces[bytes]:
    """The data with `\\ufffd` in the place of surrogates that have no other half."""
    kept: list[bytes] = []
    upto, high = 0, -1  # where the last high half ends that has no low one yet
    for number, match in enumerate(_SURROGATE.finditer(data), 1):
        if number % _MENDED == 0:
            yield
        if number > MAX_ELEMENTS:
            raise TooLargeError("it has too many surrogates, some without their other half")
        start, end = match.span()
        if _is_escaped(data, start):
            continue
        is_high = match[1] in b"89abAB"
        if high >= 0 and (is_high or start != high):
            kept += (data[upto : high - 6], _REPLACED)
            upto, high = high, -1
        if is_high:
            high = end
        elif high >= 0:
            high = -1
        else:
            kept += (data[upto:start], _REPLACED)
            upto = end
    if high >= 0:
        kept += (data[upto : high - 6], _REPLACED)
        upto = high
    kept.append(data[upto:])
    return b"".join(kept)


def _is_escaped(data: bytes, place: int) -> bool:
    """Whether the backslash there is the second of a pair."""
    first = place
    while data[first - 1 : first] == b"\\":
        first -= 1
        if place - first > _LONGEST_RUN:
            raise ValueError("the text has too many backslashes in a row")
    return (place - first) % 2 == 1


def _check_depth(value: Any) -> None:
    """Raise `RecursionError` for data that later, on a deeper stack, could not be encoded."""
    for _ in range(_STACK_RESERVE):
        value = [value]
    json.dump_bytes(value)
