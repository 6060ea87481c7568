"""The reply of one step: from the model, or from a hook in its place; then `on_response`.

A model call that fails before it said anything is tried again while retries are left; one whose
connection is lost later goes on where it was cut, as after a crash (`StalledError`). A response
that hooks change after clients saw it is sent again: `reset-step`, then the new content.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from thinkwell.core.errors import ModelError
from thinkwell.hooks.contexts import ModelResponse, ResponseCall, ResponseContext
from thinkwell.messages.chunks import Chunk
from thinkwell.messages.plain_parts import EVERYWHERE
from thinkwell.models.base import Finish, ToolCall
from thinkwell.models.error_classes import default_error_classifier
from thinkwell.models.prices import CATALOGUED
from thinkwell.turn.end.classify import classify
from thinkwell.turn.end.ending import StageError, StalledError, ends_turn
from thinkwell.turn.run.budgeting import note_usage, release_step, reserve_step, settle_step
from thinkwell.turn.run.call_chunks import emit_call, provider_chunks
from thinkwell.turn.run.growth import Pauses
from thinkwell.turn.run.interrupt import interruptible
from thinkwell.turn.run.journal_events import note_decision, note_failure
from thinkwell.turn.run.kept_answer import lost
from thinkwell.turn.run.model_call import ModelReply, call_model
from thinkwell.turn.run.pending_call import PendingCall, read_call, unanswered_calls
from thinkwell.turn.run.running import RunningTurn, call_on_message
from thinkwell.turn.run.step import Step
from thinkwell.turn.run.step_result import step_messages

KEPT = frozenset(EVERYWHERE)
"""Parts of a step that hooks do not see and a changed response leaves alone."""
NO_ROOM = "budget"
"""The raw reason of a reply that is the server's own: it asks for more than a budget allows."""
RETRY_DELAY = 1.0
"""Seconds that the first retry waits at most; doubled each time."""
LONGEST_DELAY = 60.0
"""A provider that wants more seconds than this between two tries fails the turn with its text."""


class StepReply(msgspec.Struct, frozen=True, kw_only=True):
    """What a step's reply came to."""

    finish: Finish
    calls: Sequence[PendingCall]
    final_answer: str | None = None
    """The input of the hidden answer tool, as JSON text."""


async def get_reply(turn: RunningTurn, step: Step) -> StepReply:
    """Get the reply of a step and send it as it comes."""
    await turn.start_stream()
    if turn.past.step_open:
        turn.past.step_open = False  # the step goes on where it was cut
    else:
        await turn.emit({"type": "start-step"})
    if step.response is not None:
        reply = await _say(turn, step, step.response)
    else:
        reply = await _ask_retrying(turn, step)
        if reply.finish.raw_reason == NO_ROOM:
            return reply  # no model has said anything
    if reply.finish.paused is not None or turn.past.pauses.count:
        if _goes_on(turn, reply):
            if turn.reserved is not None:
                await settle_step(turn)  # the next call reserves for itself
            return reply  # hooks see it once it is whole
        reply = _whole(turn, reply)
    return await _respond(turn, step, reply)


def _goes_on(turn: RunningTurn, reply: StepReply) -> bool:
    """Whether the provider has paused and is asked to go on: each time counts as a step."""
    if reply.finish.paused is None or reply.calls:
        return False
    return turn.steps_used + 1 < turn.settings.max_steps


def _whole(turn: RunningTurn, reply: StepReply) -> StepReply:
    """The reply of the step, with the tokens of calls that only paused; no call stays open."""
    pauses, turn.past.pauses = turn.past.pauses, Pauses(turn.past.pauses.count)
    calls = reply.calls
    if reply.finish.paused is not None and not calls:
        calls = unanswered_calls(turn)
    usage = pauses.usage + reply.finish.usage
    finish = msgspec.structs.replace(reply.finish, usage=usage, paused=None)
    return msgspec.structs.replace(reply, finish=finish, calls=calls)


async def _ask_retrying(turn: RunningTurn, step: Step) -> StepReply:
    tries = 0
    while True:
        called: Step = step
        if turn.parts.agent.budget or turn.parts.app_budgets:
            reserved = await reserve_step(turn, step)
            if isinstance(reserved, PendingCall):
                finish = Finish(reason="tool-calls", raw_reason=NO_ROOM)
                return StepReply(finish=finish, calls=[await emit_call(turn, reserved)])
            called = reserved
        before, kept = _said(turn), turn.kept
        try:
            reply = await _priced(turn, step, await call_model(turn, called))
            if turn.reserved is not None:
                note_usage(turn, reply.finish.usage)
            return reply
        except StageError as failure:
            note_failure(turn, step.number, failure.error)
            # An answer that the provider keeps is billed, even if it cannot be read again.
            unkept = kept is None and turn.kept is None
            if turn.reserved is not None and unkept and _said(turn) == before:
                await release_step(turn, failure.error)
            if kept is not None and turn.kept is None:
                raise lost(turn, failure.error) from failure
            if _said(turn) != before:
                raise _cut_off(failure) or failure from failure
            if tries >= turn.settings.max_retries or not await _worth_a_retry(turn, failure):
                raise
            tries += 1
            with interruptible(turn.signal):
                await turn.parts.sleep(retry_delay(tries, failure.error, turn.parts.random()))
            turn.signal.throw_if_aborted()


