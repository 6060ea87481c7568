"""Answers from outside: results of client tools and decisions about approvals (spec/01 §11).

An answer is applied to the message that waits for it, stored and shown as an update. If a client
asked to go on and no call of that message waits any more, the same transaction accepts a
continuation: a crash in between cannot leave the chat stuck. An answer for a turn that still
streams is applied to the growing message; the turn's own end then starts the continuation.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from thinkwell.core import json
from thinkwell.core.events import ChatDecision
from thinkwell.core.ids import new_id
from thinkwell.core.principal import Principal
from thinkwell.core.user_code import call_hook
from thinkwell.hooks.contexts import MessageContext, ToolOutcome, call_ended, facts_of
from thinkwell.hooks.given import read_tools
from thinkwell.journal.approvals import (
    Approval,
    approval_of_call,
    ask_approval,
    close_approval,
    hash_of_input,
)
from thinkwell.journal.crash_points import crash_here
from thinkwell.journal.decisions import Decision, record_decision
from thinkwell.journal.jobs import Job
from thinkwell.journal.turns import TurnRecord, answering_turn, newest_turn
from thinkwell.messages.apply_result import (
    Applied,
    StoredCall,
    apply_approval,
    apply_tool_result,
    find_call,
)
from thinkwell.messages.convert import to_tool_message
from thinkwell.messages.message import Part, UIMessage, approval_of, tool_name, with_parts
from thinkwell.messages.waiting import has_pending_interaction
from thinkwell.session.rows import StoredMessage
from thinkwell.store.base import Reader, Transaction
from thinkwell.tools.tool import Tool
from thinkwell.turn.ask.authority import asking_for
from thinkwell.turn.ask.opening import start_continuation
from thinkwell.turn.known_tools import known_tool
from thinkwell.turn.parts import Parts
from thinkwell.turn.run.approval import INPUT_CHANGED, tell_asked
from thinkwell.turn.run.growth import OutsideAnswer
from thinkwell.turn.run.pending_call import is_dynamic
from thinkwell.turn.run.running import RunningTurn
from thinkwell.turn.run.step_result import step_blocks

log = logging.getLogger("thinkwell.agent")

Apply = Callable[[UIMessage], Applied]
SEARCHED_BYTES = 4 * 1024 * 1024
"""How far back an answer looks for its call."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """One answer from outside."""

    tool_call_id: str
    change: Apply
    outcome: ToolOutcome
    auto_continue: bool
    client_tools: tuple[dict[str, Any], ...] | None = None
    """Tools the client declares now; None keeps those of the turn before."""
    reason: str | None = None
    message_id: str | None = None
    """The one message it was allowed for; None: whichever has the call."""
    given: tuple[Any, Any] = (UNSET, UNSET)
    """Output and error of a result, one of them given."""
    by: Principal | None = None
    """Who answers."""
    by_client: bool = False
    meets: Tool | None = None
    """The tool of the call, as far as it is known beside the turn that runs."""
    expires: str | None = None
    """The question that nobody has answered in time, if that is what is said."""


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """What came of an answer."""

    message: UIMessage | None = None
    """The message that changed."""
    part: Part | None = None
    turn: TurnRecord | None = None
    """The turn whose call it answers."""
    growing: RunningTurn | None = None
    """The same, if it still runs."""
    continuation: TurnRecord | None = None
    """The turn that goes on, if one was accepted."""
    decision: Decision | None = None
    applied: Answer | None = None
    """The answer that counted, if it is not the one that was given: it came too late."""
    asked: Approval | None = None
    """The question that took the place of another, because the call has changed."""
    new_job: Job | None = None
    """The job that ends that one."""

    @property
    def counted(self) -> bool:
        """Whether the answer that was given is the one that counts."""
        return self.message is not None and self.applied is None and self.asked is None


def result_answer(
    tool_call_id: str,
    *,
    output: Any = UNSET,
    error: str | UnsetType | None = UNSET,
    auto_continue: bool = True,
    client_tools: Sequence[dict[str, Any]] | None = None,
) -> Answer:
    """The result of a client tool: exactly one of `output` and `error`."""
    if (output is UNSET) == (error is UNSET):
        raise ValueError(
            "Give exactly one of output= and error=: `add_tool_result(call_id, output=...)`."
        )
    plain = UNSET if output is UNSET else json.to_jsonable(output)
    return Answer(
        tool_call_id=tool_call_id,
        change=lambda m: apply_tool_result(m, tool_call_id, output=plain, error_text=error),
        outcome="client",
        auto_continue=auto_continue,
        client_tools=None if client_tools is None else tuple(client_tools),
        given=(plain, error),
    )


def no_turn(parts: Parts) -> TurnRecord:
    """Stands for the turn of a message that was written without one."""
    return TurnRecord(
        agent_id=parts.owner.agent_id,
        request_id="",
        trigger="auto-continuation",
        status="completed",
        generation=0,
    )


def approval_answer(
    tool_call_id: str, *, approved: bool, reason: str | None = None, auto_continue: bool = True
) -> Answer:
    """A person's decision about a call."""
    return Answer(
        tool_call_id=tool_call_id,
        change=lambda m: apply_approval(m, tool_call_id, approved=approved, reason=reason),
        outcome="executed" if approved else "denied",
        auto_continue=auto_continue,
        reason=reason,
    )


