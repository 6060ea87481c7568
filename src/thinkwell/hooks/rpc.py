"""`@rpc`: what clients may call, and what a streaming call writes its answers to (spec/01 §5).

Only the mark and the stream; `agent/rpc.py` answers the calls. They stand down here because
features bring calls too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast, overload

import msgspec

from thinkwell.core import json
from thinkwell.core.authority import Action
from thinkwell.core.spelling import spelled
from thinkwell.wire import encode

F = TypeVar("F", bound=Callable[..., Any])
_MARK = "__thinkwell_rpc__"


class RpcMark(msgspec.Struct, frozen=True):
    """What `@rpc` leaves on a method."""

    name: str
    streaming: bool
    read_only: bool
    action: Action = "call"
    """What `authorize` is asked about."""


@overload
def rpc(method: F, /) -> F: ...
@overload
def rpc(
    *,
    name: str | None = None,
    streaming: bool = False,
    read_only: bool = False,
    action: Action = "call",
) -> Callable[[F], F]: ...
@spelled("@rpc")
def rpc(
    method: F | None = None,
    /,
    *,
    name: str | None = None,
    streaming: bool = False,
    read_only: bool = False,
    action: Action = "call",
) -> F | Callable[[F], F]:
    """Let clients call this method: `agent.call("method", [...])` in the browser.

    An async generator streams: every value it yields is sent. With `streaming=True` the method
    gets an `RpcStream` as its first argument instead. `name` is what clients call it. With
    `read_only=True` read-only clients may call it: it changes nothing. `action` is what
    `authorize` is asked about, where a call does the same as something else a client can do.
    """
    if isinstance(cast("object", method), str):
        raise TypeError(f"@rpc({method!r}) is a text. Write @rpc(name={method!r}).")

    def mark(function: F) -> F:
        streams = streaming or inspect.isasyncgenfunction(function)
        setattr(function, _MARK, RpcMark(name or function.__name__, streams, read_only, action))
        return function

    return mark if method is None else mark(method)


def is_rpc(member: Any) -> bool:
    """Whether clients may call it."""
    return hasattr(member, _MARK)


def mark_of(call: Callable[..., Any], name: str) -> RpcMark:
    """How a call is answered; one that is not marked is called `name` and may change things."""
    streams = inspect.isasyncgenfunction(inspect.unwrap(call))
    return getattr(call, _MARK, None) or RpcMark(name, streams, read_only=False)


class RpcStream:
    """What a streaming method writes its answers to. After the end, nothing is sent any more."""

    def __init__(self, call_id: str, send: Callable[[str], None]) -> None:
        self._call_id = call_id
        self._send = send
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether the end was sent."""
        return self._closed

    def send(self, value: Any) -> bool:
        """Send one value. False after the end."""
        if self._closed:
            return False
        self._send(encode.rpc_result(self._call_id, json.to_jsonable(value), done=False))
        return True

    def end(self, value: Any = None) -> bool:
        """Send the last value. False if there was an end already."""
        if self._closed:
            return False
        self._send(encode.rpc_result(self._call_id, json.to_jsonable(value)))
        self._closed = True
        return True

    def error(self, text: str) -> bool:
        """End with an error. False if there was an end already."""
        if self._closed:
            return False
        self._closed = True
        self._send(encode.rpc_error(self._call_id, json.clean_text(text)))
        return True
