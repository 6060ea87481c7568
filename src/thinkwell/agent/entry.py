"""The parity ways into a turn: `run_turn`, `chat`, `chat_stream` (spec/02 §2.18-2.33).

They only put requests together, and read the turn for whoever asked: the turn itself is the same
as for every other way in. `think.py` has the facade; `callbacks.py` speaks to a callback.
Rule: with a callback, failures go to the callback; without one, they are raised.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from dataclasses import replace
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, cast

import msgspec
from msgspec import UNSET

from thinkwell.agent.agent_events import (
    AgentEvent,
    AgentResponse,
    ChatAbort,
    ChatDone,
    ChatError,
    ChatStart,
    EventReader,
)
from thinkwell.agent.callbacks import ChatCallback, ChatOutcome, call, feed_callback
from thinkwell.core import json
from thinkwell.core.errors import AbortedError, TurnError
from thinkwell.core.ids import new_id
from thinkwell.core.signal import AbortSignal
from thinkwell.hooks.contexts import CallInfo
from thinkwell.journal.submission import Submission
from thinkwell.journal.tail import Chunks, Started
from thinkwell.journal.turns import Trigger
from thinkwell.messages.message import UIMessage, text_of
from thinkwell.tools.context import ToolContext
from thinkwell.tools.tool import Tool, client_tool
from thinkwell.turn.ask.admission import (
    MessageInput,
    TurnRequest,
    read_input,
    read_question,
    refuse_nested,
)
from thinkwell.turn.ask.run_options import NO_OPTIONS, Options
from thinkwell.turn.end.ending import TurnResult
from thinkwell.turn.handle import InputFunction, TurnHandle
from thinkwell.turn.turns import Turns

if TYPE_CHECKING:
    from thinkwell.agent.think import Think

OnEvent: TypeAlias = Callable[[AgentEvent], Any]
"""Gets each event in the task of the caller; may be async. What it raises stops the turn."""
OnClientToolCall: TypeAlias = Callable[[CallInfo], Any]
"""Runs a client tool's call and returns its result; may be async. A raise is the call's error."""

LEFT = "the reader left the stream"
MODES = ("wait", "submit", "stream")
_CALLS = ("client_tool", "approval", "max_steps", "stop_when", "steered")
"""Stop reasons after which the last step had asked for tools."""


class ChatOptions(TypedDict, total=False):
    """What can be said about a `chat` beside its message."""

    signal: AbortSignal | None
    """Stops the turn."""
    metadata: dict[str, Any] | None
    """Kept with the turn; hooks read it as `turn_metadata`."""
    client_tools: Sequence[Mapping[str, Any]] | None
    """Tools of this turn only: `name`, `description`, `parameters`."""
    on_client_tool_call: OnClientToolCall | None
    """Runs their calls. Without it the turn ends with the call, and the answer comes later."""


class TurnOptions(ChatOptions, total=False):
    """What can be said to `run_turn`, beside the mode."""

    input: MessageInput | InputFunction | None
    """What to answer; a function makes it from the transcript, inside the slot."""
    continuation: bool | dict[str, Any] | None
    """Go on with the last answer: True, or the request's body. For mode `wait`."""
    callback: ChatCallback | None
    """For mode `stream`."""
    submission_id: str | None
    """For mode `submit`."""
    idempotency_key: str | None
    """For mode `submit`."""


class RunOptions(TypedDict, total=False):
    """What can be said to `run` beside its input and its output."""

    model: Any
    """A model or its name, for this turn."""
    body: Mapping[str, Any] | None
    """JSON that hooks and tools read as `ctx.body`."""
    tools: Iterable[Any] | Mapping[str, Any]
    """More tools for this turn."""
    max_steps: int | None
    """Model calls this turn may make."""
    signal: AbortSignal | None
    """Stops the turn."""
    metadata: dict[str, Any] | None
    """Kept with the turn; hooks read it as `turn_metadata`."""


class ChatCall(msgspec.Struct, frozen=True, kw_only=True):
    """What `chat` was asked for."""

    input: MessageInput | InputFunction
    signal: AbortSignal | None = None
    metadata: dict[str, Any] | None = None
    client_tools: Sequence[Mapping[str, Any]] | None = None
    on_client_tool_call: OnClientToolCall | None = None


# With a callback


async def chat_to_callback(turns: Turns, request: ChatCall, callback: ChatCallback) -> ChatOutcome:
    """Run a turn and tell its chunks to a callback."""
    refuse_nested("chat", turns.parts.owner.agent_id)
    request_id = new_id()
    await call(callback.on_start, {"request_id": request_id})
    handle = await _ask(turns, request, request_id)
    return await feed_callback(turns, handle, callback)


async def skip_with_callback(callback: ChatCallback) -> ChatOutcome:
    """Nothing was asked: the callback hears a start and an end, and there is no turn (2.31)."""
    await call(callback.on_start, {"request_id": ""})
    await call(callback.on_done)
    return ChatOutcome(status="skipped", request_id="")