def expired_answer(asked: Approval) -> Answer:
    """What counts when nobody has decided in time."""
    seconds = None if asked.expires_at is None else asked.expires_at - asked.asked_at
    within = "" if seconds is None else f" within {_duration(seconds)}"
    reason = (
        f"The approval expired: nobody allowed this call{within}, so it was not run. Ask again if "
        "it is still wanted."
    )
    answer = approval_answer(asked.tool_call_id, approved=False, reason=reason)
    return msgspec.structs.replace(answer, message_id=asked.message_id, expires=asked.id)


def _duration(seconds: float) -> str:
    for size, name in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= size and seconds % size == 0:
            count = int(seconds // size)
            return f"{count} {name}{'' if count == 1 else 's'}"
    return f"{seconds:g} seconds"


async def apply_answer(
    parts: Parts, running: Callable[[], RunningTurn | None], answer: Answer
) -> Answered:
    """Apply an answer durably. Nothing happens for an unknown or settled call: the first wins.

    Everything is decided inside one transaction, so a turn that settles at the same moment has
    either taken the answer into what it stores, or its stored message is changed.
    """
    if not answer.by_client:
        asker = asking_for(parts.owner.agent_id)
        answer = msgspec.structs.replace(answer, by=None if asker is None else asker.principal)
    if answer.outcome == "client":
        # Scopes and features are asked now: code of users is never run in a transaction, where it
        # would hold up all agents (DESIGN §8.9).
        answer = msgspec.structs.replace(
            answer, meets=await _declared_tool(parts, running(), answer.tool_call_id)
        )
    answered = await parts.commits.run(parts.owner, lambda tx: _apply(tx, parts, running(), answer))
    if answered.decision is not None:
        said = msgspec.structs.asdict(answered.decision)
        parts.bus.emit(ChatDecision, agent=parts.owner.agent_id, **said)
    if answered.asked is not None:
        tell_asked(parts, answered.asked, answered.new_job)
    return answered


async def _apply(
    tx: Transaction, parts: Parts, running: RunningTurn | None, answer: Answer
) -> Answered:
    growing = None if running is None or running.reply.stored else running
    part = None if growing is None else growing.reply.fold.tool_call(answer.tool_call_id)
    if growing is not None and part is not None:
        if answer.outcome == "client" and _runs_here(part, growing, answer.meets):
            return Answered()
        return await _apply_to_running(tx, parts, growing, answer)
    stored = await _find(tx, parts, answer.tool_call_id, answer.message_id)
    if stored is None:
        log.info("an answer for an unknown call", extra={"action": "answer"})
        return Answered()
    found = find_call([stored.message], answer.tool_call_id)
    part = None if found is None else found.part
    if answer.outcome == "client" and part and _runs_here(part, None, answer.meets):
        return Answered()
    return await _apply_to_stored(tx, parts, stored, answer)


def runs_here(parts: Parts, part: Part, turn: RunningTurn | None = None) -> bool:
    """Whether the server runs this call itself: then nobody else says what comes of it."""
    return _runs_here(part, turn, tool_of(parts, tool_name(part), turn))


def _runs_here(part: Part, turn: RunningTurn | None, known: Tool | None) -> bool:
    if turn is not None and part.get("toolCallId") in turn.past.ledger:
        return True
    tool = (None if turn is None else turn.settings.tools.get(tool_name(part))) or known
    return tool is not None and not tool.is_client


async def _declared_tool(
    parts: Parts, running: RunningTurn | None, tool_call_id: str
) -> Tool | None:
    """The tool that a call names."""
    part = None if running is None else running.reply.fold.tool_call(tool_call_id)
    if part is None:
        stored = await find_stored_call(parts.store, parts, tool_call_id)
        part = None if stored is None else stored.part
    return None if part is None else tool_of(parts, tool_name(part), None)


def tool_of(parts: Parts, name: str, turn: RunningTurn | None) -> Tool | None:
    """The tool of that name, as far as it is known outside an attempt. Calls code of users."""
    of_turn = None if turn is None else turn.settings.tools.get(name)
    return of_turn or known_tool(parts, name)


async def _apply_to_running(
    tx: Transaction, parts: Parts, turn: RunningTurn, answer: Answer
) -> Answered:
    if not _is_meant(answer, turn.message_id):
        return Answered()
    asked = await _asked(tx, parts, answer, turn.message_id)
    given, counts = answer, _in_time(answer, asked, parts.clock.now())
    if counts is None:
        return Answered()
    answer = counts
    applied = answer.change(turn.reply.fold.message)
    if applied.part is None:
        return Answered()
    taken = OutsideAnswer(
        part=applied.part,
        stop_reason="client_tool" if answer.outcome == "client" else "approval",
        auto_continue=answer.auto_continue,
        client_tools=answer.client_tools,
    )
    decision = await _record(tx, parts, answer, applied=applied, turn=turn.record, asked=asked)
    with turn.unless_refused(answer.tool_call_id):
        turn.take_answer(taken)
        turn.log.append_event("answer", json.dumps(taken))
    parts.commits.note(turn.log)
    return Answered(
        message=turn.reply.fold.snapshot(),
        part=applied.part,
        turn=turn.record,
        growing=turn,
        decision=decision,
        applied=None if answer is given else answer,
    )


async def _apply_to_stored(
    tx: Transaction, parts: Parts, stored: StoredMessage, answer: Answer
) -> Answered:
    asked = await _asked(tx, parts, answer, stored.id)
    given, counts = answer, _in_time(answer, asked, parts.clock.now())
    if counts is None:
        return Answered()
    answer = counts
    applied = answer.change(stored.message)
    if not applied.changed:
        return Answered()
    if asked is not None and answer.expires is None and _has_changed(asked, applied.part):
        return await _ask_anew(tx, parts, stored, asked)
    await parts.session.update(tx, applied.message)
    agent_id = parts.owner.agent_id
    source = await answering_turn(tx, agent_id, stored.id)
    decision = await _record(tx, parts, answer, applied=applied, turn=source, asked=asked)
    record = None
    if source is not None:
        record = await start_continuation(
            tx,
            parts,
            source,
            applied.message,
            owed=source.continuation_owed or answer.auto_continue,
            client_tools=answer.client_tools,
        )
    return Answered(
        message=applied.message,
        part=applied.part,
        turn=source,
        continuation=record,
        decision=decision,
        applied=None if answer is given else answer,
    )


async def _asked(tx: Transaction, parts: Parts, answer: Answer, message_id: str) -> Approval | None:
    """The question that a decision is about. Results of client tools answer none."""
    if answer.outcome == "client":
        return None
    call = {"message_id": message_id, "tool_call_id": answer.tool_call_id}
    return await approval_of_call(tx, parts.owner.agent_id, **call)


def _in_time(answer: Answer, asked: Approval | None, now: float) -> Answer | None:
    """The answer that counts: after its time a question is denied, whatever is said then.

    None: a question is said to have expired that has not, or that was asked anew.
    """
    over = asked is not None and asked.is_over(now)
    if answer.expires is not None:
        return answer if asked is not None and over and asked.id == answer.expires else None
    return expired_answer(asked) if asked is not None and over else answer


def _has_changed(asked: Approval, part: Part | None) -> bool:
    return part is not None and hash_of_input(part.get("input")) != asked.input_hash


async def _ask_anew(
    tx: Transaction, parts: Parts, stored: StoredMessage, asked: Approval
) -> Answered:
    """Somebody's code has given the call other arguments: nobody was asked about those."""
    found = find_call([stored.message], asked.tool_call_id)
    if found is None:
        return Answered()
    now, part = parts.clock.now(), found.part
    waits = None if asked.expires_at is None else asked.expires_at - asked.asked_at
    again = msgspec.structs.replace(
        asked,
        id=new_id(),
        input=part.get("input"),
        input_hash=hash_of_input(part.get("input")),
        note=INPUT_CHANGED,
        asked_at=now,
        expires_at=None if waits is None else now + waits,
    )
    await close_approval(tx, parts.owner.agent_id, asked, "withdrawn", now=now)
    job = await ask_approval(tx, parts.owner.agent_id, again)
    new = {**part, "approval": {**approval_of(part), "id": again.id}}
    changed = [new if each is part else each for each in stored.message["parts"]]
    message = with_parts(stored.message, changed)
    await parts.session.update(tx, message)
    return Answered(message=message, asked=again, new_job=job)


def _is_meant(answer: Answer, message_id: str) -> bool:
    return answer.message_id is None or answer.message_id == message_id


async def _record(
    tx: Transaction,
    parts: Parts,
    answer: Answer,
    *,
    applied: Applied,
    turn: TurnRecord | None,
    asked: Approval | None,
) -> Decision:
    """Who decided, in the transaction that makes it so."""
    now, expired = parts.clock.now(), answer.expires is not None
    decision = Decision(
        turn=None if turn is None else turn.request_id,
        message_id=applied.message["id"],
        tool_call_id=answer.tool_call_id,
        tool_name=tool_name(applied.part or {}),
        action="answer" if answer.outcome == "client" else "approve",
        approved=None if answer.outcome == "client" else answer.outcome == "executed",
        reason=answer.reason,
        principal=answer.by,
        by_client=answer.by_client,
        approval_id=None if asked is None else asked.id,
        input_hash=None if asked is None else asked.input_hash,
        schema_hash=None if asked is None else asked.schema_hash,
        expired=expired,
        decided_at=now,
    )
    await record_decision(tx, parts.owner.agent_id, decision, now=now)
    if asked is not None:
        outcome = "expired" if expired else "allowed" if decision.approved else "denied"
        await close_approval(tx, parts.owner.agent_id, asked, outcome, now=now)
    crash_here("a2")
    return decision


async def announce_answer(parts: Parts, answer: Answer, answered: Answered) -> None:
    """`after_tool_call` and `on_message` for what was decided outside the loop; an approved call
    runs later.
    """
    part, growing = answered.part, answered.growing
    if part is None or answer.outcome == "executed":
        return
    turn = answered.turn or no_turn(parts)
    name = tool_name(part)
    tool = tool_of(parts, name, growing)
    error = part.get("errorText")
    denied = part.get("state") == "output-denied"
    failure = error or ("The call was not allowed." if denied else None)
    context = call_ended(
        **facts_of(turn, parts.agent_ref, None if growing is None else growing.signal),
        tool_call_id=answer.tool_call_id,
        tool_name=name,
        input=part.get("input"),
        original_input=part.get("input"),
        step_number=_step_of(answered, answer.tool_call_id),
        messages=(),
        tool=tool,
        outcome=answer.outcome,
        output=part.get("output"),
        error=None if failure is None else RuntimeError(failure),
        duration_ms=0.0,
        dynamic=is_dynamic(parts, turn, name, tool, unknown=part["type"] == "dynamic-tool"),
    )
    await parts.hooks.observe_end("after_tool_call", context)
    message = to_tool_message(part)
    if message is not None and answered.message is not None:
        told = MessageContext(
            **facts_of(turn, parts.agent_ref, context.abort_signal),
            message=message,
            ui_message_id=answered.message["id"],
            step_number=context.step_number,
        )
        await parts.hooks.observe_end("on_message", told)


def _step_of(answered: Answered, tool_call_id: str) -> int:
    """Which step of its turn asked for the call: an answer may have steps of several turns."""
    blocks = step_blocks([] if answered.message is None else answered.message["parts"])
    place = next(
        (i for i, b in enumerate(blocks) if any(p.get("toolCallId") == tool_call_id for p in b)), 0
    )
    if answered.growing is not None:
        return place - answered.growing.reply.earlier_steps
    own = len(blocks) if answered.turn is None else answered.turn.steps
    return max(place - (len(blocks) - own), 0)


async def waits_for_outside(parts: Parts, running: RunningTurn | None) -> bool:
    """Whether a call waits for a client or a person, also in a growing answer (spec/02 §3.9)."""
    messages = await parts.session.get_history()
    if running is not None:
        messages.append(running.reply.fold.message)
    return has_pending_interaction(messages, await _client_tool_names(parts))


async def _client_tool_names(parts: Parts) -> set[str]:
    """Tools that clients answer: declared by the agent without a function, or by the client."""
    newest = await newest_turn(parts.store, parts.owner.agent_id)
    given = await call_hook("get_tools", parts.agent.get_tools)
    tools = {**parts.own_tools, **read_tools(given, "get_tools()")}
    declared = () if newest is None else newest.client_tools
    names = {name for name, tool in tools.items() if tool.is_client}
    return names | {str(tool.get("name")) for tool in declared}


async def find_stored_call(
    reader: Reader, parts: Parts, tool_call_id: str, message_id: str | None = None
) -> StoredCall | None:
    """The newest stored call with that id on the path, if it is not too far back.

    With `message_id`, the one in that message.
    """
    found = await _find(reader, parts, tool_call_id, message_id)
    return None if found is None else find_call([found.message], tool_call_id)


async def recent_messages(reader: Reader, parts: Parts) -> list[UIMessage]:
    """As far back as an answer looks for its call, oldest first."""
    recent = await parts.session.get_recent_history(SEARCHED_BYTES, 1, reader=reader)
    return [stored.message for stored in recent.messages]


async def _find(
    reader: Reader, parts: Parts, tool_call_id: str, message_id: str | None
) -> StoredMessage | None:
    recent = await parts.session.get_recent_history(SEARCHED_BYTES, 1, reader=reader)
    meant = [stored for stored in recent.messages if message_id in (None, stored.id)]
    found = find_call([stored.message for stored in meant], tool_call_id)
    if found is None:
        return None
    return next(stored for stored in meant if stored.message is found.message)
