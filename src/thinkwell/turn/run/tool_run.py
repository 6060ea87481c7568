"""Running one tool: claimed in the ledger and committed, then executed.

What it raises is a result.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec

from thinkwell.core import json
from thinkwell.core.errors import (
    AbortTurn,
    StoreError,
    ToolError,
    ToolLeftBehindError,
    ToolOutcomeUnknownError,
    ToolTimeoutError,
)
from thinkwell.core.tasks import UNWIND, LeftBehindError, StoppedError, run_apart
from thinkwell.core.turn_events import ToolEndedLate, ToolLeftBehind
from thinkwell.core.visits import current_guard
from thinkwell.hooks.dispatch import HookFailedError
from thinkwell.journal.crash_points import crash_here
from thinkwell.journal.joined_writes import CallWrites
from thinkwell.journal.ledger import (
    CallName,
    Claim,
    LedgerRow,
    claim_call,
    repeated_call,
    settle_call,
)
from thinkwell.messages.chunks import tool_output
from thinkwell.messages.message import tool_name, tool_parts
from thinkwell.store.base import Transaction
from thinkwell.tools.context import ToolContext
from thinkwell.tools.execute import run_tool
from thinkwell.tools.tool import Execute, Tool
from thinkwell.turn.run.earlier_calls import earlier_outcome
from thinkwell.turn.run.journal_events import note_claim
from thinkwell.turn.run.pending_call import PendingCall, introduction
from thinkwell.turn.run.redaction import (
    check_beside,
    check_output,
    facts_of_call,
    limited,
    log_unasked,
    report_tool_failure,
)
from thinkwell.turn.run.running import RunningTurn
from thinkwell.turn.run.step import Step
from thinkwell.turn.run.tool_context import tool_context
from thinkwell.turn.run.tool_policy import REPEATABLE, Ready, Settled, from_ledger


async def execute(turn: RunningTurn, step: Step, call: PendingCall, ready: Ready) -> Settled:
    """Claim the call, then run the tool."""
    parts, tool = turn.parts, ready.tool
    if turn.signal.aborted:
        error = ToolError(f"Stopped before it ran: {turn.signal.reason}")
        return Settled(outcome="aborted", input=ready.input, tool=ready.tool, error=error)
    key: str | None = None
    if tool.effect not in REPEATABLE:
        known = await earlier_outcome(turn, call, ready)
        if isinstance(known, Settled):
            return known
        key = known
    if key is None:
        made = await _key(turn, call, ready)
        if isinstance(made, LedgerRow):
            return from_ledger(tool, made)
        key = made
    claim = Claim(
        call_id=call.call_id,
        tool_name=tool.name,
        input=ready.input,
        effect=tool.effect,
        idempotency_key=key,
        step=step.number,
    )
    turn.calls.running.add(call.call_id)
    try:
        await parts.commits.insist(parts.owner, partial(_claim, turn=turn, claim=claim))
        turn.calls.claimed.add(call.call_id)
        crash_here("c7")
        recorded = None
        if parts.recording is not None:
            recorded = await parts.recording.outcome(turn, call, ready)
        settled = recorded or await _run(turn, step, call, ready, key=claim.idempotency_key)
        crash_here("c8")
    except BaseException:
        turn.calls.running.discard(call.call_id)
        raise
    if settled.open:  # nobody knows what comes of it
        turn.calls.running.discard(call.call_id)
    return settled


async def _claim(tx: Transaction, turn: RunningTurn, claim: Claim) -> None:
    await claim_call(tx, turn.record, claim, now=turn.parts.clock.now())
    with turn.unless_refused(claim.call_id):
        note_claim(turn, claim)


async def _run(
    turn: RunningTurn, step: Step, call: PendingCall, ready: Ready, *, key: str
) -> Settled:
    """Run the tool; the writes of a `tx` tool come along with its result, if it has one."""
    if ready.tool.effect != "tx":
        return await _attend(turn, step, call, ready, key=key)
    writes = CallWrites(turn.record.agent_id, ready.tool.name)
    try:
        settled = await _attend(turn, step, call, ready, key=key, writes=writes)
    finally:
        writes.end()
    if settled.outcome == "executed":
        return msgspec.structs.replace(settled, writes=writes)
    # Nothing that it still writes is stored, so there is no doubt about it.
    return msgspec.structs.replace(settled, open=False)


async def _attend(
    turn: RunningTurn,
    step: Step,
    call: PendingCall,
    ready: Ready,
    *,
    key: str,
    writes: CallWrites | None = None,
) -> Settled:
    work = _Work(turn, call, ready)
    tool = replace(_limited(turn, ready.tool), execute=work.handler)
    running = run_tool(
        tool,
        ready.value,
        tool_context(turn, step, call, key),
        work.preliminary,
        in_thread=turn.parts.in_thread,
    )
    if writes is not None:
        running = writes.collect(running)
    try:
        output = await work.attend(running, tool.timeout)
    except (StoreError, HookFailedError):
        raise
    except ToolLeftBehindError as error:
        outcome = "aborted" if turn.signal.aborted else "errored"
        return Settled(outcome=outcome, input=ready.input, tool=ready.tool, error=error, open=True)
    except AbortTurn as stop:
        if not turn.signal.aborted:
            raise  # the tool itself ends the turn
        return Settled(
            outcome="aborted",
            input=ready.input,
            tool=ready.tool,
            error=work.stopped(stop.reason),
            open=work.in_doubt,
        )
    except ToolTimeoutError as error:
        late = ToolTimeoutError(tool.name, error.seconds, in_doubt=work.in_doubt)
        return Settled(
            outcome="errored", input=ready.input, tool=ready.tool, error=late, open=work.in_doubt
        )
    except Exception as error:  # noqa: BLE001 - what a tool raises goes to the model
        outcome = "aborted" if turn.signal.aborted else "errored"
        return Settled(outcome=outcome, input=ready.input, tool=ready.tool, error=error)
    return Settled(outcome="executed", input=ready.input, tool=ready.tool, output=output)


class _Work:
    """One tool at work, and what comes of it when the turn no longer waits."""

    def __init__(self, turn: RunningTurn, call: PendingCall, ready: Ready) -> None:
        self._turn = turn
        self._call = call
        self._tool = tool = ready.tool
        self._tool_name = tool.name
        self._given = Settled(outcome="executed", input=ready.input, tool=tool)
        """The call as hooks are told of it; what came of it is still to come."""
        self._begun = False
        self._left = False

    @property
    def handler(self) -> Execute | None:
        """The tool's own, which is noted when it begins: it may have to wait for a thread."""
        execute = self._tool.execute
        if execute is None:
            return None

        def begin(value: Any, ctx: ToolContext) -> Any:
            self._begun = True
            return execute(value, ctx)

        return begin

    @property
    def in_doubt(self) -> bool:
        """Whether nobody knows what a cancel left of it, and it may not be had twice."""
        return self._begun and self._tool.effect not in REPEATABLE

    def stopped(self, reason: str) -> ToolError:
        """What is read of a call that heeded its cancel."""
        if self.in_doubt:
            return ToolOutcomeUnknownError(self._tool_name, stopped=reason)
        return ToolError(f"Stopped before it {'finished' if self._begun else 'ran'}: {reason}")

    async def preliminary(self, value: Any) -> None:
        """What the tool shows before it ends; its call may have ended without it."""
        if self._left:
            return
        turn, call = self._turn, self._call
        checked = await check_output(turn.parts, self._facts, value, preliminary=True)
        # One value that is withheld fails nothing: the tool may be half-way through what it does.
        if checked.withheld or self._left:
            return
        for chunk in introduction(turn, call):
            await turn.emit(chunk)
        await turn.emit(tool_output(call.call_id, checked.output, preliminary=True))

    @property
    def _facts(self) -> dict[str, Any]:
        return facts_of_call(self._turn, self._call, self._given)

    async def attend(self, running: Coroutine[Any, Any, Any], limit: float | None) -> Any:
        """Wait for the tool. A stop or its limit cancels it, then it is left behind."""
        turn, grace = self._turn, self._turn.settings.limits.grace
        try:
            with turn.signal.future() as stop:
                return await run_apart(
                    _unguarded(running),
                    name=f"tool {self._tool_name!r}",
                    stop=stop,
                    limit=None if limit is None else limit + max(grace, UNWIND),
                    grace=grace,
                    owner=turn.parts.tasks,
                    left=self._leave,
                )
        except StoppedError:
            if turn.signal.reason is None:
                raise ToolTimeoutError(self._tool_name, limit or 0) from None
            raise AbortTurn(turn.signal.reason) from None
        except LeftBehindError as left:
            self._leave(left.task)
            raise ToolLeftBehindError(self._tool_name, turn.signal.reason, limit) from None

    def _leave(self, task: asyncio.Task[Any]) -> None:
        self._left = True
        parts, call_id = self._turn.parts, self._call.call_id
        # The call of a `tx` tool has ended without it: nothing that still comes of it counts.
        parts.tasks.keep(task, None if self._tool.effect == "tx" else self._ended_late)
        parts.bus.emit(
            ToolLeftBehind,
            **self._turn.event_fields(),
            tool_call_id=call_id,
            tool_name=self._tool_name,
        )

    def _ended_late(self, task: asyncio.Task[Any]) -> None:
        if task.cancelled():
            return
        tasks, error = self._turn.parts.tasks, task.exception()
        if not tasks.closed:
            tasks.spawn(self._record(task), name="late outcome")
        elif error is not None:
            # The next start asks what came of it; the hooks are gone.
            what = f"the tool {self._tool_name!r}, left behind,"
            log_unasked(self._turn.parts, what, error, {"tool": self._tool_name})

    async def _record(self, task: asyncio.Task[Any]) -> None:
        """The ledger learns what came of it; the stored reply stays as it is."""
        parts, error = self._turn.parts, task.exception()
        result = None if error is not None else task.result()
        checked = await check_beside(parts, self._facts, output=result, error=error)
        if error is not None:
            report_tool_failure(self._turn, self._call, error, checked.error)
        output, error = limited(parts, checked.output), checked.error
        text = None if error is None else json.error_text(error)
        await parts.commits.insist(
            parts.owner,
            lambda tx: settle_call(
                tx,
                self._turn.record,
                self._call.call_id,
                outcome="late",
                output=output,
                error=text,
                now=parts.clock.now(),
            ),
        )
        parts.bus.emit(
            ToolEndedLate,
            **self._turn.event_fields(),
            tool_call_id=self._call.call_id,
            tool_name=self._tool_name,
            error=error,
        )


