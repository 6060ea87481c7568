"""Calls of clients: methods marked with `@rpc` and what features bring (spec/01 §5).

Arguments are checked against the method's annotations. Answers go to the calling connection alone;
what a method raises is its answer too, and is logged.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping
from contextlib import aclosing
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from thinkwell.core import json
from thinkwell.core.authority import Subject
from thinkwell.core.errors import (
    AbortTurn,
    AgentDefinitionError,
    AgentDeletedError,
    ApprovalError,
    CorruptTreeError,
    FailTurn,
    SessionError,
    StoreError,
    StoreUnavailableError,
    TurnActiveError,
    UserCodeError,
)
from thinkwell.core.events import RpcCalled, RpcFailed
from thinkwell.core.user_code import contained, log_failure
from thinkwell.hooks.rpc import RpcMark, RpcStream, is_rpc, mark_of
from thinkwell.turn.ask.authority import NotAllowed, demand

if TYPE_CHECKING:
    from thinkwell.agent.agent import Agent
    from thinkwell.agent.connection import Connection
    from thinkwell.live.watchers import Watcher
    from thinkwell.wire.frames import RpcCall

log = logging.getLogger("thinkwell.agent")

UNKNOWN_ERROR = "Unknown error occurred"
ABOUT_MESSAGES = ("branch", "edit")
"""Actions whose first argument is the message they are about."""


class _Found(NamedTuple):
    """What a client calls."""

    function: Callable[..., Any]
    first: tuple[Any, ...]
    """What it is given before the client's arguments."""
    mark: RpcMark


def _find(agent: Agent, name: str) -> _Found | None:
    """A method of the agent, or what a feature brings."""
    method = rpc_methods(type(agent)).get(name)
    if method is not None:
        return _Found(method, (agent,), mark_of(method, name))
    call = agent._seats.calls.get(name)  # pyright: ignore[reportPrivateUsage]
    if call is None:
        return None
    if inspect.ismethod(call):
        return _Found(call.__func__, (call.__self__,), mark_of(call, name))
    return _Found(call, (), mark_of(call, name))


async def serve_call(agent: Agent, call: RpcCall, watcher: Watcher, connection: Connection) -> None:
    """Run one call, if it may be made, and send its answer."""
    stream = RpcStream(call.id, watcher.send)
    try:
        with contained(f"rpc {call.method!r}"):
            await _demand(agent, call, connection)
            await _run(agent, call, stream, gone=lambda: watcher.gone)
    except NotAllowed as refused:
        stream.error(str(refused))
    except (UserCodeError, AbortTurn, FailTurn) as error:
        _log_failed(agent, call, error)
        stream.error(UNKNOWN_ERROR)
    except Exception as error:  # noqa: BLE001 - logged there
        if _is_callers_mistake(error):  # no traceback: anybody could fill the log with them
            log.info("a call was refused: %.300s", error, extra={"action": f"rpc:{call.method}"})
        else:
            _log_failed(agent, call, error)
        stream.error(_client_text(agent, error))


class _WrongArguments(Exception):  # noqa: N818 - what a client sent, no defect
    """The arguments do not fit the method."""


def _is_callers_mistake(error: Exception) -> bool:
    """Whether a call failed for what its client asked: an id that is not there, a bad moment."""
    mistakes = (_WrongArguments, ApprovalError, SessionError, TurnActiveError)
    return isinstance(error, mistakes) and not isinstance(error, CorruptTreeError)


def _log_failed(agent: Agent, call: RpcCall, error: BaseException) -> None:
    agent_id = f"{agent.agent_class}/{agent.name}"
    about = {"agent": agent_id, "code": f"rpc:{call.method}"}
    agent.events.emit(RpcFailed, agent=agent_id, method=call.method, error=error)
    log_failure(log, f"the call {call.method!r}", error, about)


def _client_text(agent: Agent, error: Exception) -> str:
    """What the caller reads: errors of the store speak of files, for those who run the server."""
    plain = not isinstance(error, StoreError) or isinstance(error, AgentDeletedError)
    if plain or getattr(agent, "expose_errors", False):
        return json.error_text(error)
    return error.client_text() if isinstance(error, StoreUnavailableError) else UNKNOWN_ERROR


async def _demand(agent: Agent, call: RpcCall, connection: Connection) -> None:
    found = _find(agent, call.method)
    if found is None:
        return  # `_run` says so
    first: Any = call.args[0] if call.args else None
    about_message = found.mark.action in ABOUT_MESSAGES and isinstance(first, str)
    subject = Subject(
        read_only=connection.readonly,
        method=call.method,
        input=call.args,
        message_id=first if about_message else None,
        looks=found.mark.read_only,
    )
    await demand(agent, found.mark.action, connection.principal, subject)


async def _run(agent: Agent, call: RpcCall, stream: RpcStream, *, gone: Callable[[], bool]) -> None:
    found = _find(agent, call.method)
    if found is None:
        missing = not hasattr(type(agent), call.method)
        says = "does not exist" if missing else "is not callable"
        stream.error(f"Method {call.method} {says}")
        return
    function, first, mark = found
    agent.events.emit(RpcCalled, method=call.method, streaming=mark.streaming)
    generates = inspect.isasyncgenfunction(inspect.unwrap(function))
    if mark.streaming and not generates:
        first = (*first, stream)
    try:
        bound = _arguments(function, (*first, *call.args))
    except (TypeError, ValueError) as error:
        raise _WrongArguments(json.error_text(error)) from error
    result = function(*bound.args, **bound.kwargs)
    if generates:
        async with aclosing(result) as values:
            async for value in values:
                stream.send(value)
                if gone():
                    return
        stream.end()
        return
    result = await result if inspect.isawaitable(result) else result
    stream.end(None if mark.streaming else result)


@cache
def rpc_methods(cls: type) -> Mapping[str, Callable[..., Any]]:
    """What clients may call, by the names they use."""
    found: dict[str, Callable[..., Any]] = {}
    for attribute in dir(cls):
        member = inspect.getattr_static(cls, attribute)
        if not is_rpc(member):
            continue
        name = mark_of(member, attribute).name
        if name in found:
            raise AgentDefinitionError(
                f"{cls.__name__}.{found[name].__name__} and {cls.__name__}.{attribute} are both "
                f'called {name!r} by clients. Give one another name: `@rpc(name="...")`.'
            )
        found[name] = member
    return found


def _arguments(function: Callable[..., Any], given: tuple[Any, ...]) -> inspect.BoundArguments:
    """The arguments of a call as the annotations want them. Raises `TypeError`, `ValueError`."""
    # What is made anew for each activation must not stay in the cache when its agent sleeps.
    read = _signature if getattr(function, "__closure__", ()) is None else _signature.__wrapped__
    signature, checks = read(function)
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
