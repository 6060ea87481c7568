"""A tool call of the model on its way to a result: read, repaired if it can be, or read back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from thinkwell.core import json
from thinkwell.core.errors import DisabledToolError, ToolError, ToolInputError, UnknownToolError
from thinkwell.journal.approvals import Approval
from thinkwell.journal.ledger import LedgerRow
from thinkwell.journal.turns import TurnRecord
from thinkwell.messages.chunks import Chunk
from thinkwell.messages.message import Part, tool_name
from thinkwell.models.base import ToolCall
from thinkwell.tools.execute import parse_input
from thinkwell.tools.repair import RawCall, RepairCall, repair_call
from thinkwell.tools.tool import Tool
from thinkwell.turn.parts import Parts
from thinkwell.turn.run.running import RunningTurn
from thinkwell.turn.run.step import Step
from thinkwell.turn.run.step_result import has_result

INPUT_CUT = "The process stopped before the input of this call was complete. It was not run."

NO_RESULT = "The provider told no result of this call."


class PendingCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call of the model that has no result yet, or a problem that will be its result."""

    call_id: str
    tool_name: str
    input: dict[str, Any]
    provider_metadata: dict[str, Any] | None = None
    problem: ToolError | None = None
    """Why it cannot run: an unknown tool, or arguments that do not fit."""
    raw_input: Any = None
    """What the model wrote."""
    ledger: LedgerRow | None = None
    """What an earlier attempt recorded."""
    shown: Mapping[str, Any] | None = None
    """The tool's input schema as the model was shown it, of a call that was read back: the code may
    have changed since. None if that is not known.
    """
    settled: bool = False
    """An earlier attempt has told its result already."""
    approved: bool = False
    """A person allowed it; it belongs to a message that is stored already."""
    receipt: Approval | None = None
    """What they were asked; None if an earlier release asked."""
    dynamic: bool = False
    """Clients know it as a call of a tool that nobody declared."""
    provider_executed: bool = False
    """The provider runs it."""
    told: bool = False
    """Clients have been told its problem."""

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
        if self.dynamic:
            chunk["dynamic"] = True
        return chunk

    @classmethod
    def from_part(
        cls,
        part: Part,
        ledger: LedgerRow | None = None,
        *,
        shown: Mapping[str, Any] | None = None,
        approved: bool = False,
        receipt: Approval | None = None,
    ) -> PendingCall:
        """A call read back from a stored part."""
        cut = part["state"] == "input-streaming"
        by_provider = part.get("providerExecuted") is True
        problem = INPUT_CUT if cut else NO_RESULT
        return cls(
            call_id=part["toolCallId"],
            tool_name=tool_name(part),
            input=part.get("input") or {},
            provider_metadata=part.get("callProviderMetadata"),
            problem=ToolError(problem) if cut or by_provider else None,
            ledger=ledger,
            shown=None if cut or by_provider else shown,
            settled=has_result(part) or part["state"] == "approval-requested",
            approved=approved,
            receipt=receipt,
            dynamic=part["type"] == "dynamic-tool",
            provider_executed=by_provider,
        )


def introduction(turn: RunningTurn, call: PendingCall) -> list[Chunk]:
    """What comes before the first outcome of a call that an earlier stream has opened.

    Many clients read a continuation into an empty message: an outcome alone would be the end of
    their stream (spec/01 F20, D4). Those that go on in the old message know the call and lose
    nothing.
    """
    if not call.approved or turn.has_opened(call.call_id):
        return []
    return [call.input_chunk()]


async def read_call(turn: RunningTurn, step: Step, event: ToolCall) -> PendingCall:
    """Check a call: does the tool exist, do the arguments fit; if not, may it be mended
    (9.5–9.13).
    """
    call = _checked(turn, step, event)
    repair = turn.settings.repair_tool_call
    if call.problem is None or repair is None:
        return call
    context = RepairCall(
        tool_call=RawCall(
            tool_call_id=event.tool_call_id, tool_name=event.tool_name, input=event.input
        ),
        error=call.problem,
        tools=step.tools,
        messages=step.request.messages,
        system=step.request.system,
    )
    try:
        mended = await repair_call(repair, context)
    except ToolError as error:
        turn.parts.hooks.report("repair_tool_call", "repair_tool_call", error)
        return msgspec.structs.replace(call, problem=error)
    if mended is None:
        return call
    again = ToolCall(event.tool_call_id, mended.tool_name, mended.input, event.provider_metadata)
    return _checked(turn, step, again)


