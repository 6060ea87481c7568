"""An interrupted turn: whether it goes on, and how (spec/04 §5, DESIGN §8.3).

`journal/budget.py` decides, `should_keep_recovering` may refuse, `on_chat_recovery` may drop the
words of the interrupted step or end the turn. A turn that goes on keeps its id, its message, its
journal and its place: there is no schedule, no second request and nothing to wait for.

The agent's code that is asked here may be what kills the process. So the row says where it is
first, as everywhere in a second attempt (`places.py`), and none of it runs once the budget is
spent.
"""

from __future__ import annotations

import msgspec

from thinkwell.core.errors import AbortTurn, FailTurn, TurnError
from thinkwell.core.turn_events import (
    ChatRecoveryAttempt,
    ChatRecoveryDetected,
    ChatRecoveryScheduled,
)
from thinkwell.core.user_code import call_hook
from thinkwell.hooks.contexts import ChatRecoveryContext
from thinkwell.hooks.recovery import AS_USUAL, RecoveryOptions, recovery_of
from thinkwell.journal.budget import GivenUp, GoOn, Incident, Interruption, decide, hook_place
from thinkwell.messages.message import is_tool_part
from thinkwell.turn.end.ending import GAVE_UP, Ending, Failed, Parked, StageError
from thinkwell.turn.end.recovered import recovery_context, recovery_facts
from thinkwell.turn.run.journal_events import note_decision
from thinkwell.turn.run.kept_answer import give_up_answer
from thinkwell.turn.run.places import at, keep_record
from thinkwell.turn.run.resume import has_begun, interruption_of
from thinkwell.turn.run.running import RunningTurn

STALL_DELAY = 0.5
"""Seconds before the attempt after the second stall in a row; doubled each time."""
LONGEST_PAUSE = 30.0
PREDICATE = "should_keep_recovering"
RESET = "reset-step"


async def take_up(turn: RunningTurn, *, finished: bool) -> Ending | None:
    """The process ended under the last attempt. Returns how the turn ends if no other is made.

    `finished`: everything was said, so that only the end has to be stored.
    """
    found = await interruption_of(turn)
    decision = _decide(turn, turn.record.incident, found)
    if isinstance(decision, GivenUp) and not finished:
        _give_up(turn, decision)
        return Parked(decision)
    before = turn.record.incident
    _count_attempt(turn, decision)
    if isinstance(decision, GivenUp) or finished:
        turn.past.declined = "already_answered"
        return None
    if turn.signal.aborted:
        turn.past.declined = "stopped"
        return None
    answer = await _ask_app(turn, before, found, decision)
    if isinstance(answer, GivenUp):
        return Parked(answer)
    if not answer.continue_:
        turn.input_applied = True  # by the attempt before
        return Failed("recovery", _decline(turn))
    _report_scheduled(turn, found, 0.0)
    return None


async def take_up_after_stall(turn: RunningTurn) -> float:
    """The model fell silent: the same without a restart. Seconds until the attempt begins.

    Raises `StageError` if no other is made.
    """
    before, past = turn.record.incident, turn.past
    found = Interruption(
        cause="stall",
        progress=past.progress,
        milestones=past.milestones,
        said=has_begun(turn),
        step=turn.step_number,
    )
    answer = decision = _decide(turn, before, found)
    if isinstance(decision, GoOn):
        _count_attempt(turn, decision)
        answer = await _ask_app(turn, before, found, decision)
    else:
        _give_up(turn, decision)
    if isinstance(answer, GivenUp):
        raise StageError("recovery", TurnError(_terminal(turn)))
    if isinstance(answer, RecoveryOptions) and not answer.continue_:
        raise StageError("recovery", _decline(turn))
    pause = stall_pause(turn.record.incident.stalls)
    _report_scheduled(turn, found, pause)
    return pause


def stall_pause(stalls: int) -> float:
    """Seconds before the next attempt: none after the first stall, then more and more."""
    return 0.0 if stalls < 2 else min(STALL_DELAY * 2 ** (stalls - 2), LONGEST_PAUSE)