# Without one


async def chat(turns: Turns, request: ChatCall, on_event: OnEvent | None) -> AgentResponse:
    """Run a turn and return its answer; raises if it failed or was stopped."""
    refuse_nested("chat", turns.parts.owner.agent_id)
    if on_event is None:
        handle = await _ask(turns, request)
        await turns.wait(handle)
        return _reply_or_raise(handle)
    response = AgentResponse()
    async with aclosing(_events(turns, request)) as events:
        async for event in events:
            await call(on_event, event)
            if isinstance(event, ChatDone):
                response = event.response
    return response


async def chat_stream(turns: Turns, request: ChatCall) -> AsyncGenerator[AgentEvent]:
    """Run a turn and yield its events; raises at the end if it failed. Leaving stops the turn."""
    refuse_nested("chat_stream", turns.parts.owner.agent_id)
    async with aclosing(_events(turns, request)) as events:
        async for event in events:
            yield event


async def _events(turns: Turns, request: ChatCall) -> AsyncGenerator[AgentEvent]:
    handle = await _ask(turns, request)
    try:
        async with aclosing(_read_events(handle)) as events:
            async for event in events:
                yield event
        await handle.until_over()
        end = _end_of(handle)
        yield end
        if not isinstance(end, ChatDone):
            _reply_or_raise(handle)
    finally:
        if not handle.over:
            await turns.cancel(handle.record.request_id, LEFT)


async def _read_events(handle: TurnHandle) -> AsyncGenerator[AgentEvent]:
    """The events of chunks as they become durable, and the end of each step where it belongs."""
    reader = EventReader()
    async with aclosing(handle.tail()) as tail:
        async for event in tail:
            if isinstance(event, Started):
                yield ChatStart(message=_text_of(event.record.input))
            elif isinstance(event, Chunks):
                for small in _read_chunks(reader, event):
                    yield small


def _read_chunks(reader: EventReader, chunks: Chunks) -> Iterator[AgentEvent]:
    places = deque(chunks.replied)
    for number, body in enumerate((*chunks.bodies, None), chunks.first):
        while places and places[0] <= number:
            places.popleft()
            yield from reader.close_step()
        if body is not None:
            yield from reader.read(json.loads(body))


def _end_of(handle: TurnHandle) -> ChatDone | ChatAbort | ChatError:
    try:
        return ChatDone(response=_reply_or_raise(handle))
    except AbortedError as stop:
        return ChatAbort(reason=stop.reason)
    except Exception as error:  # noqa: BLE001 - told first, then raised
        return ChatError(error=error)


def _reply_or_raise(handle: TurnHandle) -> AgentResponse:
    """The answer of a turn that has ended, or what ended it."""
    result = handle.result()
    outcome = handle.outcome
    if result.status == "error":
        raise (outcome and outcome.error) or TurnError(result.error or "The turn failed.")
    if outcome is None or result.status != "completed":
        reason = outcome and outcome.record.error
        raise AbortedError(reason or result.stop_reason or result.status)
    response = outcome.response
    return AgentResponse(
        content=response.content,
        reasoning=response.reasoning,
        finish_reason="tool-calls" if result.stop_reason in _CALLS else response.finish_reason,
    )


# What both ask for


async def _ask(turns: Turns, request: ChatCall, request_id: str | None = None) -> TurnHandle:
    declared = tuple(dict(schema) for schema in request.client_tools or ())
    tools = [
        client_tool(d.get("name"), d.get("description"), d.get("parameters")) for d in declared
    ]
    answer = request.on_client_tool_call
    made = _request(
        "rpc",
        request.input,
        request_id=request_id,
        metadata=request.metadata,
        client_tools=declared if answer is None else (),
    )
    _, handle = await turns.ask(
        made,
        input_function=request.input if callable(request.input) else None,
        options=Options(handled={tool.name: _handled(tool, answer) for tool in tools})
        if answer
        else None,
        signal=request.signal,
        awaited=True,
    )
    if handle is None:
        raise RuntimeError("a turn with a new id was known before")
    return handle


def _request(trigger: Trigger, asked: MessageInput | InputFunction, **fields: Any) -> TurnRequest:
    if callable(asked):
        return TurnRequest(trigger=trigger, function_input=True, **fields)
    return TurnRequest(trigger=trigger, messages=read_input(asked), **fields)


def _handled(tool: Tool, run: OnClientToolCall) -> Tool:
    async def execute(arguments: Any, ctx: ToolContext) -> Any:
        value = run(CallInfo(id=ctx.tool_call_id, name=ctx.tool_name, arguments=arguments))
        return await value if isawaitable(value) else value

    return replace(tool, execute=execute)


def _text_of(messages: Sequence[UIMessage]) -> str | None:
    users = [message for message in messages if message["role"] == "user"]
    return text_of(users[-1]) if users else None


