"""Methods that clients may call: `@rpc`, and how a call is answered (spec/01 §5).

Arguments are checked against the method's annotations. Answers go to the calling connection alone;
what a method raises is its answer too, and is logged.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping
from contextlib import aclosing
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, overload

import msgspec

from thinkwell.core import json
from thinkwell.core.authority import Subject
from thinkwell.core.errors import (
    AbortTurn,
    AgentDefinitionError,
    FailTurn,
    StoreError,
    StoreUnavailableError,
    UserCodeError,
)
from thinkwell.core.user_code import contained
from thinkwell.turn.ask.authority import NotAllowed, demand
from thinkwell.wire import encode

if TYPE_CHECKING:
    from thinkwell.agent.agent import Agent
    from thinkwell.agent.connection import Connection
    from thinkwell.live.watchers import Watcher
    from thinkwell.wire.frames import RpcCall

log = logging.getLogger("thinkwell.agent")

UNKNOWN_ERROR = "Unknown error occurred"

F = TypeVar("F", bound=Callable[..., Any])
_MARK = "__thinkwell_rpc__"
CHOOSES_BRANCH = "setActiveLeaf"
"""The call of every chat agent that changes what all clients see of the conversation."""


class _Marked(msgspec.Struct, frozen=True):
    name: str
    streaming: bool
    read_only: bool


@overload
def rpc(method: F) -> F: ...
@overload
def rpc(
    *, name: str | None = None, streaming: bool = False, read_only: bool = False
) -> Callable[[F], F]: ...
def rpc(
    method: F | None = None,
    *,
    name: str | None = None,
    streaming: bool = False,
    read_only: bool = False,
) -> F | Callable[[F], F]:
    """Let clients call this method: `agent.call("method", [...])` in the browser.

    An async generator streams: every value it yields is sent. With `streaming=True` the method
    gets an `RpcStream` as its first argument instead. `name` is what clients call it. With
    `read_only=True` whoever may only look may call it: it changes nothing.
    """

    def mark(function: F) -> F:
        streams = streaming or inspect.isasyncgenfunction(function)
        setattr(function, _MARK, _Marked(name or function.__name__, streams, read_only))
        return function

    return mark if method is None else mark(method)


def is_rpc(member: Any) -> bool:
    """Whether clients may call it."""
    return hasattr(member, _MARK)


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


async def answer_call(
    agent: Agent, call: RpcCall, watcher: Watcher, connection: Connection
) -> None:
    """Run one call, if it may be made, and send its answer."""
    stream = RpcStream(call.id, watcher.send)
    try:
        with contained(f"rpc {call.method!r}"):
            await _demand(agent, call, connection)
            await _run(agent, call, stream, gone=lambda: watcher.gone)
    except NotAllowed as refused:
        stream.error(str(refused))
    except (UserCodeError, AbortTurn, FailTurn):
        log.info("a call failed", exc_info=True, extra={"action": f"rpc:{call.method}"})
        stream.error(UNKNOWN_ERROR)
    except Exception as error:
        log.info("a call failed", exc_info=error, extra={"action": f"rpc:{call.method}"})
        stream.error(_told(agent, error))


def _told(agent: Agent, error: Exception) -> str:
    """What the caller reads: errors of the store speak of files, for those who run the server."""
    if not isinstance(error, StoreError) or getattr(agent, "expose_errors", False):
        return json.error_text(error)
    return error.told() if isinstance(error, StoreUnavailableError) else UNKNOWN_ERROR


async def _demand(agent: Agent, call: RpcCall, connection: Connection) -> None:
    found = rpc_methods(type(agent)).get(call.method)
    if found is None:
        return  # `_run` says so
    first: Any = call.args[0] if call.args else None
    subject = Subject(
        read_only=connection.readonly,
        method=call.method,
        input=call.args,
        message_id=first if isinstance(first, str) and call.method == CHOOSES_BRANCH else None,
        looks=getattr(found, _MARK).read_only,
    )
    action = "branch" if call.method == CHOOSES_BRANCH else "call"
    await demand(agent, action, connection.principal, subject)


async def _run(
    agent: object, call: RpcCall, stream: RpcStream, *, gone: Callable[[], bool]
) -> None:
    found = rpc_methods(type(agent)).get(call.method)
    if found is None:
        missing = not hasattr(type(agent), call.method)
        says = "does not exist" if missing else "is not callable"
        stream.error(f"Method {call.method} {says}")
        return
    marked: _Marked = getattr(found, _MARK)
    generates = inspect.isasyncgenfunction(inspect.unwrap(found))
    first = (agent, stream) if marked.streaming and not generates else (agent,)
    bound = _arguments(found, (*first, *call.args))
    result = found(*bound.args, **bound.kwargs)
    if generates:
        async with aclosing(result) as values:
            async for value in values:
                stream.send(value)
                if gone():
                    return
        stream.end()
        return
    result = await result if inspect.isawaitable(result) else result
    stream.end(None if marked.streaming else result)


@cache
def rpc_methods(cls: type) -> Mapping[str, Callable[..., Any]]:
    """What clients may call, by the names they use."""
    found: dict[str, Callable[..., Any]] = {}
    for attribute in dir(cls):
        member = inspect.getattr_static(cls, attribute)
        if not is_rpc(member):
            continue
        name = getattr(member, _MARK).name
        if name in found:
            raise AgentDefinitionError(
                f"{cls.__name__}.{found[name].__name__} and {cls.__name__}.{attribute} are both "
                f'called {name!r} by clients. Give one another name: `@rpc(name="...")`.'
            )
        found[name] = member
    return found


def _arguments(function: Callable[..., Any], given: tuple[Any, ...]) -> inspect.BoundArguments:
    """The arguments of a call as the annotations want them. Raises `TypeError`, `ValueError`."""
    signature, checks = _signature(function)
    bound = signature.bind(*given)
    for name, check in checks.items():
        if name in bound.arguments:
            bound.arguments[name] = check(name, bound.arguments[name])
    return bound


@cache
def _signature(
    function: Callable[..., Any],
) -> tuple[inspect.Signature, Mapping[str, Callable[[str, Any], Any]]]:
    from pydantic import TypeAdapter, ValidationError

    from thinkwell.tools.schema import explain, parameter_hints

    signature = inspect.signature(function)
    plain = [
        name
        for name, parameter in signature.parameters.items()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    hints = parameter_hints(function, plain)
    hints = {name: hint for name, hint in hints.items() if hint is not RpcStream}

    def checker(hint: Any) -> Callable[[str, Any], Any]:
        adapter: TypeAdapter[Any] = TypeAdapter(hint)

        def check(name: str, value: Any) -> Any:
            try:
                return adapter.validate_python(value)
            except ValidationError as error:
                raise ValueError(f"argument {name!r}: {'; '.join(explain(error))}") from error

        return check

    return signature, {name: checker(hint) for name, hint in hints.items()}