def retry_delay(tries: int, error: Exception, random: float) -> float:
    """Seconds before a call is tried again: full jitter under a limit that doubles each time.

    What failed together must not come back together. A provider that says when to come back is
    asked no earlier, and a little later: everybody it refused was told the same time.
    """
    jitter = random * RETRY_DELAY * 2 ** (tries - 1)
    asked = error.retry_after if isinstance(error, ModelError) else None
    return jitter if asked is None else asked + jitter


def _cut_off(failure: StageError) -> StalledError | None:
    """A connection that was lost in the middle of the reply: it goes on as after a crash."""
    error = failure.error
    if failure.stage == "stream" and isinstance(error, ModelError) and error.cut:
        return StalledError(str(error))
    return None


def _said(turn: RunningTurn) -> tuple[int, int]:
    """Grows with whatever the model says, hidden reasoning included."""
    return len(turn.log.bodies), len(turn.reply.fold.message["parts"])


async def _worth_a_retry(turn: RunningTurn, failure: StageError) -> bool:
    """`transient` and `rate_limit` are, whether hooks say so or the provider's own words."""
    if failure.stage != "stream" or retry_delay(1, failure.error, 0.0) > LONGEST_DELAY:
        return False
    classification = await classify(turn, failure.stage, failure.error)
    if classification is None and isinstance(failure.error, ModelError):
        classification = default_error_classifier(failure.error)
    return classification in ("transient", "rate_limit")


async def _priced(turn: RunningTurn, step: Step, reply: ModelReply) -> StepReply:
    """The model's reply, with what it cost where that is known."""
    finish, model, book = reply.finish, step.model, turn.parts.prices
    if not finish.usage.is_empty:
        if book.given or model.provider in CATALOGUED or finish.answered_by is not None:
            await book.load(model)
            finish = book.priced(model, finish)
        else:
            name = f"{model.provider}:{model.model_id}"
            finish = msgspec.structs.replace(finish, answered_by=name)
    return StepReply(finish=finish, calls=reply.calls, final_answer=reply.final_answer)


async def _respond(turn: RunningTurn, step: Step, reply: StepReply) -> StepReply:
    """`on_response`: every hook may change what was answered before tools run."""
    if turn.parts.hooks.registry.hooks("on_response"):
        given = response_of(turn, reply)
        context = ResponseContext(
            **turn.hook_fields(), step_number=step.number, request=step.request, response=given
        )
        try:
            changed = await turn.parts.hooks.on_response(context)
        except Exception as error:
            raise ends_turn(error) or StageError("step", error) from error
        if changed != given:
            note_decision(turn, "on_response", "", {"response": True})
            reply = await _say_again(turn, step, reply, changed)
    if turn.parts.hooks.registry.hooks("on_message"):
        await turn.parts.commits.flush()  # they hear of what has entered the conversation for good
        for message in step_messages(turn.reply.last_step(), with_open_calls=True)[:1]:
            await call_on_message(turn, message, step.number)
    return reply


async def _say_again(
    turn: RunningTurn, step: Step, reply: StepReply, response: ModelResponse
) -> StepReply:
    """Send a changed response in the place of what was sent; files and sources stay."""
    block = turn.reply.last_step()
    kept: list[Chunk] = []
    for part in block:
        if part["type"] in KEPT:
            kept.append(dict(part))
        elif part.get("providerExecuted") is True:
            kept.extend(provider_chunks(part))
    await turn.emit({"type": "reset-step"})
    for chunk in kept:
        await turn.emit(chunk)
    said = await _say(turn, step, response, reply.calls)
    finish = msgspec.structs.replace(
        reply.finish,
        reason=said.finish.reason,
        provider_metadata=said.finish.provider_metadata,
    )
    return StepReply(finish=finish, calls=said.calls, final_answer=reply.final_answer)


def response_of(turn: RunningTurn, reply: StepReply) -> ModelResponse:
    """The step's reply as hooks see it."""
    block = turn.reply.last_step()
    text = "".join(str(part["text"]) for part in block if part["type"] == "text")
    thought = "".join(str(part["text"]) for part in block if part["type"] == "reasoning")
    return ModelResponse(
        content=text or None,
        reasoning=thought or None,
        calls=tuple(
            ResponseCall(id=call.call_id, name=call.tool_name, arguments=call.raw_input or "")
            for call in reply.calls
        ),
        finish_reason=reply.finish.reason,
        metadata=reply.finish.provider_metadata,
    )


async def _say(
    turn: RunningTurn, step: Step, response: ModelResponse, known: Sequence[PendingCall] = ()
) -> StepReply:
    """Send a response that no model streamed as ordinary chunks."""
    metadata_of = {call.call_id: call.provider_metadata for call in known}
    for kind, text in (("reasoning", response.reasoning), ("text", response.content)):
        if text:
            part_id = f"{kind}-{step.number}"
            await turn.emit({"type": f"{kind}-start", "id": part_id})
            await turn.emit({"type": f"{kind}-delta", "id": part_id, "delta": text})
            await turn.emit({"type": f"{kind}-end", "id": part_id})
    calls: list[PendingCall] = []
    for asked in response.calls:
        event = ToolCall(asked.id, asked.name, asked.arguments, metadata_of.get(asked.id))
        calls.append(await emit_call(turn, await read_call(turn, step, event)))
    reason = response.finish_reason
    if reason in ("stop", "tool-calls"):
        reason = "tool-calls" if calls else "stop"
    metadata = None if response.metadata is None else dict(response.metadata)
    return StepReply(finish=Finish(reason=reason, provider_metadata=metadata), calls=calls)
