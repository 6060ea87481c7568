"""Tool calls of one step: prepare, execute, settle (spec/02 §4.2–4.3, §5.8–5.10, §7.3–7.9).

Calls run in parallel unless the turn says otherwise; each is a chain of its own. `tool_policy.py`
says whether a call may run; a ready call is claimed in the ledger, committed, and only then
executed; settling asks `on_tool_result` or `on_tool_error`, tells `after_tool_call`, and commits
the ledger row together with the output. After a crash the same functions run: the ledger says which
calls have a result, and which began and may or may not be repeated.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from thinkwell.core.errors import SessionError, ToolError
from thinkwell.core.tasks import run_together
from thinkwell.hooks.contexts import call_ended
from thinkwell.journal.approvals import approvals_of_message
from thinkwell.journal.budget import tool_place
from thinkwell.journal.crash_points import crash_here
from thinkwell.journal.decisions import name_approvers
from thinkwell.journal.ledger import LATE, settle_call
from thinkwell.journal.tail import Updated
from thinkwell.messages.chunks import Chunk, tool_error, tool_output
from thinkwell.messages.convert import to_tool_message
from thinkwell.messages.waiting import approved_calls
from thinkwell.models.base import FinishReason, ModelRequest
from thinkwell.store.base import Transaction
from thinkwell.turn.run.approval import named_by, store_question
from thinkwell.turn.run.assemble import read_history
from thinkwell.turn.run.call_chunks import input_error
from thinkwell.turn.run.earlier_calls import outcome_of_changed
from thinkwell.turn.run.journal_events import note_result
from thinkwell.turn.run.pending_call import PendingCall, introduction, model_input
from thinkwell.turn.run.places import UNMARKED, at
from thinkwell.turn.run.recorded_calls import hold_back
from thinkwell.turn.run.redaction import (
    check_settled,
    report_policy_failure,
    report_tool_failure,
)
from thinkwell.turn.run.running import RunningTurn, call_on_message
from thinkwell.turn.run.spans import UNTRACED, tool_span
from thinkwell.turn.run.step import Prompt, Step, step_tools
from thinkwell.turn.run.tool_policy import (
    Changed,
    Ready,
    Settled,
    Waiting,
    find_tool,
    is_dynamic_here,
    kept_inside,
    prepare,
)
from thinkwell.turn.run.tool_run import execute


async def run_tool_calls(
    turn: RunningTurn, step: Step, calls: Sequence[PendingCall], reason: FinishReason
) -> None:
    """Give every call of the step its result, or leave it waiting.

    A stop while tools run settles them as aborted, then unwinds.
    """
    waiting = [call for call in calls if not call.settled]
    if not waiting:
        return
    await turn.parts.commits.flush()
    crash_here("c6")
    runnable = reason in ("stop", "tool-calls", "other")
    recording = turn.parts.recording

    async def chain(call: PendingCall) -> None:
        async with (
            at(turn, tool_place(call.tool_name, call.call_id)),
            UNMARKED if recording is None else recording.lane(call.call_id),
        ):
            with tool_span(turn, call) if turn.settings.telemetry else UNTRACED:
                if runnable or call.told:
                    await _run_call(turn, step, call)
                else:
                    await _refuse(turn, step, call, reason)

    name, owner = f"tool calls of {turn.record.request_id}", turn.parts.tasks
    if turn.settings.tool_execution == "sequential":
        for call in waiting:
            await run_together(chain(call), name=name, owner=owner)
    else:
        if recording is not None:
            recording.expect([call.call_id for call in waiting])
        await run_together(*(chain(call) for call in waiting), name=name, owner=owner)
    turn.signal.throw_if_aborted()


async def _run_call(turn: RunningTurn, step: Step, call: PendingCall) -> None:
    began = turn.parts.clock.monotonic()
    prepared = await prepare(turn, step, call)
    chosen = turn.record.chosen
    if chosen is not None and chosen.fork is not None and isinstance(prepared, Ready):
        prepared = await hold_back(turn, call, prepared, chosen.fork)
    if isinstance(prepared, Waiting):
        if prepared.question is None:
            await _keep_approvers(turn, step, call)
            return
        if turn.parts.recording is not None:
            await turn.parts.recording.in_order(call.call_id)
        await store_question(turn, prepared.question)
        await turn.emit(prepared.question.chunk())
        return
    ran = isinstance(prepared, Ready)
    if isinstance(prepared, Changed):
        prepared = await outcome_of_changed(turn, call, prepared)
    elif isinstance(prepared, Ready):
        prepared = kept_inside(turn, await execute(turn, step, call, prepared))
    if turn.parts.recording is not None:
        await turn.parts.recording.in_order(call.call_id)
    took = (turn.parts.clock.monotonic() - began) * 1000
    settled = await check_settled(turn, call, prepared)
    if ran and prepared.error is not None:
        stopped = prepared.outcome == "aborted"
        report_tool_failure(turn, call, prepared.error, settled.error, stopped=stopped)
    report_policy_failure(call, prepared, settled.error)
    await _settle(turn, step, call, msgspec.structs.replace(settled, duration_ms=took))


async def _keep_approvers(turn: RunningTurn, step: Step, call: PendingCall) -> None:
    """Whom a client tool names: a tool of this turn only is gone when the answer comes."""
    tool, _ = find_tool(turn, step, call.tool_name)
    named, parts = None if tool is None else named_by(tool), turn.parts
    if named is None:
        return
    place = {"message_id": turn.message_id, "tool_call_id": call.call_id}
    await parts.commits.insist(
        parts.owner, lambda tx: name_approvers(tx, parts.owner.agent_id, named, **place)
    )


async def _refuse(turn: RunningTurn, step: Step, call: PendingCall, reason: str) -> None:
    error = ToolError(f"Not executed: the model's output ended with {reason!r}.")
    tool = step.tools.get(call.tool_name)
    refused = Settled(outcome="invalid", input=call.input, tool=tool, error=error)
    await _settle(turn, step, call, await check_settled(turn, call, refused))


async def _settle(turn: RunningTurn, step: Step, call: PendingCall, settled: Settled) -> None:
    """Tell `after_tool_call`, commit ledger row and output together; then clients hear."""
    await _call_after(turn, step, call, settled)
    chunk = _result_chunk(turn, call, settled)
    if not call.told:
        await turn.show(chunk)

    async def store(tx: Transaction) -> None:
        await _store_outcome(tx, turn, call, settled)
        if turn.lost:
            return
        with turn.unless_refused(call.call_id):
            note_result(turn, call.call_id, settled.outcome, settled.duration_ms)
            for each in () if call.told else (*introduction(turn, call), chunk):
                turn.record_chunk(each)
        turn.parts.commits.note(turn.log)
        if call.approved:
            await turn.parts.session.update(tx, turn.reply.fold.message)

    try:
        await turn.parts.commits.insist(turn.parts.owner, store)
    except _RefusedError as refused:
        # Nothing of it is stored. What it was about to be told as is told with the reason instead.
        failed = msgspec.structs.replace(
            settled, outcome="errored", output=None, error=refused.reason, writes=None
        )
        await _settle(turn, step, call, failed)
        return
    if turn.lost:
        return
    if settled.writes is not None:
        crash_here("c14")
        settled.writes.committed()
    if call.approved:
        turn.handle.tell(Updated(turn.reply.fold.message))
    await _call_on_message(turn, step, call)


async def _store_outcome(
    tx: Transaction, turn: RunningTurn, call: PendingCall, settled: Settled
) -> None:
    """The ledger row, and with it what a `tx` tool has written."""
    # Such a call of an attempt that was left behind stays unsettled: then it has written nothing.
    if settled.open or (turn.lost and settled.writes is not None):
        return
    first = await settle_call(
        tx,
        turn.record,
        call.call_id,
        outcome=LATE if turn.lost and not call.told else settled.outcome,
        output=settled.output,
        error=settled.error_text,
        now=turn.parts.clock.now(),
    )
    if first and settled.writes is not None:
        try:
            await settled.writes.write(tx)
        except SessionError as reason:
            raise _RefusedError(reason) from reason
        crash_here("c13")


class _RefusedError(Exception):
    """What a `tx` tool wants to write does not fit what is stored by now."""

    def __init__(self, reason: SessionError) -> None:
        super().__init__(str(reason))
        self.reason = reason


async def _call_on_message(turn: RunningTurn, step: Step, call: PendingCall) -> None:
    """The result is committed: it has entered the conversation."""
    if turn.parts.hooks.registry.hooks("on_message"):
        part = turn.reply.fold.tool_call(call.call_id)
        message = None if part is None else to_tool_message(part)
        if message is not None:
            await call_on_message(turn, message, step.number)


async def _call_after(turn: RunningTurn, step: Step, call: PendingCall, settled: Settled) -> None:
    if not turn.parts.hooks.registry.hooks("after_tool_call"):
        return
    await turn.parts.hooks.observe(
        "after_tool_call",
        call_ended(
            **turn.hook_fields(),
            tool_call_id=call.call_id,
            tool_name=call.tool_name,
            input=settled.input,
            original_input=model_input(call),
            step_number=step.number,
            messages=step.request.messages,
            tool=settled.tool,
            outcome=settled.outcome,
            output=settled.output,
            error=settled.error,
            duration_ms=settled.duration_ms,
            dynamic=is_dynamic_here(turn, step, call.tool_name),
        ),
    )


def _result_chunk(turn: RunningTurn, call: PendingCall, settled: Settled) -> Chunk:
    if settled.error_text is None:
        chunk = tool_output(call.call_id, settled.output)
        shown = turn.reply.fold.tool_call(call.call_id)
        if shown is not None and shown.get("preliminary") is True:
            # A stock client that watches keeps the word until a chunk takes it back.
            chunk["preliminary"] = False
        return chunk
    if call.provider_executed:
        return {**tool_error(call.call_id, settled.error_text), "providerExecuted": True}
    if call.problem is not None:
        return input_error(call, settled.error_text)
    return tool_error(call.call_id, settled.error_text)


async def run_approved_calls(turn: RunningTurn, prompt: Prompt) -> Prompt:
    """Run what was allowed; the prompt then holds the results."""
    reply = turn.reply.fold.message
    parts = approved_calls(reply) if reply["parts"] else []
    if not parts:
        return prompt
    step = Step(
        number=0,
        model=prompt.model,
        request=ModelRequest(messages=prompt.messages, system=prompt.system),
        tools=step_tools(turn, prompt),
        runtime_context=prompt.config.runtime_context,
    )
    store, agent_id = turn.parts.store, turn.parts.owner.agent_id
    asked = await approvals_of_message(store, agent_id, turn.message_id)
    calls = [
        PendingCall.from_part(
            part, turn.past.ledger.get(call_id), approved=True, receipt=asked.get(call_id)
        )
        for part in parts
        for call_id in (part["toolCallId"],)
    ]
    await turn.start_stream()
    await run_tool_calls(turn, step, calls, "tool-calls")
    if prompt.config.messages is not None:
        return prompt
    messages = await read_history(turn, prompt.tools)
    return msgspec.structs.replace(prompt, messages=messages)
