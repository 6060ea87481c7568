"""A step under a budget: reserved before the model is called, settled when it has answered.

Nothing here runs in a turn without a budget. The reservation is part of the transaction that stores
the beginning of the step, the settlement of the one that stores the end of its model call. What a
crash, a stop or a lost connection leaves reserved is counted as spent, by the next step or the end
of the turn: the provider may have billed it.

A budget that asks does so as a call of a tool that the server itself runs (`raise_budget`): the
turn ends as for every approval, and the call adds what the author offers once somebody allows it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import msgspec

from thinkwell.core.budgets import Amount, BudgetExceededError
from thinkwell.core.errors import ModelBusyError, ModelError
from thinkwell.core.ids import new_id
from thinkwell.core.money import show_usd
from thinkwell.journal.asked import if_not_stored
from thinkwell.journal.crash_points import crash_here
from thinkwell.journal.events import StepReserved, encode_event, kind_of
from thinkwell.journal.joined_writes import write_soon
from thinkwell.journal.spending import (
    Breach,
    Limit,
    Need,
    Reservation,
    add_allowance,
    close_reservation,
    limit_of,
    reserve,
)
from thinkwell.messages.message import BUDGET_MARK, BUDGET_TOOL, asks_for_budget, tool_parts
from thinkwell.messages.usage import Usage
from thinkwell.models.provider_errors import UnreachableError
from thinkwell.store.base import Transaction
from thinkwell.tools.tool import Tool
from thinkwell.turn.end.ending import StageError
from thinkwell.turn.parts import held_budgets
from thinkwell.turn.run.pending_call import PendingCall
from thinkwell.turn.run.running import RunningTurn
from thinkwell.turn.run.step import Step
from thinkwell.turn.run.worst_case import worst_cases

log = logging.getLogger("thinkwell.turn")

SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "question": {"type": "string"},
        "budget": {"type": "string"},
        "spent": {"type": "string"},
        "reserved": {"type": "string"},
        "needed": {"type": "string"},
        "per": {"type": "string"},
        "owner": {"type": "string"},
        "day": {"type": ["string", "null"]},
        "nanoUsd": {"type": "integer", "minimum": 0},
        "tokens": {"type": "integer", "minimum": 0},
    },
    "required": ["question", "per", "owner", "nanoUsd", "tokens"],
}


async def reserve_step(turn: RunningTurn, step: Step) -> Step | PendingCall:
    """The step, with its worst case reserved; or the call that asks somebody for more.

    Raises `StageError` with what is to be done if there is no room and nobody to ask.
    """
    parts, now = turn.parts, turn.parts.clock.now()
    budgets = held_budgets(parts)
    if not budgets:
        return step
    await parts.prices.load(step.model)
    limits = [limit_of(held, turn.record, now) for held in budgets]
    needs = worst_cases(turn, step, budgets)

    async def work(tx: Transaction) -> Reservation | Breach:
        kept = turn.kept is not None
        got = await reserve(tx, turn.record, limits, needs, step=step.number, now=now, kept=kept)
        if isinstance(got, Reservation):
            _note(turn, step, got.need, now)
        crash_here("b0")
        return got

    got = await parts.commits.insist(parts.owner, work)
    if isinstance(got, Breach):
        return _ask_or_end(turn, got)
    turn.reserved = got
    crash_here("b1")
    if got.need.limit is None:
        return step
    request = msgspec.structs.replace(step.request, max_output_tokens=got.need.limit)
    return msgspec.structs.replace(step, request=request)


def _note(turn: RunningTurn, step: Step, need: Need, now: float) -> None:
    """The journal says what is reserved, in the transaction that reserves it."""
    event = StepReserved(
        step=step.number,
        nano_usd=need.nano_usd,
        tokens=need.tokens,
        limit=need.limit,
        at=now,
    )
    mark = turn.log.mark()
    turn.note(kind_of(event), encode_event(event))
    added = turn.log.since(mark)
    if_not_stored(lambda: turn.log.take_back(added))


def note_usage(turn: RunningTurn, usage: Usage) -> None:
    """The model has answered: so much is settled when the step is finished."""
    if turn.reserved is not None:
        turn.reserved = msgspec.structs.replace(turn.reserved, used=usage)


async def settle_step(turn: RunningTurn) -> None:
    """The model has answered: give back what the step did not need.

    A provider that does not say how much it was, or only half of it, is taken to have used all of
    it; so is one whose price nobody knows.
    """
    reserved, spent = turn.reserved, None
    if reserved is None:
        return
    usage = reserved.used
    if usage is not None and not usage.is_empty:
        tokens = (usage.input_tokens or 0) + (usage.output_tokens or 0)
        need = reserved.need  # no dollars in it: no budget counts them
        spent = _spent(usage, need)
        dearer = bool(need.nano_usd) and (usage.nano_usd or 0) > need.nano_usd
        if dearer or tokens > need.tokens:
            log.warning(
                "a step has used more than was reserved for it: %s tokens and %s nano-dollars "
                "instead of at most %s and %s",
                *(tokens, usage.nano_usd, need.tokens, need.nano_usd),
                extra={"action": "budget"},
            )
    await _close(turn, spent)
    crash_here("b3")


def _spent(usage: Usage, need: Need) -> Amount:
    counts = (usage.input_tokens, usage.output_tokens)
    whole = None not in counts
    tokens = max(sum(count or 0 for count in counts), usage.total_tokens or 0)
    if not whole and usage.total_tokens is None:
        tokens = max(tokens, need.tokens)
    if not whole or usage.nano_usd is None:
        return Amount(max(need.nano_usd, usage.nano_usd or 0), tokens)
    return Amount(usage.nano_usd, tokens)


async def release_step(turn: RunningTurn, error: Exception) -> None:
    """The call failed. What was refused or never sent costs nothing; all else may be billed."""
    if turn.reserved is None or not isinstance(error, ModelError):
        return
    if error.status is not None or _never_sent(error):
        await _close(turn, Amount(0, 0))


def _never_sent(error: ModelError) -> bool:
    """Whether no provider has seen the request: no slot for it, or no connection."""
    cause = error.__cause__
    if isinstance(error, ModelBusyError) or isinstance(cause, UnreachableError):
        return True
    from thinkwell.models.provider_session import is_unreachable  # loaded if it was tried at all

    return isinstance(cause, Exception) and is_unreachable(cause)


async def _close(turn: RunningTurn, spent: Amount | None) -> None:
    parts, now = turn.parts, turn.parts.clock.now()
    key = (turn.record.agent_id, turn.record.request_id)

    async def work(tx: Transaction) -> None:
        await close_reservation(tx, key, now=now, spent=spent)
        crash_here("b2")

    await parts.commits.insist(parts.owner, work)
    turn.reserved = None


# No room


def _ask_or_end(turn: RunningTurn, breach: Breach) -> PendingCall:
    held, figures = breach.limit.held, breach.shown()
    denied = _was_denied(turn)
    if held.budget.on_breach == "stop" or denied:
        asked = " More was asked for and not allowed." if denied else ""
        raise StageError("step", BudgetExceededError(held.budget.words, figures, asked))
    offer = breach.offer()
    nano, tokens = offer.nano_usd or 0, offer.tokens or 0
    amounts = (show_usd(nano) if nano else "", f"{tokens:,} tokens" if tokens else "")
    more = " and ".join(filter(None, amounts))
    return PendingCall(
        call_id=new_id(),
        tool_name=BUDGET_TOOL,
        input={
            "question": f"Continue with {more} more?",
            **figures,
            "per": " and ".join(held.budget.pers),
            "owner": held.owner,
            "day": breach.limit.day,
            "nanoUsd": nano,
            "tokens": tokens,
        },
        provider_metadata=BUDGET_MARK,
    )


def _was_denied(turn: RunningTurn) -> bool:
    """Whether somebody has said no in this answer: to ask again would be to nag."""
    parts = tool_parts(turn.reply.fold.message)
    return any(asks_for_budget(part) and part.get("state") == "output-denied" for part in parts)


def budget_tool(turn: RunningTurn, call: PendingCall) -> Tool | None:
    """The tool behind a call that asks for more; None if the call is the model's own.

    The mark is on calls that were made here: neither a model nor a client can set it.
    """
    if call.tool_name != BUDGET_TOOL or call.provider_metadata != BUDGET_MARK:
        return None
    limit = _limit_in(turn, call.input)
    return Tool(
        name=BUDGET_TOOL,
        description="Asks for more than the budget allows.",
        input_schema=SCHEMA,
        execute=partial(_raise_budget, turn, limit),
        validate=dict,
        effect="tx",
        needs_approval=True,
        approvers=None if limit is None else limit.held.budget.approvers,
    )


def _limit_in(turn: RunningTurn, asked: Mapping[str, Any]) -> Limit | None:
    """The budget that a question was about, if the class still has it."""
    for held in held_budgets(turn.parts):
        named = (held.owner, " and ".join(held.budget.pers))
        cap = held.budget.cap
        other_unit = (asked.get("nanoUsd") and cap.nano_usd is None) or (
            asked.get("tokens") and cap.tokens is None
        )
        if named == (asked.get("owner"), asked.get("per")) and not other_unit:
            return limit_of(held, turn.record, turn.parts.clock.now(), day=asked.get("day"))
    return None


async def _raise_budget(
    turn: RunningTurn, limit: Limit | None, asked: dict[str, Any], _: Any
) -> dict[str, Any]:
    """Somebody has allowed it. What is added is stored together with the result of this call."""
    if limit is None:
        return {"added": False, "reason": "There is no such budget any more."}
    parts, more = turn.parts, Amount(asked["nanoUsd"], asked["tokens"])
    now = parts.clock.now()
    await write_soon(parts.commits, parts.owner, lambda tx: add_allowance(tx, limit, more, now=now))
    return {"added": True}