async def attempt_begins(turn: RunningTurn) -> None:
    """Another attempt is stored: it is reported, and what a hook wants to be dropped goes."""
    facts = recovery_facts(turn.parts, turn.record, turn.past.kind)
    turn.parts.bus.emit(ChatRecoveryAttempt, **facts)
    if turn.past.drops:
        turn.past.drops, turn.past.finish, turn.past.open_text = False, None, None
        give_up_answer(turn)
        await turn.emit({"type": RESET})


def _decide(
    turn: RunningTurn, incident: Incident, found: Interruption, *, wanted: bool = True
) -> GoOn | GivenUp:
    """The one decision there is, with what holds for this agent now."""
    budget, now = recovery_of(turn.parts.agent.chat_recovery), turn.parts.clock.now()
    return decide(incident, found, budget, now, wanted=wanted)


def _count_attempt(turn: RunningTurn, decision: GoOn | GivenUp) -> None:
    """The record says that an attempt begins; from here on it keeps a record of its places."""
    past = turn.past
    if isinstance(decision, GoOn):
        past.kind = decision.kind
    incident = msgspec.structs.replace(decision.incident, exhausted=None).begun(
        turn.parts.boot, past.progress, milestones=past.milestones
    )
    keep_record(turn)
    turn.record = msgspec.structs.replace(turn.record, incident=incident)


async def _ask_app(
    turn: RunningTurn, before: Incident, found: Interruption, decision: GoOn
) -> RecoveryOptions | GivenUp:
    """What the agent's own code says: it may refuse, or choose how to go on."""
    recovery = recovery_of(turn.parts.agent.chat_recovery)
    predicate = recovery.should_keep_recovering if decision.asks else None
    hooks = turn.parts.hooks
    if predicate is None and not hooks.registry.hooks("on_chat_recovery"):
        return AS_USUAL
    context = recovery_context(
        turn.parts, turn.record, turn.reply.own_parts(), kind=decision.kind, signal=turn.signal
    )
    context = msgspec.structs.replace(context, cause=found.cause, used=decision.used)
    if predicate is not None:
        async with at(turn, hook_place(PREDICATE, PREDICATE)):
            wanted = await _asked(turn, predicate, context)
        refusal = _decide(turn, before, found, wanted=wanted)
        if isinstance(refusal, GivenUp):
            _give_up(turn, refusal)
            return refusal
    answer = await hooks.on_chat_recovery(
        context, lambda hook, said: note_decision(turn, "on_chat_recovery", hook, said)
    )
    turn.past.drops = not answer.persist and _has_only_words(turn)
    return answer


async def _asked(turn: RunningTurn, predicate: object, context: ChatRecoveryContext) -> bool:
    """Whether to go on. One that raises, or does not know, has not refused."""
    try:
        return await call_hook(PREDICATE, predicate, context) is not False  # pyright: ignore[reportArgumentType] - checked by ChatRecovery
    except (AbortTurn, FailTurn):
        raise
    except Exception as error:  # noqa: BLE001 - a broken predicate must not end turns
        turn.parts.hooks.report(PREDICATE, PREDICATE, error, context)
        return True


def _has_only_words(turn: RunningTurn) -> bool:
    """Whether the interrupted step can go: a call in it may have had its effect."""
    if not turn.past.step_open or not has_begun(turn):
        return False
    return not any(is_tool_part(part) for part in turn.reply.last_step())


def _give_up(turn: RunningTurn, decision: GivenUp) -> None:
    turn.past.given_up = decision
    turn.record = msgspec.structs.replace(turn.record, incident=decision.incident)


def _decline(turn: RunningTurn) -> TurnError:
    """A hook does not want another attempt: the turn ends with what it has said."""
    turn.past.declined = "continue_disabled"
    if turn.past.drops:
        turn.record_chunk({"type": RESET})
        turn.parts.commits.note(turn.log)
    return TurnError(_terminal(turn))


def _terminal(turn: RunningTurn) -> str:
    return recovery_of(turn.parts.agent.chat_recovery).terminal_message or GAVE_UP


def _report_scheduled(turn: RunningTurn, found: Interruption, delay: float) -> None:
    bus, record = turn.parts.bus, turn.record
    facts = recovery_facts(turn.parts, record, turn.past.kind)
    facts["attempt"] += 1  # the one that begins now
    if record.attempt == 1:
        bus.emit(ChatRecoveryDetected, **facts, cause=found.cause)
    bus.emit(ChatRecoveryScheduled, **facts, cause=found.cause, delay=delay)
