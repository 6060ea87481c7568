"""May a call run? Problems, earlier results, approval, then `before_tool_call` (spec/02 §5.8,
§9.10).

The verdict is a tagged value: `Ready`, `Settled` with a result that needs no run, `Waiting` for a
person or a client, or `Changed` if the code has changed since the model made the call. Nothing has
run and nothing is claimed when it is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Literal, TypeAlias, assert_never, cast

import msgspec

from thinkwell.core import json
from thinkwell.core.errors import (
    DisabledToolError,
    ToolChangedError,
    ToolError,
    ToolInputError,
    ToolOutcomeUnknownError,
    ToolOutputError,
    UnknownToolError,
)
from thinkwell.core.user_code import raised_in
from thinkwell.hooks.answers import Allow, Block, Fail, Substitute, ToolDecision
from thinkwell.hooks.contexts import ToolCallContext, ToolOutcome
from thinkwell.hooks.dispatch import HookFailedError
from thinkwell.journal.approvals import hash_of_input
from thinkwell.journal.joined_writes import CallWrites
from thinkwell.journal.ledger import LedgerRow
from thinkwell.messages.message import BUDGET_TOOL
from thinkwell.tools.changed_schema import what_changed
from thinkwell.tools.execute import approval_required, check_input
from thinkwell.tools.scope import Scope
from thinkwell.tools.tool import Tool
from thinkwell.turn.run.approval import (
    Question,
    ask_rules,
    check_input_hash,
    check_receipt,
    make_question,
)
from thinkwell.turn.run.budgeting import budget_tool
from thinkwell.turn.run.journal_events import note_decision
from thinkwell.turn.run.pending_call import PendingCall, disabled_tool, is_disabled, is_dynamic
from thinkwell.turn.run.running import RunningTurn
from thinkwell.turn.run.step import Step
from thinkwell.turn.run.tool_context import tool_context

REPEATABLE = ("pure", "idempotent", "tx")
"""Effects of calls that may run again when they were cut: a `tx` call that has no result has
written nothing.
"""
TOOL_FAILED = "The tool failed."
POLICY_ERROR = "The call was stopped by an error in a policy check, so the tool did not run."


class Ready(msgspec.Struct, frozen=True):
    """The call may run."""

    tool: Tool
    input: dict[str, Any]
    value: Any
    """The validated arguments the handler gets."""


class Waiting(msgspec.Struct, frozen=True):
    """The call waits for a person, who is asked a question, or for the client (no question)."""

    question: Question | None = None


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
    open: bool = False
    """Nobody knows yet what came of it: its row in the ledger stays open."""
    checked: bool = False
    """Whether the hooks that may hide something have seen it."""
    policy: str | None = None
    """The policy check that raised `error`, if one did."""
    writes: CallWrites | None = None
    """What a `tx` tool has written, to be stored with this result."""

    @property
    def error_text(self) -> str | None:
        """The error as the model reads it."""
        if self.error is None:
            return None
        return self.text or json.error_text(self.error)


class Changed(msgspec.Struct, frozen=True):
    """The call was made for another tool than the one there is now, so it does not run."""

    error: ToolError
    """Says what is different."""
    tool: Tool | None = None
    """What its tool has become; None if there is none of that name."""


Prepared: TypeAlias = Ready | Settled | Waiting | Changed


async def prepare(turn: RunningTurn, step: Step, call: PendingCall) -> Prepared:
    """Decide about one call."""
    tool, _ = find_tool(turn, step, call.tool_name)
    if tool is None and call.tool_name == BUDGET_TOOL:
        tool = budget_tool(turn, call)
    if call.ledger is not None and call.ledger.settled:
        return from_ledger(tool, call.ledger)
    if call.shown is not None or call.receipt is not None:
        changed = _changed(turn, step, call, tool)
        if changed is not None:
            return changed
    if call.problem is not None or tool is None:
        problem = call.problem or UnknownToolError(call.tool_name, list(step.tools))
        outcome = "unknown" if isinstance(problem, UnknownToolError) else "invalid"
        raw = call.raw_input or call.input
        return Settled(outcome=outcome, input=raw, tool=tool, error=problem)
    if call.ledger is not None and after_cut(call.ledger.effect, tool) == "unknown":
        return unknown_outcome(tool.name, call.input, tool=tool)
    if (outdated := check_receipt(tool, call)) is not None:
        return Changed(outdated, tool)
    try:
        parsed = check_input(tool, call.input)
    except ToolInputError as error:
        return Settled(outcome="invalid", input=call.input, tool=tool, error=error)
    if tool.is_client:
        return Waiting()
    return await _ask_leave(turn, step, call, Ready(tool, parsed.raw, parsed.value))


async def _ask_leave(turn: RunningTurn, step: Step, call: PendingCall, ready: Ready) -> Prepared:
    """A rule or a person, then the hooks: what was allowed is what may run, and nothing else."""
    tool, allowed = ready.tool, call.approved
    if not allowed and tool.needs_approval is not False and call.ledger is None:
        # What is claimed was allowed before, and is only run again.
        asked = await _ask_approval(turn, step, call, ready)
        if isinstance(asked, Settled | Waiting):
            return asked
        allowed = asked
    prepared = await _ask_hooks(turn, step, call, tool)
    if allowed and isinstance(prepared, Ready):
        changed = check_input_hash(hash_of_input(call.input), prepared.input)
        if changed is not None:
            return Settled(outcome="invalid", input=prepared.input, tool=tool, error=changed)
    return prepared


def find_tool(turn: RunningTurn, step: Step, name: str) -> tuple[Tool | None, Scope | None]:
    """The tool and the scope that brought it. A disabled tool is found too."""
    found = turn.parts.scopes.find_tool(name)
    tool = step.tools.get(name) or disabled_tool(turn, step, name)
    if found is None and name in step.from_scopes:
        tool = None  # its scope is gone
    return tool, found.scope if found is not None and found.tool is tool else None


def is_dynamic_here(turn: RunningTurn, step: Step, name: str) -> bool:
    """`is_dynamic` of a tool that a step calls."""
    tool, _ = find_tool(turn, step, name)
    return is_dynamic(turn.parts, turn.record, name, tool, unknown=tool is None)


def from_ledger(tool: Tool | None, row: LedgerRow) -> Settled:
    """The result that a call has: it never runs again, whatever has become of its tool."""
    error = None if row.error is None else ToolError(row.error)
    outcome = cast("ToolOutcome", row.outcome or "executed")
    if row.outcome == "late":  # it ended after it was left behind, before a crash
        outcome = "executed" if error is None else "errored"
    # The ledger holds what the hooks left of it; they have seen it once.
    return Settled(
        outcome=outcome, input=row.input, tool=tool, output=row.output, error=error, checked=True
    )


def after_cut(claimed: str, tool: Tool) -> Literal["run", "ask", "unknown"]:
    """What becomes of a call that was cut while it ran (spec/04 §15.1).

    What it may have done is what its effect said when it was `claimed`; whether that may be had
    twice is up to the tool as it is now. The code may have changed in between.
    """
    if claimed in ("pure", "tx"):
        return "run"  # nothing has happened
    if claimed == "idempotent" and tool.effect in ("pure", "idempotent"):
        return "run"
    return "unknown" if tool.reconcile is None else "ask"


def _changed(turn: RunningTurn, step: Step, call: PendingCall, tool: Tool | None) -> Changed | None:
    """Whether the call was made for a tool that is gone, or reads the input differently now."""
    if tool is None:
        return Changed(ToolChangedError(call.tool_name, available=list(step.tools)))
    if call.shown is None or (turn.record.declares(call.tool_name) and tool.is_client):
        return None  # a client's own tool: the turn still has the schema it came with
    change = what_changed(call.shown, tool.input_schema, call.input)
    return None if change is None else Changed(ToolChangedError(tool.name, change), tool)


def unknown_outcome(
    name: str, call_input: dict[str, Any], *, tool: Tool | None, earlier: bool = False
) -> Settled:
    """The tool was cut off while it ran, now or in an `earlier` call, and may not be repeated."""
    error = ToolOutcomeUnknownError(name, earlier=earlier)
    return Settled(outcome="errored", input=call_input, tool=tool, error=error, open=True)


async def _ask_approval(
    turn: RunningTurn, step: Step, call: PendingCall, ready: Ready
) -> Settled | Waiting | bool:
    """Whether a person must allow the call first; else whether a rule has allowed it.

    A predicate that raises keeps it from running.
    """
    tool = ready.tool
    try:
        if not await approval_required(tool, ready.value, tool_context(turn, step, call, "")):
            return False
    except Exception as error:  # noqa: BLE001 - in doubt, do not run
        return _policy_error(turn, call, tool, error)
    said = await ask_rules(turn, tool, call)
    return said.allowed or Waiting(make_question(turn, tool, call, said.note))


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
        scope=find_tool(turn, step, call.tool_name)[1],
        phase="approved" if call.approved else "step",
        dynamic=is_dynamic_here(turn, step, call.tool_name),
    )
    current: Mapping[str, Any] = call.input
    try:
        decision, current = await turn.parts.hooks.before_tool_call(
            context,
            lambda value: check_input(tool, json.to_jsonable(dict(value))).raw,
            partial(note_decision, turn, "before_tool_call", call_id=call.call_id),
        )
        checked = check_input(tool, dict(current))
    except ToolInputError as error:
        return Settled(outcome="invalid", input=dict(current), tool=tool, error=error)
    except HookFailedError:
        raise
    except Exception as error:  # noqa: BLE001 - a policy that fails keeps the tool from running
        return _policy_error(turn, call, tool, error)
    return _decided(turn, step, decision, Ready(tool, checked.raw, checked.value))


def _decided(turn: RunningTurn, step: Step, decision: ToolDecision, ready: Ready) -> Prepared:
    tool = ready.tool
    match decision:
        case Allow():
            disabled: DisabledToolError | None = is_disabled(turn, step, tool.name)
            if disabled is not None:
                return Settled(outcome="disabled", input=ready.input, tool=tool, error=disabled)
            return ready
        case Block(reason=reason):
            output = reason or f"The tool {tool.name!r} may not be used now."
            return Settled(outcome="blocked", input=ready.input, tool=tool, output=output)
        case Substitute(output=output):
            return _substituted(tool, ready.input, output)
        case Fail(error=error):
            failure = error if isinstance(error, Exception) else ToolError(error)
            return Settled(outcome="failed", input=ready.input, tool=tool, error=failure)
        case _:
            assert_never(decision)


def _substituted(tool: Tool, call_input: dict[str, Any], output: Any) -> Settled:
    try:
        plain = json.to_jsonable(output)
    except ValueError as error:
        problem = ToolOutputError(f"The substitute for tool {tool.name!r} is no JSON: {error}")
        return Settled(outcome="errored", input=call_input, tool=tool, error=problem)
    return Settled(outcome="substituted", input=call_input, tool=tool, output=plain)


def kept_inside(turn: RunningTurn, settled: Settled) -> Settled:
    """Model and clients read what a tool raised only if it was meant for them."""
    error = settled.error
    if error is None or isinstance(error, ToolError):
        return settled
    if turn.parts.agent.expose_errors or settled.text is not None:
        return settled
    return msgspec.structs.replace(settled, text=TOOL_FAILED)


def _policy_error(
    turn: RunningTurn, call: PendingCall, tool: Tool | None, error: Exception
) -> Settled:
    # Not logged here: its text may be for nobody, and `on_tool_error` has not seen it yet.
    text = None if turn.parts.agent.expose_errors else POLICY_ERROR
    return Settled(
        outcome="errored",
        input=call.input,
        tool=tool,
        error=error,
        text=text,
        policy=raised_in(error) or "before_tool_call",
    )