async def _unguarded(running: Coroutine[Any, Any, Any]) -> Any:
    """A tool has its own limit, and can be left behind alone."""
    current_guard.set(None)
    return await running


def _limited(turn: RunningTurn, tool: Tool) -> Tool:
    """The tool with the time limit that holds in this turn."""
    return replace(tool, timeout=turn.settings.limits.of_tool(tool.name, tool.timeout))


async def _key(turn: RunningTurn, call: PendingCall, ready: Ready) -> str | LedgerRow:
    """The same call of the same turn always gets the same key; equal calls count up.

    In a turn that repeats another one: the key it had there, or its row if it took effect there.
    """
    if call.ledger is not None:
        return call.ledger.idempotency_key
    occurrence, wanted = 1, json.canonical(call.input)
    for part in tool_parts(turn.reply.fold.message):
        if part["toolCallId"] == call.call_id:
            break
        if tool_name(part) == call.tool_name and json.canonical(part.get("input")) == wanted:
            occurrence += 1
    record = turn.record
    name = CallName(record.agent_id, record.root_id, call.tool_name, ready.input, occurrence)
    if not record.repeats:
        return name.key
    earlier = await repeated_call(turn.parts.store, record, (name.key, name.older_key))
    if earlier is None:
        return name.key
    done = earlier.settled and earlier.error is None
    return earlier if done else earlier.idempotency_key
