"""The loop: ask the model, run the tools it asked for, decide whether to go on.

    prepare_step  `before_step` and the settings of this step make the request (`step.py`)
    reply         the model's events become chunks, `on_response` may change them (`reply.py`)
    finish_step   tools run (`tool_calls.py`), the step is recorded, `on_step_finish`
    decide_next   Continue or Final, a pure decision

A step that a crash or a stall left open is brought to its end first, by the same functions.
"""

from __future__ import annotations

from functools import partial
from typing import Any, TypeAlias

import msgspec

from thinkwell.core import json
from thinkwell.core.errors import MaxStepsError, OutputError
from thinkwell.hooks.contexts import ResponseInfo, StepFinishContext, StepResult, StopReason
from thinkwell.journal.crash_points import crash_here, crash_is_armed
from thinkwell.messages.message import Part, tool_name
from thinkwell.messages.model_messages import ModelMessage
from thinkwell.models.base import Finish, ModelRequest
from thinkwell.models.prices import MOST_KEPT
from thinkwell.tools.stopping import should_stop
from thinkwell.turn.end.ending import UNANSWERED, Completed, Ending, StageError
from thinkwell.turn.run.budgeting import settle_step
from thinkwell.turn.run.kept_answer import keeps
from thinkwell.turn.run.model_call import close_open_text
from thinkwell.turn.run.output import OutputPending, read_output
from thinkwell.turn.run.pending_call import PendingCall
from thinkwell.turn.run.reply import StepReply, get_reply
from thinkwell.turn.run.resume import CUT, close_open_parts, note_pause, open_tool_calls
from thinkwell.turn.run.running import RunningTurn
from thinkwell.turn.run.shown_tools import shown_in_step
from thinkwell.turn.run.spans import UNTRACED, step_span
from thinkwell.turn.run.step import Conversation, Prompt, Step, prepare_step, step_tools
from thinkwell.turn.run.step_result import (
    MAY_GO_ON,
    finish_to_json,
    step_messages,
    step_result,
    stop_reason_of,
)
from thinkwell.turn.run.tool_calls import run_tool_calls
from thinkwell.turn.run.tool_policy import is_dynamic_here


class Continue(msgspec.Struct, frozen=True):
    """The model must see what its tools gave. `last`: once more, without tools."""

    last: bool = False
    asked: tuple[ModelMessage, ...] = ()
    """A request of ours that the model must see too."""


class Final(msgspec.Struct, frozen=True):
    """Nothing more to do."""

    stop_reason: StopReason
    output: Any = None


Next: TypeAlias = Continue | Final


async def run_steps(turn: RunningTurn, prompt: Prompt) -> Ending:
    """Run steps until one is final."""
    conversation = Conversation(prompt)
    for done in turn.steps:
        _add_step(turn, conversation, done)
    following = await _finish_interrupted_step(turn, prompt, conversation)
    while isinstance(following, Continue):
        turn.signal.throw_if_aborted()
        step = await prepare_step(turn, prompt, conversation, last=following.last)
        with step_span(turn, step) if turn.settings.telemetry else UNTRACED as told:
            reply = await get_reply(turn, step)
            if told is not None:
                told(reply.finish)
        if reply.finish.paused is not None:
            note_pause(turn, reply.finish)
            continue
        following = await finish_step(turn, step, reply)
        _add_step(turn, conversation, turn.steps[-1])
        following = await _read_output(turn, step, reply, following)
        if isinstance(following, Continue):
            conversation.add(following.asked)
    await turn.emit({"type": "finish", "finishReason": turn.steps[-1].finish_reason})
    if crash_is_armed("c10"):
        await turn.parts.commits.flush()
        crash_here("c10")
    return Completed(following.stop_reason, following.output)


def _add_step(turn: RunningTurn, conversation: Conversation, done: StepResult) -> None:
    """The model sees a finished step from now on."""
    messages = step_messages(done.content)
    conversation.add(messages)
    if not turn.record.continuation:  # there the chunks alone do not tell what the step was
        turn.requests.add_step(done.step_number, messages)


async def finish_step(turn: RunningTurn, step: Step, reply: StepReply) -> Next:
    """Run the tools the model asked for, record the step, tell the hooks."""
    finish = reply.finish
    ended = finish_to_json(step.number, finish, turn.parts.clock.now(), reply.final_answer)
    turn.log.append_event("model", ended)
    turn.parts.commits.note(turn.log)
    if turn.reserved is not None:
        await settle_step(turn)  # with the event above, in one transaction
    await run_tool_calls(turn, step, reply.calls, finish.reason)
    await turn.emit({"type": "finish-step"})
    block = turn.reply.last_step()
    own_copy = json.loads(json.dumps(block))
    turn.steps.append(step_result(step.number, own_copy, finish, partial(_is_dynamic, turn, step)))
    turn.note_spent(finish)
    if finish.answered_by is not None:
        _count_tokens(turn, finish)
    turn.step_number += 1
    await _call_on_step_finish(turn, step, finish)
    following = await _decide(turn, finish, called=bool(reply.calls))
    if isinstance(following, Continue):
        await turn.parts.commits.flush()
        crash_here("c9")
    return following


