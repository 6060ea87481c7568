"""A model that says what a test wrote down, and complains about everything else.

`ScriptedModel([...])` takes one step per expected call. A call too many is a failure with an
`AssertionError` in it; `assert_complete()` complains about steps left over. A step is a text, a
list of pieces and events (one alone needs no list), or a function from the request to a step.
`pause()` puts a gate into the stream: the test waits until the model stands there (`await
gate.reached()`) and lets it go on (`gate.open()`), so tests wait for states and never for time.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, cast

import msgspec

from thinkwell.core import json
from thinkwell.core.signal import AbortSignal
from thinkwell.messages.usage import Usage
from thinkwell.models.base import (
    Failure,
    Finish,
    FinishReason,
    ModelEvent,
    ModelRequest,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputStart,
)


class Text(msgspec.Struct, frozen=True):
    """A text part, delta by delta."""

    deltas: tuple[str, ...]


class Reasoning(msgspec.Struct, frozen=True):
    """A reasoning part, delta by delta."""

    deltas: tuple[str, ...]
    provider_metadata: dict[str, Any] | None = None


class Call(msgspec.Struct, frozen=True):
    """A tool call. Without an id it gets one that counts through the model's calls."""

    tool_name: str
    deltas: tuple[str, ...]
    id: str | None = None


class Gate:
    """A place in a stream where the model waits until the test opens it, or the call is aborted."""

    def __init__(self) -> None:
        self._reached = asyncio.Event()
        self._opened = asyncio.Event()

    async def reached(self) -> None:
        """Wait until the model stands at the gate."""
        await self._reached.wait()

    def open(self) -> None:
        """Let the model go on."""
        self._opened.set()

    async def pass_through(self, signal: AbortSignal) -> None:
        """The model's side: wait for the test or for an abort."""
        self._reached.set()
        dispose = signal.add_listener(lambda _: self._opened.set())
        try:
            await self._opened.wait()
        finally:
            dispose()


Piece: TypeAlias = "Text | Reasoning | Call | Gate | ModelEvent | str"
Step: TypeAlias = (
    "Piece | Exception | Sequence[Piece] | Callable[[ModelRequest], Piece | Sequence[Piece]]"
)

_EVENT_TYPES = ModelEvent.__args__
_PIECES = (Text, Reasoning, Call, Gate, *_EVENT_TYPES)
_SCRIPT = 'Write one step for each call of the model: `ScriptedModel([[call("add")], "done"])`.'
_WORDS = re.compile(r"\s*\S+\s*$|\s*\S+|\s+")


def text(*deltas: str) -> Text:
    """A text part. One string is split into words; several are the deltas themselves."""
    return Text(_split(deltas))


def reasoning(*deltas: str, provider_metadata: dict[str, Any] | None = None) -> Reasoning:
    """A reasoning part, split like `text`."""
    return Reasoning(_split(deltas), provider_metadata)


def call(
    tool_name: str,
    arguments: Mapping[str, Any] | str | Sequence[str] = "",
    *,
    id: str | None = None,
) -> Call:
    """A tool call. A string is sent as it is (so it may be bad JSON), a list as its deltas."""
    if isinstance(arguments, Mapping):
        deltas = (json.dumps(dict(arguments)),)
    else:
        deltas = (arguments,) if isinstance(arguments, str) else tuple(arguments)
    return Call(tool_name, tuple(delta for delta in deltas if delta), id)


def error(exception: Exception) -> Failure:
    """The call fails here."""
    return Failure(exception)


def finish(reason: FinishReason, *, usage: Usage | None = None) -> Finish:
    """The call ends here with this reason, instead of the one that follows from its content."""
    return Finish(reason=reason, raw_reason=reason, usage=usage or DEFAULT_USAGE)


def pause() -> Gate:
    """A gate: keep it in a variable, put it into the step, open it from the test."""
    return Gate()


DEFAULT_USAGE = Usage(input_tokens=10, output_tokens=5, total_tokens=15)


