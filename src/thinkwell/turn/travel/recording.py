"""The world of a replay: the recorded model, the recorded tools, and the crashes and stops between.

A replayed turn runs the one loop there is. What it meets from outside comes from here: the model
says what it said, a tool gives what it gave, in the order in which clients were told; where the
process died or somebody stopped the turn, `cuts` says so and nothing goes on until that has
happened again. What the code of today would have sent is compared on the way.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal, TypeAlias, cast

import msgspec

from thinkwell.core import json
from thinkwell.core.errors import ModelError, ToolError, TurnError
from thinkwell.core.signal import AbortSignal
from thinkwell.hooks.contexts import ToolOutcome
from thinkwell.journal.events import encode_event
from thinkwell.messages.chunks import Chunk, tool_output
from thinkwell.models.base import Bookmark, Failure, Model, ModelEvent, ModelRequest, ToolCall
from thinkwell.models.resolve import ModelLike
from thinkwell.tools.output import Output
from thinkwell.turn.ask.run_options import Options
from thinkwell.turn.end.ending import GAVE_UP, StalledError
from thinkwell.turn.recorded_requests import LostRequest, RecordedRequest, requests_in
from thinkwell.turn.run.growth import OutsideAnswer
from thinkwell.turn.run.pending_call import PendingCall, introduction
from thinkwell.turn.run.recorded_calls import from_row, recorded_call
from thinkwell.turn.run.running import RunningTurn, current_turn
from thinkwell.turn.run.tool_policy import Ready, Settled
from thinkwell.turn.travel.case import Case
from thinkwell.turn.travel.differences import Difference, compare_requests
from thinkwell.turn.travel.recorded_model import ReplayPool
from thinkwell.turn.travel.script import ScriptedCall, TurnScript, model_events, read_script

Tools: TypeAlias = Literal["recorded", "deny", "live"]
"""What a replay does with tools: their recorded results, an error for each call, or they run."""
Cut: TypeAlias = Literal["crash", "stop"]
NOT_RECORDED = "This call is not in the record of the turn, so it was not run."
DENIED = "Tools do not run in this replay."


class TurnRecording:
    """What one replay plays and what it has found; `Recording` for the turn."""

    def __init__(
        self,
        case: Case,
        requests: Sequence[RecordedRequest | LostRequest],
        *,
        tools: Tools = "recorded",
        model: ModelLike = None,
        output: Output[Any] | None = None,
    ) -> None:
        self.case = case
        self.script: TurnScript = read_script(case.journal)
        self.requests = requests
        self.tools = tools
        self.live_model = model is not None
        """Whether another model answers: then only results are recorded ones."""
        kept = (r.request for r in requests if isinstance(r, RecordedRequest))
        native = any(r.response_format is not None for r in kept)
        self.models = ReplayPool(self.play, native=native, instead=model)
        self._output = output
        self.differences: list[Difference] = []
        self.cuts: asyncio.Queue[Cut] = asyncio.Queue()
        """Where the process died or somebody stopped the turn: it waits until that has happened."""
        self.played = 0
        """How many model calls were played."""
        self.now = case.turn.started_at or case.turn.created_at
        self._flying: dict[str, asyncio.Future[None] | None] = {}
        self._blocked: set[str] = set()
        self._is_cut = False
        self._last_attempt = 0

    @classmethod
    async def of(cls, case: Case, **options: Any) -> TurnRecording:
        """The recording of a case."""
        requests = await requests_in(case.journal, case.turn.message_id, case)
        return cls(case, requests, **options)

    # The model

    async def play(
        self, model: Model, request: ModelRequest, signal: AbortSignal
    ) -> AsyncIterator[ModelEvent]:
        """Say what the model said in its next call."""
        turn = _current()
        if turn.record.request_id != self.case.turn.request_id:
            with signal.future() as stop:  # what goes on with its reply is another turn
                await stop
            return
        call = self._next_call(turn)
        if call is None:
            if self.script.is_last(turn.record.attempt) and not self._was_stopped:
                yield self._one_more(turn)
                return
            await self._cut(turn, signal)
            return
        self.now = call.at
        if not call.resumed:
            self._compare(call, model, request)
        self.played += 1
        if self._is_taken_up():
            yield Bookmark({"call": self.played})
        later = self.script.chunks[call.start + len(call.chunks) :]
        for event in model_events(call, later):
            self._take_answers(turn)
            await asyncio.sleep(0)
            yield event
        if call.answer is not None and request.tools:
            yield ToolCall("answer", request.tools[-1].name, call.answer)
        self.now = call.ended_at or self.now
        if call.end == "cut":
            await self._cut(turn, signal)
            return
        self._take_answers(turn)
        yield self._end(call)

    def _next_call(self, turn: RunningTurn) -> ScriptedCall | None:
        """The next call of the script, if it belongs to the attempt that runs."""
        if self.played >= len(self.script.calls):
            return None
        call = self.script.calls[self.played]
        return call if call.attempt <= turn.record.attempt else None

    def _is_taken_up(self) -> bool:
        """Whether the provider kept the answer that plays now, and gave the rest later."""
        calls = self.script.calls
        return self.played < len(calls) and calls[self.played].resumed

    def _end(self, call: ScriptedCall) -> ModelEvent:
        if call.finish is not None:
            return call.finish
        gave_up = call is self.script.calls[-1] and self.case.turn.error == GAVE_UP
        if call.end == "stalled" or gave_up:
            raise StalledError(call.error, 0.0)
        provider = call.provider
        return Failure(ModelError(call.error, provider=provider, retryable=call.end == "retried"))

    def _compare(self, call: ScriptedCall, model: Model, request: ModelRequest) -> None:
        recorded = self.requests[sum(not c.resumed for c in self.script.calls[: self.played])]
        if isinstance(recorded, LostRequest):
            self._differ(where="request", step=call.step, recorded=recorded.problem)
            return
        now = RecordedRequest(
            step=call.step,
            provider=model.provider,
            model=model.model_id,
            at=call.at,
            request=request,
        )
        headers = "headers" not in self.case.left_out
        self.differences += compare_requests(recorded, now, headers=headers)

    def _one_more(self, turn: RunningTurn) -> Failure:
        made = len(self.script.calls)
        self._differ(
            where="calls", step=turn.step_number, recorded=f"{made} model calls", now="one more"
        )
        return Failure(ModelError("The recording has no more model calls.", provider="recorded"))

    # Tools

    def expect(self, call_ids: Sequence[str]) -> None:
        """See `Recording`."""
        for call_id in call_ids:
            self._flying.setdefault(call_id, None)

    @asynccontextmanager
    async def lane(self, call_id: str) -> AsyncGenerator[None]:
        """See `Recording`. A call that had not begun when the process died stops here."""
        self._flying.setdefault(call_id, None)
        try:
            turn = _current()
            if self._never_came(turn, call_id):
                await self._block(turn, call_id)
            yield
        finally:
            self._flying.pop(call_id, None)
            self._blocked.discard(call_id)
            self._release()

    async def in_order(self, call_id: str) -> None:
        """See `Recording`."""
        if self.live_model:
            return
        self._take_answers(_current())
        await self._wait(call_id)

    def _never_came(self, turn: RunningTurn, call_id: str) -> bool:
        """Whether the process died before it got to this call."""
        attempt = turn.record.attempt
        if self.live_model or self.script.is_last(attempt):
            return False
        told = self.script.next_place(call_id, len(turn.log.bodies))
        came = told is not None and told < self.script.stop_of(attempt)
        return not came and not self.script.began(call_id, attempt)

    async def _wait(self, call_id: str) -> None:
        """Until every call that runs beside this one waits too, and this one is told next."""
        waiting = asyncio.get_running_loop().create_future()
        self._flying[call_id] = waiting
        self._release()
        await waiting

    def _release(self) -> None:
        """Let the next call go on, once all that run side by side wait."""
        waiting = {i: w for i, w in self._flying.items() if w is not None}
        if not waiting or len(waiting) < len(self._flying):
            return
        free = [call_id for call_id in waiting if call_id not in self._blocked]
        if free:
            turn = _current()
            first = min(free, key=lambda i: self._place(i, len(turn.log.bodies)))
            self._flying[first] = None
            waiting[first].set_result(None)
        elif self._blocked:
            self._tell_cut(_current())

    def _place(self, call_id: str, length: int) -> float:
        place = self.script.next_place(call_id, length)
        return float("inf") if place is None else place

    async def outcome(self, turn: RunningTurn, call: PendingCall, ready: Ready) -> Settled | None:
        """See `Recording`."""
        if self.tools == "live":
            return None
        if self.tools == "deny":
            return _refused(ready, DENIED)
        if self.live_model:
            row = recorded_call(turn, call, ready.input, self.case.calls)
            return _refused(ready, NOT_RECORDED) if row is None else from_row(ready, row)
        return await self._recorded(turn, call, ready)

    async def _recorded(self, turn: RunningTurn, call: PendingCall, ready: Ready) -> Settled:
        call_id, attempt = call.call_id, turn.record.attempt
        self._compare_input(call, ready)
        if call_id not in self.script.told:
            return await self._without_end(turn, call, ready)
        stop = self.script.stop_of(attempt)
        while True:
            place = self.script.next_place(call_id, len(turn.log.bodies))
            interrupted = self.script.outcomes.get(call_id) == "aborted" and not turn.signal.aborted
            if place is None or place >= stop or interrupted:
                return await self._without_end(turn, call, ready)
            chunk = self.script.chunks[place]
            if chunk.get("preliminary") is not True:
                return self._settled(ready, call_id, chunk)
            await self._wait(call_id)
            for each in introduction(turn, call):
                await turn.emit(each)
            await turn.emit(tool_output(call_id, chunk.get("output"), preliminary=True))

    async def _without_end(self, turn: RunningTurn, call: PendingCall, ready: Ready) -> Settled:
        """The tool ran when the process died, when somebody stopped the turn, or it ended that."""
        call_id = call.call_id
        if not self.script.is_last(turn.record.attempt) or self._was_stopped:
            await self._block(turn, call_id)
            place = self.script.next_place(call_id, len(turn.log.bodies))
            if place is not None:
                return self._settled(ready, call_id, self.script.chunks[place])
            return _refused(ready, f"Stopped: {turn.signal.reason}")
        if self.case.turn.status == "error":
            raise TurnError(self.case.turn.error or "")
        self._differ(
            where="tool",
            step=turn.step_number,
            path=call.tool_name,
            recorded="did not run",
            now=ready.input,
        )
        return _refused(ready, NOT_RECORDED)

    def _settled(self, ready: Ready, call_id: str, chunk: Chunk) -> Settled:
        outcome = self.script.outcomes.get(call_id, "executed")
        text = chunk.get("errorText")
        # What was recorded has been through the hooks that may hide something.
        return Settled(
            outcome=cast("ToolOutcome", outcome),
            input=ready.input,
            tool=ready.tool,
            output=chunk.get("output"),
            error=None if text is None else ToolError(str(text)),
            checked=True,
        )

    def _compare_input(self, call: PendingCall, ready: Ready) -> None:
        for row in self.case.calls:
            same = json.canonical(row.input) == json.canonical(ready.input)
            if row.call_id == call.call_id and not same:
                path = f"{call.tool_name} ({call.call_id}).input"
                self._differ(
                    where="tool", step=row.step, path=path, recorded=row.input, now=ready.input
                )

    # Crashes, stops, and what came from outside

    async def _block(self, turn: RunningTurn, call_id: str) -> None:
        """Nothing came of this call before the cut: wait for that."""
        await turn.parts.commits.flush()
        self._blocked.add(call_id)
        with turn.signal.future() as stop:
            self._flying[call_id] = asyncio.get_running_loop().create_future()
            self._release()
            await stop
        self._blocked.discard(call_id)
        self._flying[call_id] = None

    async def _cut(self, turn: RunningTurn, signal: AbortSignal) -> None:
        await turn.parts.commits.flush()
        self._tell_cut(turn)
        with signal.future() as stop:
            await stop

    def _tell_cut(self, turn: RunningTurn) -> None:
        if not self._is_cut:  # lanes that are torn down leave one after the other
            self._is_cut, self._last_attempt = True, turn.record.attempt
            self.cuts.put_nowait("stop" if self._was_stopped_in(turn) else "crash")

    @property
    def cut_is_last(self) -> bool:
        """Whether nothing was recorded behind the cut but the end of the turn."""
        return self._last_attempt >= len(self.script.attempts)

    def go_on(self) -> None:
        """The cut has happened again: the next attempt begins."""
        self._is_cut = False
        self._flying.clear()
        self._blocked.clear()

    @property
    def _was_stopped(self) -> bool:
        return self.case.turn.status == "aborted"

    def _was_stopped_in(self, turn: RunningTurn) -> bool:
        return self._was_stopped and self.script.is_last(turn.record.attempt)

    def _take_answers(self, turn: RunningTurn) -> None:
        """Apply what came from outside at this place of the stream."""
        answers = self.script.answers
        while answers and answers[0][0] <= len(turn.log.bodies):
            _, answered = answers.pop(0)
            turn.take_answer(msgspec.convert(msgspec.to_builtins(answered), OutsideAnswer))
            turn.note("answer", encode_event(answered))

    def options(self, recalled: Options) -> Options:
        """See `Recording`. A row keeps the schema of an output, not the type it was made of."""
        if self._output is None:
            return recalled
        return msgspec.structs.replace(recalled, output=self._output)

    def approval_id(self, call_id: str) -> str | None:
        """See `Recording`."""
        return self.script.approval_id(call_id)

    def steered(self, steps: int) -> bool:
        """See `Recording`."""
        return self.case.turn.stop_reason == "steered" and steps >= self.case.turn.steps

    def _differ(self, **about: Any) -> None:
        self.differences.append(Difference(**about))


def _refused(ready: Ready, text: str) -> Settled:
    return Settled(
        outcome="failed", input=ready.input, tool=ready.tool, error=ToolError(text), checked=True
    )


def _current() -> RunningTurn:
    turn = current_turn.get()
    if turn is None:
        raise RuntimeError("a recording plays only inside a turn")
    return turn