def _count_tokens(turn: RunningTurn, finish: Finish) -> None:
    """For the metrics: what this process has used of each model."""
    name, spent = finish.answered_by or "", turn.parts.prices.spent
    if (name, "input") not in spent and len(spent) >= 3 * MOST_KEPT:
        name = "other"
    spent[name, "input"] += finish.usage.input_tokens or 0
    spent[name, "output"] += finish.usage.output_tokens or 0
    spent[name, "nano_usd"] += finish.usage.nano_usd or 0


def _is_dynamic(turn: RunningTurn, step: Step, part: Part) -> bool:
    return is_dynamic_here(turn, step, tool_name(part))


async def _decide(turn: RunningTurn, finish: Finish, *, called: bool) -> Next:
    waiting = turn.reply.waiting_calls()
    if waiting:
        return Final("client_tool" if waiting == {"input-available"} else "approval")
    if turn.reply.answered is not None:
        return Final(turn.reply.answered)
    following = decide_next(finish, called=called)
    return await _may_continue(turn) if isinstance(following, Continue) else following


async def _after_last_step(turn: RunningTurn) -> Next:
    """A crash between a step and what comes after it: decide as if it had ended just now."""
    if not turn.steps:
        return Continue()
    last = turn.steps[-1]
    finish = Finish(reason=last.finish_reason)
    following = await _decide(turn, finish, called=bool(last.tool_calls))
    output = turn.settings.output
    if output is None or isinstance(following, Continue) or following.stop_reason in UNANSWERED:
        return following
    try:
        return Final("end", output.parse(last.text))
    except OutputError:  # it was given to the hidden tool, and is lost: once more
        return Continue()


def decide_next(finish: Finish, *, called: bool) -> Next:
    """Go on only if tools ran (spec/02 §4.2)."""
    if not called or finish.reason not in MAY_GO_ON:
        return Final(stop_reason_of(finish.reason))
    return Continue()


async def _may_continue(turn: RunningTurn) -> Next:
    """The caps of the turn: its own conditions, a steering input, the number of steps."""
    settings = turn.settings
    if await should_stop(settings.stop_when, turn.steps):
        return Final("stop_when")
    if turn.steered():
        return Final("steered")
    if turn.steps_used < settings.max_steps:
        return Continue()
    if settings.on_max_steps == "error":
        raise StageError("step", MaxStepsError(turn.steps_used))
    if settings.on_max_steps == "answer" and turn.steps_used == settings.max_steps:
        return Continue(last=True)
    return Final("max_steps")


async def _read_output(turn: RunningTurn, step: Step, reply: StepReply, following: Next) -> Next:
    """Validate the structured output once the turn would end; ask again while retries are left."""
    if step.output is None or (isinstance(following, Continue) and reply.final_answer is None):
        return following
    if isinstance(following, Final) and following.stop_reason in UNANSWERED:
        return following
    outcome = read_output(turn, step, reply)
    if isinstance(outcome, OutputPending):
        return Continue(asked=outcome.messages)
    turn.log.append_event("output", json.dumps({"value": json.to_jsonable(outcome)}))
    return Final("end", outcome)


async def _call_on_step_finish(turn: RunningTurn, step: Step, finish: Finish) -> None:
    if not turn.parts.hooks.registry.hooks("on_step_finish"):
        return
    await turn.parts.commits.flush()
    last = turn.steps[-1]
    own_copy = json.loads(json.dumps(last.content))  # what a hook does to it stays with the hook
    result = step_result(last.step_number, own_copy, finish, partial(_is_dynamic, turn, step))
    response = ResponseInfo(
        id=finish.response_id,
        model_id=finish.model_id or step.model.model_id,
        timestamp=turn.parts.clock.now(),
        messages=step_messages(result.content),
        headers=finish.headers,
    )
    context = StepFinishContext(
        **turn.hook_fields(),
        **{name: getattr(result, name) for name in result.__struct_fields__},
        request=step.request,
        response=response,
        runtime_context=step.runtime_context,
    )
    await turn.parts.hooks.observe("on_step_finish", context)


async def _finish_interrupted_step(
    turn: RunningTurn, prompt: Prompt, conversation: Conversation
) -> Next:
    if not turn.past.step_open:
        return await _after_last_step(turn)
    if turn.paused is not None or (turn.kept is not None and keeps(prompt.model, turn.kept)):
        return Continue()
    await close_open_parts(turn)
    parts = open_tool_calls(turn)
    if not parts and turn.past.finish in (None, CUT):
        return Continue()  # the model goes on in this step: `begun_step`
    await close_open_text(turn)
    turn.past.step_open = False
    ledger = turn.past.ledger
    shown = await shown_in_step(turn) if parts else {}
    calls = [
        PendingCall.from_part(
            part, ledger.get(part["toolCallId"]), shown=shown.get(tool_name(part))
        )
        for part in parts
    ]
    step = Step(
        number=turn.step_number,
        model=prompt.model,
        request=ModelRequest(messages=conversation.messages(), system=conversation.system),
        tools=step_tools(turn, prompt),
        runtime_context=conversation.runtime_context,
    )
    reply = StepReply(finish=turn.past.finish or CUT, calls=calls)
    following = await finish_step(turn, step, reply)
    _add_step(turn, conversation, turn.steps[-1])
    return following