class ScriptedModel:
    """Plays one step per call and records every request in `requests`."""

    def __init__(self, steps: Iterable[Step] = (), *, model_id: str = "scripted") -> None:
        given: Any = steps
        if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
            raise TypeError(f"ScriptedModel({given!r}) is no list of steps. {_SCRIPT}")
        self._steps: list[Step] = []
        self.add(*steps)
        self._played = 0
        self._calls = 0
        self._model_id = model_id
        self.requests: list[ModelRequest] = []

    @property
    def provider(self) -> str:
        """Always `scripted`."""
        return "scripted"

    @property
    def model_id(self) -> str:
        """The name given at the start."""
        return self._model_id

    def add(self, *steps: Step) -> None:
        """Append steps to the script. Raises `TypeError` for what is none."""
        self._steps.extend(_checked(step) for step in steps)

    def assert_complete(self) -> None:
        """Complain if steps are left over."""
        left = self._steps[self._played :]
        if left:
            raise AssertionError(
                f"{len(left)} of {len(self._steps)} scripted steps were never asked for; "
                f"the first of them is {left[0]!r}."
            )

    async def stream(self, request: ModelRequest, signal: AbortSignal) -> AsyncIterator[ModelEvent]:
        """Play the next step."""
        if signal.aborted:
            return
        self.requests.append(request)
        if self._played >= len(self._steps):
            yield Failure(
                AssertionError(
                    f"ScriptedModel was called {len(self.requests)} times but has only "
                    f"{len(self._steps)} steps. The last message: {request.messages[-1:]!r:.300}."
                )
            )
            return
        step = self._steps[self._played]
        self._played += 1
        try:
            pieces = list(self._pieces(step, request))
        except Exception as problem:  # noqa: BLE001 - told as the terminal event
            yield Failure(problem)
            return
        for piece in pieces:
            if isinstance(piece, Gate):
                await piece.pass_through(signal)
                continue
            # A real model suspends between deltas; a script that never did would hide races.
            await asyncio.sleep(0)
            if signal.aborted:
                return
            yield piece
            if isinstance(piece, Finish | Failure):
                return

    def _pieces(self, step: Step, request: ModelRequest) -> Iterable[ModelEvent | Gate]:
        if callable(step):
            step = _checked(step(request))
        pieces = cast("Sequence[Piece]", [step] if isinstance(step, str) else step)
        made_calls = False
        for index, piece in enumerate(pieces):
            made_calls = made_calls or isinstance(piece, Call | ToolCall)
            yield from self._expand(piece, index)
        reason: FinishReason = "tool-calls" if made_calls else "stop"
        yield Finish(reason=reason, raw_reason=reason, usage=DEFAULT_USAGE, model_id=self._model_id)

    def _expand(self, piece: Piece, index: int) -> Iterable[ModelEvent | Gate]:
        match piece:
            case str():
                yield from _text_events(f"txt-{index}", text(piece))
            case Text():
                yield from _text_events(f"txt-{index}", piece)
            case Reasoning():
                yield ReasoningStart(f"rsn-{index}")
                yield from (ReasoningDelta(f"rsn-{index}", delta) for delta in piece.deltas)
                yield ReasoningEnd(f"rsn-{index}", piece.provider_metadata)
            case Call():
                self._calls += 1
                yield from _call_events(piece, piece.id or f"call-{self._calls}")
            case _:
                yield piece


def _checked(step: Any) -> Any:
    """The step; a piece alone is a step of one, and an exception a call that fails with it."""
    if isinstance(step, str) or callable(step):
        return step
    if isinstance(step, Exception):
        return [error(step)]
    if isinstance(step, _PIECES):
        return [step]
    # Looked at before a turn plays it: there, it would be an error of the turn.
    if not isinstance(step, Iterable) or isinstance(step, bytes | Mapping):
        raise TypeError(f"{step!r} is no step of a script. {_SCRIPT}")
    pieces = list(cast("Iterable[Any]", step))
    for piece in pieces:
        if not isinstance(piece, (str, *_PIECES)):
            raise TypeError(f"A scripted step cannot hold {piece!r}. {_SCRIPT}")
    return pieces


def _text_events(part_id: str, part: Text) -> Iterable[ModelEvent]:
    yield TextStart(part_id)
    yield from (TextDelta(part_id, delta) for delta in part.deltas)
    yield TextEnd(part_id)


def _call_events(piece: Call, call_id: str) -> Iterable[ModelEvent]:
    yield ToolInputStart(call_id, piece.tool_name)
    yield from (ToolInputDelta(call_id, delta) for delta in piece.deltas)
    yield ToolCall(call_id, piece.tool_name, "".join(piece.deltas))


def _split(deltas: tuple[str, ...]) -> tuple[str, ...]:
    if len(deltas) != 1:
        return deltas
    return tuple(cast("list[str]", _WORDS.findall(deltas[0])))