# run, run_turn


async def run(
    turns: Turns,
    asked: MessageInput,
    options: Options,
    *,
    signal: AbortSignal | None,
    **fields: Any,
) -> TurnResult:
    """Run a turn with the options that `run` was given."""
    messages = read_question(asked)
    if not messages:
        return skipped(options)
    if options.model is not None:  # a mistake in its name is raised before anything is accepted
        await turns.parts.load_model(options.model)
    request = TurnRequest(
        trigger="programmatic",
        messages=messages,
        new_ids=isinstance(asked, str),
        chosen=options.stored(),
        **fields,
    )
    return await run_and_wait(turns, request, call="run", signal=signal, options=options)


async def run_turn(
    agent: Think, turns: Turns, mode: str, given: Mapping[str, Any]
) -> TurnResult | Submission | ChatOutcome:
    """One front for `save_messages`, `submit`, `chat` with a callback and `continue_last_turn`."""
    rest = {name: value for name, value in given.items() if name in _OPTIONS[mode]}
    if "continuation" in given:
        body: dict[str, Any] | None = (
            None if given["continuation"] is True else given["continuation"]
        )
        return await agent.continue_last_turn(body=body, signal=rest.get("signal"))
    asked: MessageInput | InputFunction = given["input"]
    if mode == "submit":
        return await agent.submit(cast("MessageInput", asked), **rest)
    nothing = not callable(asked) and not read_question(asked)
    if mode == "stream" and nothing:
        return await skip_with_callback(given["callback"])
    if mode == "stream":
        return await chat_to_callback(turns, ChatCall(input=asked, **rest), given["callback"])
    if nothing:
        return skipped()
    request = _request("programmatic", asked, metadata=rest.get("metadata"))
    made = asked if callable(asked) else None
    return await run_and_wait(turns, request, signal=rest.get("signal"), input_function=made)


async def run_and_wait(
    turns: Turns,
    request: TurnRequest,
    *,
    call: str = "run_turn",
    signal: AbortSignal | None = None,
    input_function: InputFunction | None = None,
    options: Options | None = None,
) -> TurnResult:
    """Run a turn and wait for its result."""
    refuse_nested(call, turns.parts.owner.agent_id)
    _, handle = await turns.ask(
        request, input_function=input_function, options=options, signal=signal, awaited=True
    )
    if handle is None:
        raise RuntimeError("a turn with a new id was known before")
    return await turns.wait(handle)


def skipped(options: Options = NO_OPTIONS) -> TurnResult:
    """The result where nothing was asked: there is no turn."""
    output = None if options.output is None else UNSET
    return TurnResult(request_id="", status="skipped", message=None, output=output)


def check_run_turn(mode: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """What was given to `run_turn`; refuses what it cannot mean (2.30)."""
    given = {
        name: value for name, value in options.items() if value is not None and value is not False
    }
    if mode not in MODES:
        raise TypeError(f"run_turn(mode={mode!r}): use one of {', '.join(MODES)}.")
    has_input, continues = "input" in given, "continuation" in given
    if mode == "wait" and has_input == continues:
        raise TypeError("run_turn(mode='wait') takes exactly one of input= and continuation=.")
    if mode != "wait" and continues:
        raise TypeError("run_turn(continuation=...) works with mode='wait' only.")
    if mode != "wait" and not has_input:
        raise TypeError(f"run_turn(mode={mode!r}) needs input=.")
    if mode == "submit" and callable(given["input"]):
        raise TypeError(
            "run_turn(mode='submit') cannot take a function: it would die with this process. "
            "Give the messages, or use mode='wait'."
        )
    if (mode == "stream") != ("callback" in given):
        raise TypeError("run_turn(mode='stream') needs callback=, and no other mode takes one.")
    for option in given.keys() - _OPTIONS[mode] - {"input", "continuation", "callback"}:
        raise TypeError(f"run_turn(mode={mode!r}) does not take {option}=.")
    return given


_CHAT = {"signal", "metadata"}
_OPTIONS: Mapping[str, set[str]] = {
    "wait": _CHAT,
    "submit": {"metadata", "submission_id", "idempotency_key"},
    "stream": {*_CHAT, "client_tools", "on_client_tool_call"},
}


# Stability


async def wait_until_stable(
    turns: Turns, has_pending: Callable[[], Awaitable[bool]], timeout: float | None
) -> bool:
    """Until nothing runs, waits in line or waits for an answer; False when time is up (3.10)."""
    refuse_nested("wait_until_stable", turns.parts.owner.agent_id)
    news = asyncio.Event()
    leave = turns.watch(lambda _: news.set())
    try:
        async with asyncio.timeout(timeout):
            while True:
                await turns.wait_until_idle()
                news.clear()
                if not await has_pending() and not turns.busy:
                    return True
                await news.wait()
    except TimeoutError:
        return False
    finally:
        leave()
