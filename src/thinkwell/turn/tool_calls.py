"""Tool calls of one step: prepare, execute, settle (spec/02 §4.2–4.3, §5.8–5.10, §7.3–7.7).

Calls run in parallel; each is a chain of its own. `prepare` gives `Ready` or `Settled`; a ready
call is claimed in the ledger, committed, and only then executed; `settle` tells `after_tool_call`
and commits the ledger row together with the output chunk. After a crash the same functions run:
the ledger says which calls have a result, and which began and may or may not be repeated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

import msgspec

from thinkwell.core import json
from thinkwell.core.errors import (
    AbortTurn,
    StoreError,
    ToolError,
    ToolInputError,
    ToolOutcomeUnknownError,
    ToolOutputError,
    UnknownToolError,
)
from thinkwell.core.tasks import is_cancelled, run_together
from thinkwell.hooks.answers import Allow, Block, Substitute
from thinkwell.hooks.contexts import ToolCallContext, ToolOutcome, ToolResultContext
from thinkwell.hooks.read_only import read_only_copy
from thinkwell.journal.crash_points import crash_here
from thinkwell.journal.ledger import (
    Claim,
    LedgerRow,
    claim_call,
    idempotency_key,
    is_open,
    settle_call,
)
from thinkwell.messages.chunks import Chunk, tool_error, tool_output
from thinkwell.messages.message import Part, tool_name, tool_parts
from thinkwell.models.base import FinishReason, ToolCall
from thinkwell.tools.context import ToolContext
from thinkwell.tools.execute import check_input, parse_input, run_tool
from thinkwell.tools.tool import Tool
from thinkwell.turn.interrupt import interruptible
from thinkwell.turn.running import RunningTurn
from thinkwell.turn.step import Step
from thinkwell.turn.step_result import has_result

REPEATABLE = ("pure", "idempotent")
POLICY_ERROR = "The call was stopped by an error in a policy check, so the tool did not run."
INPUT_CUT = "The process stopped before the input of this call was complete. It was not run."


class PendingCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call of the model that has no result yet, or a problem that will be its result."""

    call_id: str
    tool_name: str
    input: dict[str, Any]
    provider_metadata: dict[str, Any] | None = None
    problem: ToolError | None = None
    """Why it cannot run: an unknown tool, or arguments that do not fit."""
    raw_input: Any = None
    """What the model wrote, when it could not be read."""
    ledger: LedgerRow | None = None
    """What an earlier attempt recorded."""
    settled: bool = False
    """An earlier attempt has told its result already."""

    def input_chunk(self) -> Chunk:
        """Says that the input is complete."""
        chunk: Chunk = {
            "type": "tool-input-available",
            "toolCallId": self.call_id,
            "toolName": self.tool_name,
            "input": self.input,
        }
        if self.provider_metadata is not None:
            chunk["providerMetadata"] = self.provider_metadata
        return chunk

    @classmethod
    def from_part(cls, part: Part, ledger: LedgerRow | None) -> PendingCall:
        """A call read back after a crash."""
        cut = part["state"] == "input-streaming"
        return cls(
            call_id=part["toolCallId"],
            tool_name=tool_name(part),
            input=part.get("input") or {},
            provider_metadata=part.get("callProviderMetadata"),
            problem=ToolError(INPUT_CUT) if cut else None,
            ledger=ledger,
            settled=has_result(part),
        )


class Ready(msgspec.Struct, frozen=True):
    """The call may run."""

    tool: Tool
    input: dict[str, Any]
    value: Any
    """The validated arguments the handler gets."""


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """The call has its result."""

    outcome: ToolOutcome
    input: Any
    tool: Tool | None = None
    output: Any = None
    error: BaseException | None = None
    text: str | None = None
    """What model and clients read instead of the error's own text."""
    duration_ms: float = 0.0

    @property
    def error_text(self) -> str | None:
        """The error as the model reads it."""
        if self.error is None:
            return None
        return self.text or json.error_text(self.error)


Prepared: TypeAlias = Ready | Settled


def read_call(event: ToolCall, tools: Mapping[str, Tool]) -> PendingCall:
    """Check a call the model made: does the tool exist, do the arguments fit (spec/02 §9.5–9.7)."""
    call = PendingCall(
        call_id=event.tool_call_id,
        tool_name=event.tool_name,
        input={},
        provider_metadata=event.provider_metadata,
        raw_input=event.input,
    )
    tool = tools.get(event.tool_name)
    if tool is None:
        problem: ToolError = UnknownToolError(event.tool_name, list(tools))
        return msgspec.structs.replace(call, problem=problem)
    try:
        return msgspec.structs.replace(call, input=parse_input(tool, event.input).raw)
    except ToolInputError as error:
        return msgspec.structs.replace(call, problem=error)