def _checked(turn: RunningTurn, step: Step, event: ToolCall) -> PendingCall:
    call = PendingCall(
        call_id=event.tool_call_id,
        tool_name=event.tool_name,
        input={},
        provider_metadata=event.provider_metadata,
        raw_input=event.input,
    )
    tool = known_tool(turn, step, event.tool_name)
    opened = turn.reply.fold.tool_call(event.tool_call_id)
    # As it was opened: for clients, a call of the other kind would be another call.
    dynamic = tool is None if opened is None else opened["type"] == "dynamic-tool"
    call = msgspec.structs.replace(call, dynamic=dynamic)
    if tool is None:
        problem: ToolError = UnknownToolError(event.tool_name, list(step.tools))
        return msgspec.structs.replace(call, problem=problem)
    try:
        return msgspec.structs.replace(call, input=parse_input(tool, event.input).raw)
    except ToolInputError as error:
        return msgspec.structs.replace(call, problem=error)


def is_same_call(part: Part, name: str, written: str) -> bool:
    """Whether the model calls the tool of `part` with the same input once more."""
    try:
        return tool_name(part) == name and json.loads(written or "{}") == (part.get("input") or {})
    except ValueError:
        return False


def known_tool(turn: RunningTurn, step: Step, name: str) -> Tool | None:
    """The tool of that name, hidden ones included."""
    return step.tools.get(name) or disabled_tool(turn, step, name)


def is_dynamic(
    parts: Parts, record: TurnRecord, name: str, tool: Tool | None, *, unknown: bool
) -> bool:
    """Whether the agent's own code does not have the tool: a scope, a client or nobody does.

    `tool` is what is known of it now, `unknown` that nobody had it when it was called. This is what
    hooks read as `dynamic`; on the wire the word means `unknown` alone, as clients expect.
    """
    if unknown:
        return True
    found = parts.scopes.find_tool(name)
    if found is not None:
        return tool is None or tool is found.tool
    # A tool of the server wins over one that a client declares by the same name.
    return record.declares(name) and (tool is None or tool.is_client)


def disabled_tool(turn: RunningTurn, step: Step, name: str) -> Tool | None:
    """A tool that is hidden now: known, so that a policy may still answer for it."""
    found = turn.parts.scopes.find_tool(name)
    if found is not None and not found.enabled:
        return found.tool
    return step.disabled.get(name)


def is_disabled(turn: RunningTurn, step: Step, name: str) -> DisabledToolError | None:
    """Why a known tool may not run now."""
    found = turn.parts.scopes.find_tool(name)
    if found is not None and not found.enabled:
        return DisabledToolError(name)
    tool = step.tools.get(name) or step.disabled.get(name)
    return None if tool is None or tool.is_enabled() else DisabledToolError(name)


def model_input(call: PendingCall) -> Any:
    """What the model wrote, for hooks."""
    return call.input if call.problem is None else call.raw_input


def unfinished_calls(turn: RunningTurn, calls: Sequence[PendingCall]) -> list[PendingCall]:
    """Calls the model began and never completed: they get an error as their result."""
    known = {call.call_id for call in calls}
    return [
        PendingCall(
            call_id=part.id,
            tool_name=part.tool_name,
            input={},
            raw_input=part.text,
            problem=ToolInputError(part.tool_name, "the model did not complete the arguments"),
        )
        for part in turn.reply.fold.open_parts()
        if part.kind == "tool-input" and part.id not in known
    ]


def unanswered_calls(turn: RunningTurn) -> list[PendingCall]:
    """Calls that the provider should have run: without a result, they get an error."""
    if not turn.reply.fold.has_calls:
        return []
    block = turn.reply.last_step()
    asked = [part for part in block if part.get("providerExecuted") is True]
    complete = [part for part in asked if part["state"] != "input-streaming"]
    return [PendingCall.from_part(part) for part in complete if not has_result(part)]
