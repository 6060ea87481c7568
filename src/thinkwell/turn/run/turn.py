"""One turn, read as an outline.

Accepting a turn is `turn/ask/`, waiting for the slot `turn/line/`. Here it has the slot:

    begin       its row says running, its input joins the tree, a journal left by a crash is read
    assemble    history, prompt, tools and `before_turn` become the first model request
    approved    calls that a person has allowed since the turn before run first
    steps       model call, tools, again, until nothing is asked for any more
    settle      one transaction stores message, end and journal; then the clients hear
    (the slot is free)
    notify      the hooks of the end, then whoever waits for the result

Whatever goes wrong before `settle` is a value (`Ending`), so that there is one way out for all of
it.
"""

from __future__ import annotations

import asyncio

from thinkwell.core.errors import AbortTurn, FailTurn, StoreError, TurnError
from thinkwell.core.tasks import is_cancelled
from thinkwell.core.user_code import log_fields
from thinkwell.hooks.dispatch import HookFailedError
from thinkwell.journal.budget import ASSEMBLE
from thinkwell.journal.turns import TurnGoneError
from thinkwell.turn.end.ending import (
    Aborted,
    Ending,
    Failed,
    Parked,
    Skipped,
    StageError,
    StalledError,
    TurnOutcome,
)
from thinkwell.turn.end.settle import settle
from thinkwell.turn.run.assemble import assemble
from thinkwell.turn.run.begin import begin, begin_again
from thinkwell.turn.run.interrupt import attend
from thinkwell.turn.run.kept_answer import give_up_answer
from thinkwell.turn.run.places import UNMARKED, at
from thinkwell.turn.run.running import RunningTurn, current_turn
from thinkwell.turn.run.spans import UNTRACED, turn_span
from thinkwell.turn.run.steps import run_steps
from thinkwell.turn.run.tool_calls import run_approved_calls
from thinkwell.turn.run.watch import UNLIMITED, limited


async def run_turn(turn: RunningTurn) -> TurnOutcome:
    """Run a turn that has the slot.

    Returns how it ended; never raises for what hooks, tools or models do.
    """
    token = current_turn.set(turn)
    fields = {"agent": turn.parts.owner.agent_id, "turn": turn.record.request_id}
    if turn.record.principal is not None:
        fields["principal"] = turn.record.principal.id
    said = log_fields.set(fields)
    try:
        ending = await attend(turn, run_attempt(turn))
        if turn.kept is not None and not isinstance(ending, Parked):
            give_up_answer(turn)
        return await settle(turn, ending)
    finally:
        turn.active = False
        current_turn.reset(token)
        log_fields.reset(said)


async def run_attempt(turn: RunningTurn) -> Ending:
    """Everything that may fail, as a value."""
    try:
        resumed = await begin(turn)
        if resumed is not None:
            return resumed
        return await run_until_done(turn)
    except TurnGoneError:  # a clear was faster
        return Skipped("cleared")
    except AbortTurn as stop:
        return Aborted(stop.reason)
    except FailTurn as failure:
        return Failed("hook", failure.error)
    except HookFailedError as failure:
        return Failed("hook", failure.error)
    except StageError as failure:
        return Failed(failure.stage, failure.error)
    except asyncio.CancelledError as error:
        if is_cancelled():
            raise  # the host stops: the turn stays unsettled and goes on at its next start
        return Failed("turn", TurnError(f"Something in the turn raised {error!r}."))
    except Exception as error:  # noqa: BLE001 - the one place where failure becomes a value
        return Failed("persist" if isinstance(error, StoreError) else "turn", error)


async def run_until_done(turn: RunningTurn) -> Ending:
    """Assemble and run; once more for each stall of the model (DESIGN §8.3)."""
    while True:
        try:
            async with at(turn, ASSEMBLE) if turn.places else UNMARKED:
                prompt = await assemble(turn)
            if turn.handle.take_over is not None:
                turn.handle.take_over.leave()
            with turn_span(turn, prompt) if turn.settings.telemetry else UNTRACED:
                total = turn.settings.limits.total
                async with limited(total) if total else UNLIMITED:
                    ready = await run_approved_calls(turn, prompt)
                    return await run_steps(turn, ready)
        except StalledError as stall:
            await begin_again(turn, stall)