async def run_tool_calls(
    turn: RunningTurn, step: Step, calls: Sequence[PendingCall], reason: FinishReason
) -> None:
    """Give every call of the step its result.

    A stop while tools run settles them as aborted, then unwinds.
    """
    waiting = [call for call in calls if not call.settled]
    if not waiting:
        return
    await turn.parts.commits.flush()
    crash_here("c6")
    runnable = reason in ("stop", "tool-calls", "other")
    await run_together(
        *(
            _run_call(turn, step, call) if runnable else _refuse(turn, step, call, reason)
            for call in waiting
        )
    )
    turn.signal.throw_if_aborted()


async def _run_call(turn: RunningTurn, step: Step, call: PendingCall) -> None:
    began = turn.parts.clock.monotonic()
    prepared = await _prepare(turn, step, call)
    if isinstance(prepared, Ready):
        prepared = await _execute(turn, step, call, prepared)
    took = (turn.parts.clock.monotonic() - began) * 1000
    await _settle(turn, step, call, msgspec.structs.replace(prepared, duration_ms=took))


async def _refuse(turn: RunningTurn, step: Step, call: PendingCall, reason: str) -> None:
    error = ToolError(f"Not executed: the model's output ended with {reason!r}.")
    settled = Settled(
        outcome="invalid", input=call.input, tool=step.tools.get(call.tool_name), error=error
    )
    await _settle(turn, step, call, settled)


async def _prepare(turn: RunningTurn, step: Step, call: PendingCall) -> Prepared:
    """Problems, earlier results, then the policy of `before_tool_call`."""
    tool = step.tools.get(call.tool_name)
    if call.problem is not None or tool is None:
        problem = call.problem or UnknownToolError(call.tool_name, list(step.tools))
        outcome = "unknown" if isinstance(problem, UnknownToolError) else "invalid"
        return Settled(
            outcome=outcome, input=call.raw_input or call.input, tool=tool, error=problem
        )
    if call.ledger is not None:
        recorded = _from_ledger(tool, call, call.ledger)
        if recorded is not None:
            return recorded
    return await _ask_hooks(turn, step, call, tool)


def _from_ledger(tool: Tool, call: PendingCall, row: LedgerRow) -> Settled | None:
    """What an earlier attempt left (spec/04 §15.1). None means: run it (again)."""
    if row.settled:
        error = None if row.error is None else ToolError(row.error)
        return Settled(
            outcome=row.outcome or "executed",
            input=row.input,
            tool=tool,
            output=row.output,
            error=error,
        )
    return None if tool.effect in REPEATABLE else _unknown(tool, call.input)


def _unknown(tool: Tool, call_input: dict[str, Any]) -> Settled:
    error = ToolOutcomeUnknownError(tool.name)
    return Settled(outcome="errored", input=call_input, tool=tool, error=error)


async def _ask_hooks(turn: RunningTurn, step: Step, call: PendingCall, tool: Tool) -> Prepared:
    context = ToolCallContext(
        **turn.hook_fields(),
        tool_call_id=call.call_id,
        tool_name=call.tool_name,
        input=call.input,
        original_input=call.input,
        step_number=step.number,
        messages=step.request.messages,
        provider_metadata=call.provider_metadata,
        tool=tool,
    )
    current: Mapping[str, Any] = call.input
    try:
        decision, current = await turn.parts.hooks.before_tool_call(
            context, lambda value: check_input(tool, json.to_jsonable(dict(value))).raw
        )
        checked = check_input(tool, dict(current))
    except ToolInputError as error:
        return Settled(outcome="invalid", input=dict(current), tool=tool, error=error)
    except Exception as error:  # noqa: BLE001 - a policy that fails keeps the tool from running
        text = None if turn.parts.agent.expose_errors else POLICY_ERROR
        return Settled(outcome="errored", input=call.input, tool=tool, error=error, text=text)
    match decision:
        case Allow():
            return Ready(tool, checked.raw, checked.value)
        case Block(reason=reason):
            output = reason or f"The tool {tool.name!r} may not be used now."
            return Settled(outcome="blocked", input=checked.raw, tool=tool, output=output)
        case Substitute(output=output):
            return _substituted(tool, checked.raw, output)


def _substituted(tool: Tool, call_input: dict[str, Any], output: Any) -> Settled:
    try:
        plain = json.to_jsonable(output)
    except ValueError as error:
        problem = ToolOutputError(f"The substitute for tool {tool.name!r} is no JSON: {error}")
        return Settled(outcome="errored", input=call_input, tool=tool, error=problem)
    return Settled(outcome="substituted", input=call_input, tool=tool, output=plain)


