"""What a tool gave, before anybody sees it: `on_tool_result` and `on_tool_error` (spec/02 §5.9).

Every way a result can take goes through here first, and only what comes out is stored, sent, logged
or told: results and errors of the loop, values a tool shows while it runs, outcomes that are found
after a stop or a crash, answers of clients. A hook that fails withholds the value (§13.3). What is
replayed from the ledger has been here before it was written there.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import msgspec

from thinkwell.core import json
from thinkwell.core.errors import (
    AbortTurn,
    FailTurn,
    RedactionError,
    ToolError,
    ToolOutputError,
    ToolTimeoutError,
)
from thinkwell.core.turn_events import ToolFailed
from thinkwell.core.user_code import code_fields, log_failure
from thinkwell.hooks.contexts import CallInfo, ToolFailureContext, ToolSuccessContext, facts_of
from thinkwell.hooks.dispatch import HookFailedError, Recovered
from thinkwell.journal.turns import TurnRecord
from thinkwell.tools.tool import Tool, client_tool
from thinkwell.tools.truncation import limit_output
from thinkwell.turn.parts import Parts
from thinkwell.turn.run.journal_events import note_decision
from thinkwell.turn.run.pending_call import PendingCall, model_input
from thinkwell.turn.run.running import RunningTurn
from thinkwell.turn.run.tool_policy import Settled

log = logging.getLogger("thinkwell.tools")

_DEFECTS = (ToolOutputError, ToolTimeoutError)
WITHHELD = "The result was withheld, because a check of it failed."


class Checked(msgspec.Struct, frozen=True):
    """What may be told of a result or an error."""

    output: Any = None
    error: BaseException | None = None
    changed: bool = False
    """Whether a hook has changed it."""
    withheld: bool = False
    """Whether a hook failed, so that nothing of it may be told."""

    def text(self, *, exposed: bool) -> str | None:
        """What is read of the error."""
        if self.error is None:
            return None
        return json.error_text(self.error) if exposed or not self.withheld else WITHHELD


async def check_output(
    parts: Parts, facts: dict[str, Any], output: Any, *, preliminary: bool = False
) -> Checked:
    """Let the hooks look at a result. `facts` are the other fields of the context."""
    hooks = parts.hooks
    if not hooks.registry.hooks("on_tool_result"):
        return Checked(output)
    context = ToolSuccessContext(**facts, result=output, preliminary=preliminary)
    try:
        result = await hooks.on_tool_result(context)
        return Checked(_json(result), changed=result is not output)
    except (RedactionError, ToolOutputError) as error:
        hooks.report("on_tool_result", _hook_of(error, "on_tool_result"), error, context)
        return Checked(error=error, withheld=True)


async def check_error(parts: Parts, facts: dict[str, Any], error: BaseException) -> Checked:
    """Let the hooks look at an error; they may make a result of it."""
    hooks = parts.hooks
    if not hooks.registry.hooks("on_tool_error"):
        return Checked(error=error)
    context = ToolFailureContext(**facts, error=error)
    try:
        answer = await hooks.on_tool_error(context)
        if isinstance(answer, Recovered):
            checked = await check_output(parts, facts, _json(answer.result))
            return msgspec.structs.replace(checked, changed=True)
        return Checked(error=answer, changed=answer is not error)
    except (RedactionError, ToolOutputError) as failure:
        hooks.report("on_tool_error", _hook_of(failure, "on_tool_error"), failure, context)
        return Checked(error=failure, withheld=True)


async def check_beside(
    parts: Parts, facts: dict[str, Any], *, output: Any = None, error: BaseException | None = None
) -> Checked:
    """The same where no loop runs that a hook could end: then that withholds the value as well."""
    try:
        if error is None:
            return await check_output(parts, facts, output)
        return await check_error(parts, facts, error)
    except (AbortTurn, FailTurn, HookFailedError) as failure:
        event = "on_tool_result" if error is None else "on_tool_error"
        told = failure.error if isinstance(failure, HookFailedError) else _too_late(event, failure)
    parts.hooks.report(event, _hook_of(told, event), told)
    return Checked(error=ToolError(WITHHELD), withheld=True)


def _too_late(event: str, failure: BaseException) -> RedactionError:
    text = f"{type(failure).__name__} cannot end a turn here: the result came beside it."
    return RedactionError(event, text).with_traceback(failure.__traceback__)


async def check_settled(turn: RunningTurn, call: PendingCall, settled: Settled) -> Settled:
    """A call of the loop and what may be told of it."""
    if settled.checked:
        return settled
    parts, facts = turn.parts, facts_of_call(turn, call, settled)
    if settled.error is None:
        event, checked = "on_tool_result", await check_output(parts, facts, settled.output)
    else:
        event, checked = "on_tool_error", await check_error(parts, facts, settled.error)
    if checked.withheld:
        text = checked.text(exposed=parts.agent.expose_errors)
        return msgspec.structs.replace(
            settled, checked=True, outcome="errored", output=None, error=checked.error, text=text
        )
    if checked.changed and checked.error is None:
        # That it was changed, not what it was: it may be a secret.
        note_decision(turn, event, "", {"result": True}, call_id=call.call_id)
    return msgspec.structs.replace(
        settled,
        checked=True,
        output=limited(parts, checked.output) if settled.outcome == "executed" else checked.output,
        error=checked.error,
        text=settled.text if checked.error is settled.error else None,
    )


def report_tool_failure(
    turn: RunningTurn,
    call: PendingCall,
    error: BaseException,
    told: BaseException | None,
    *,
    stopped: bool = False,
) -> None:
    """A line and an event about a tool that raised, once the hooks have seen it: what they hide is
    in neither.

    The model's mistakes, and what a tool says on purpose with a `ToolError`, are no failures.
    """
    if isinstance(error, ToolError) and not isinstance(error, _DEFECTS):
        return
    if told is None or isinstance(told, RedactionError):
        return  # a hook made it a success, or has failed on it and has its own line
    turn.parts.bus.emit(
        ToolFailed,
        **turn.event_fields(),
        tool_call_id=call.call_id,
        tool_name=call.tool_name,
        error=told,
    )
    level = logging.WARNING if stopped else logging.ERROR
    about = {"tool": call.tool_name, "tool_call_id": call.call_id}
    log_failure(log, f"the tool {call.tool_name!r}", _as_told(error, told), about, level=level)


def report_policy_failure(call: PendingCall, settled: Settled, told: BaseException | None) -> None:
    """The same about a policy check that raised, so that the tool did not run."""
    code, error = settled.policy, settled.error
    if code is None or error is None or told is None or isinstance(told, RedactionError):
        return
    about = {**(code_fields(error) or {"hook": code}), "tool": call.tool_name}
    log_failure(log, code, _as_told(error, told), about)


def log_unasked(parts: Parts, what: str, error: BaseException, about: Mapping[str, str]) -> None:
    """A line about what raised beside a call, where no hook can be asked what may be told of it.

    If there are hooks that might hide something, the line has the kind of the error and where it
    was raised, but not its text.
    """
    if parts.hooks.registry.hooks("on_tool_error"):
        error = _without_text(error, "its text is withheld")
    log_failure(log, what, error, about)


def _as_told(error: BaseException, told: BaseException) -> BaseException:
    """The error for the log: where it was raised, with the text that the hooks left."""
    if told is error:
        return error
    return _without_text(error, f"told as: {json.error_text(told)}")


def _without_text(error: BaseException, instead: str) -> ToolError:
    hidden = ToolError(f"{type(error).__name__}, {instead}")
    return hidden.with_traceback(error.__traceback__)


def facts_of_call(turn: RunningTurn, call: PendingCall, settled: Settled) -> dict[str, Any]:
    """What both hooks are told of a call of the loop."""
    found = turn.parts.scopes.find_tool(call.tool_name)
    mine = found is not None and settled.tool is not None and found.tool is settled.tool
    return {
        **turn.hook_fields(),
        "call": CallInfo(id=call.call_id, name=call.tool_name, arguments=settled.input),
        "original_input": model_input(call),
        "tool": settled.tool,
        "scope": found.scope if found is not None and mine else None,
    }


def facts_beside(
    parts: Parts, turn: TurnRecord, call: CallInfo, tool: Tool | None
) -> dict[str, Any]:
    """The same of a call whose turn is over, or whose result comes from outside."""
    found = parts.scopes.find_tool(call.name)
    return {
        **facts_of(turn, parts.agent_ref),
        "call": call,
        "original_input": call.arguments,
        "tool": tool or (None if found is None else found.tool) or client_tool(call.name),
        "scope": None if found is None else found.scope,
    }


def limited(parts: Parts, output: Any) -> Any:
    """A result that is no larger than the agent allows.

    Cut after the hooks: of a secret that the limit cuts in two they would not know the first half.
    """
    return limit_output(output, parts.agent.max_tool_output_chars)


def _hook_of(error: BaseException, event: str) -> str:
    return error.hook if isinstance(error, RedactionError) else event


def _json(value: Any) -> Any:
    try:
        return json.to_jsonable(value)
    except ValueError:
        # Not what the error says: it names keys of what the hook has given.
        kind = type(value).__name__
        raise ToolOutputError(f"A hook gave a {kind} that JSON cannot hold.") from None