async def _execute(turn: RunningTurn, step: Step, call: PendingCall, ready: Ready) -> Settled:
    """Claim, then run."""
    tool = ready.tool
    if turn.signal.aborted:
        return Settled(outcome="aborted", input=ready.input, tool=tool, error=_aborted(turn))
    if tool.effect not in REPEATABLE and is_open(turn.ledger.values(), tool.name, ready.input):
        return _unknown(tool, ready.input)
    claim = Claim(
        call_id=call.call_id,
        tool_name=tool.name,
        input=ready.input,
        effect=tool.effect,
        idempotency_key=_key(turn, call, ready),
        step=step.number,
    )
    parts = turn.parts
    await parts.commits.run(
        parts.owner, lambda tx: claim_call(tx, turn.record, claim, now=parts.clock.now())
    )
    crash_here("c7")
    settled = await _run_handler(turn, step, ready, claim)
    crash_here("c8")
    return settled


async def _run_handler(turn: RunningTurn, step: Step, ready: Ready, claim: Claim) -> Settled:
    """Run the tool. Whatever it raises is its result."""
    tool = ready.tool
    context = ToolContext(
        tool_call_id=claim.call_id,
        tool_name=tool.name,
        messages=step.request.messages,
        abort_signal=turn.signal,
        step_number=step.number,
        request_id=turn.record.request_id,
        agent=turn.parts.agent_ref,
        idempotency_key=claim.idempotency_key,
    )

    async def preliminary(value: Any) -> None:
        await turn.emit(tool_output(claim.call_id, value, preliminary=True))

    try:
        with interruptible(turn.signal, grace=turn.parts.agent.cancel_grace):
            output = await run_tool(tool, ready.value, context, preliminary)
    except StoreError:
        raise
    except asyncio.CancelledError as error:
        if is_cancelled():
            raise
        return Settled(outcome="errored", input=ready.input, tool=tool, error=error)
    except AbortTurn:
        if not turn.signal.aborted:
            raise  # the tool itself ends the turn
        return Settled(outcome="aborted", input=ready.input, tool=tool, error=_aborted(turn))
    except Exception as error:  # noqa: BLE001 - what a tool raises goes to the model
        outcome = "aborted" if turn.signal.aborted else "errored"
        return Settled(outcome=outcome, input=ready.input, tool=tool, error=error)
    return Settled(outcome="executed", input=ready.input, tool=tool, output=output)


async def _settle(turn: RunningTurn, step: Step, call: PendingCall, settled: Settled) -> None:
    """Tell `after_tool_call`; commit ledger row and output chunk together; then clients hear."""
    parts = turn.parts
    if parts.hooks.registry.hooks("after_tool_call"):
        await parts.hooks.observe(
            "after_tool_call",
            ToolResultContext(
                **turn.hook_fields(),
                tool_call_id=call.call_id,
                tool_name=call.tool_name,
                input=read_only_copy(settled.input),
                original_input=read_only_copy(
                    call.input if call.problem is None else call.raw_input
                ),
                step_number=step.number,
                messages=step.request.messages,
                tool=settled.tool,
                success=settled.error is None,
                outcome=settled.outcome,
                output=read_only_copy(settled.output),
                error=settled.error,
                duration_ms=settled.duration_ms,
            ),
        )
    chunk = _result_chunk(call, settled)
    await turn.show(chunk)

    async def store(tx: Any) -> None:
        if not isinstance(settled.error, ToolOutcomeUnknownError):
            await settle_call(
                tx,
                turn.record,
                call.call_id,
                outcome=settled.outcome,
                output=settled.output,
                error=settled.error_text,
                now=parts.clock.now(),
            )
        turn.record_chunk(chunk)
        parts.commits.note(turn.log)

    await parts.commits.run(parts.owner, store)


def _result_chunk(call: PendingCall, settled: Settled) -> Chunk:
    if settled.error_text is None:
        return tool_output(call.call_id, settled.output)
    if call.problem is not None:
        return {
            "type": "tool-input-error",
            "toolCallId": call.call_id,
            "toolName": call.tool_name,
            "input": call.raw_input if call.raw_input is not None else call.input,
            "errorText": settled.error_text,
        }
    return tool_error(call.call_id, settled.error_text)


def _key(turn: RunningTurn, call: PendingCall, ready: Ready) -> str:
    if call.ledger is not None:
        return call.ledger.idempotency_key
    same = [
        part
        for part in tool_parts(turn.fold.message)
        if has_result(part)
        and tool_name(part) == call.tool_name
        and part.get("input") == call.input
    ]
    return idempotency_key(turn.record.request_id, call.tool_name, ready.input, len(same) + 1)


def _aborted(turn: RunningTurn) -> ToolError:
    return ToolError(f"Stopped before it finished: {cast('str', turn.signal.reason)}")
