"""The loop: ask the model, run the tools it asked for, decide whether to go on.

    prepare_step  `before_step` and the settings of this step make the model request
    call_model    events become chunks (`model_call.py`)
    finish_step   tools run (`tool_calls.py`), the step is recorded, `on_step_finish`
    decide_next   Continue or Final, a pure decision

A step that a crash left open is brought to its end first, by the same functions.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, TypeAlias

import msgspec

from thinkwell.core import json
from thinkwell.core.errors import StoreError
from thinkwell.hooks.answers import StepConfig
from thinkwell.hooks.contexts import ResponseInfo, StepContext, StepFinishContext, StopReason
from thinkwell.hooks.dispatch import sampling_of
from thinkwell.journal.crash_points import crash_here, crash_is_armed
from thinkwell.messages.convert import to_model_messages
from thinkwell.messages.model_messages import ModelMessage
from thinkwell.models.base import Finish, ModelRequest, ToolSpec
from thinkwell.tools.tool import Tool
from thinkwell.turn.ending import Completed, Ending, StageError
from thinkwell.turn.model_call import Reply, call_model, close_open_text
from thinkwell.turn.prompt import Conversation, Prompt
from thinkwell.turn.resume import CUT, MAY_GO_ON, open_tool_calls, stop_reason_of
from thinkwell.turn.running import RunningTurn
from thinkwell.turn.step import Step
from thinkwell.turn.step_result import finish_to_json, step_blocks, step_result
from thinkwell.turn.tool_calls import PendingCall, run_tool_calls


class Continue(msgspec.Struct, frozen=True):
    """The model must see what its tools gave."""


class Final(msgspec.Struct, frozen=True):
    """Nothing more to do."""

    stop_reason: StopReason


Next: TypeAlias = Continue | Final


async def run_steps(turn: RunningTurn, prompt: Prompt) -> Ending:
    """Run steps until one is final."""
    conversation = Conversation(prompt.system, prompt.messages)
    for step in turn.steps:
        conversation.add(step_messages(step.content))
    following = await _finish_interrupted_step(turn, prompt, conversation)
    while isinstance(following, Continue):
        turn.signal.throw_if_aborted()
        step = await prepare_step(turn, prompt, conversation)
        reply = await _answer(turn, step)
        following = await finish_step(turn, prompt, step, reply)
        conversation.add(step_messages(turn.steps[-1].content))
    finish_reason = turn.steps[-1].finish_reason
    await turn.emit({"type": "finish", "finishReason": finish_reason})
    if crash_is_armed("c10"):
        await turn.parts.commits.flush()
        crash_here("c10")
    return Completed(following.stop_reason)


async def prepare_step(turn: RunningTurn, prompt: Prompt, conversation: Conversation) -> Step:
    """The request of the next model call, after `before_step`."""
    base = prompt.config
    context = StepContext(
        **turn.hook_fields(),
        step_number=turn.step_number,
        steps=tuple(turn.steps),
        model=prompt.model,
        system=conversation.system,
        messages=conversation.messages(_begun(turn)),
        tools=MappingProxyType(_active(prompt.tools, base.active_tools)),
        tool_choice=base.tool_choice or "auto",
        remaining_steps=prompt.max_steps - turn.step_number,
    )
    try:
        config = await turn.parts.hooks.before_step(context)
        if config.messages is not None:
            conversation.replace(tuple(config.messages))
        if config.system is not None:
            conversation.system = config.system
        return _step(turn, prompt, context, config)
    except StoreError:
        raise
    except Exception as error:
        raise StageError("step", error) from error


def _step(turn: RunningTurn, prompt: Prompt, context: StepContext, config: StepConfig) -> Step:
    active = (
        dict(context.tools)
        if config.active_tools is None
        else _active(prompt.tools, config.active_tools)
    )
    model = turn.parts.resolve_model(config.model) if config.model else prompt.model
    request = ModelRequest(
        messages=context.messages if config.messages is None else tuple(config.messages),
        system=context.system if config.system is None else config.system,
        tools=tuple(ToolSpec(t.name, t.description, t.input_schema) for t in active.values()),
        tool_choice=config.tool_choice or context.tool_choice,
        headers=prompt.config.headers or {},
        **sampling_of(prompt.config, config),
    )
    return Step(number=turn.step_number, model=model, request=request, tools=active)


async def _answer(turn: RunningTurn, step: Step) -> Reply:
    if not turn.started:
        turn.started = True
        await turn.emit({"type": "start", "messageId": turn.message_id})
    if turn.interrupted:
        turn.interrupted = False  # the step goes on where the crash cut it
    else:
        await turn.emit({"type": "start-step"})
    return await call_model(turn, step)


async def finish_step(turn: RunningTurn, prompt: Prompt, step: Step, reply: Reply) -> Next:
    """Run the tools the model asked for, record the step, tell the hooks."""
    finish = reply.finish
    turn.log.append_event("model", finish_to_json(step.number, finish))
    turn.parts.commits.note(turn.log)
    await run_tool_calls(turn, step, reply.calls, finish.reason)
    await turn.emit({"type": "finish-step"})
    block = step_blocks(turn.fold.message["parts"])[-1]
    encoded = json.dumps(block)
    turn.steps.append(step_result(step.number, json.loads(encoded), finish))
    turn.step_number += 1
    if turn.parts.hooks.registry.hooks("on_step_finish"):
        await turn.parts.commits.flush()
        result = step_result(step.number, json.loads(encoded), finish)  # the hooks' own copy
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
        )
        await turn.parts.hooks.observe("on_step_finish", context)
    following = decide_next(
        finish, called=bool(reply.calls), steps_left=prompt.max_steps - turn.step_number
    )
    if isinstance(following, Continue):
        await turn.parts.commits.flush()
        crash_here("c9")
    return following


def decide_next(finish: Finish, *, called: bool, steps_left: int) -> Next:
    """Go on only if tools ran and another step is allowed (spec/02 §4.2)."""
    if not called or finish.reason not in MAY_GO_ON:
        return Final(stop_reason_of(finish.reason))
    if steps_left <= 0:
        return Final("max_steps")
    return Continue()


async def _finish_interrupted_step(
    turn: RunningTurn, prompt: Prompt, conversation: Conversation
) -> Next:
    if not turn.interrupted:
        return _after_last_step(turn, prompt)
    await _close_open_parts(turn)
    parts = open_tool_calls(turn)
    if not parts and turn.interrupted_finish is CUT:
        return Continue()  # the model goes on in this step: `_begun`
    await close_open_text(turn)
    turn.interrupted = False
    calls = [PendingCall.from_part(part, turn.ledger.get(part["toolCallId"])) for part in parts]
    step = Step(
        number=turn.step_number,
        model=prompt.model,
        request=ModelRequest(messages=conversation.messages(), system=conversation.system),
        tools=prompt.tools,
    )
    following = await finish_step(turn, prompt, step, Reply(turn.interrupted_finish or CUT, calls))
    conversation.add(step_messages(turn.steps[-1].content))
    return following


def _after_last_step(turn: RunningTurn, prompt: Prompt) -> Next:
    """A crash between a step and what comes after it: decide as if it had ended just now."""
    if not turn.steps:
        return Continue()
    last = turn.steps[-1]
    return decide_next(
        Finish(reason=last.finish_reason),
        called=bool(last.tool_calls),
        steps_left=prompt.max_steps - turn.step_number,
    )


def _begun(turn: RunningTurn) -> tuple[ModelMessage, ...]:
    """What the model had said in a step that a crash cut: it is asked to go on from there."""
    if not turn.interrupted:
        return ()
    return step_messages(step_blocks(turn.fold.message["parts"])[-1])


async def _close_open_parts(turn: RunningTurn) -> None:
    """Reasoning is closed; a text that is the step's last part stays open, so that it can go on."""
    parts = turn.fold.message["parts"]
    open_parts = turn.fold.open_parts()
    for part in open_parts:
        if part.kind == "text" and parts[-1].get("type") == "text" and part is open_parts[-1]:
            turn.open_text = part.id
        elif part.kind in ("text", "reasoning"):
            await turn.emit({"type": f"{part.kind}-end", "id": part.id})


def step_messages(block: Any) -> tuple[ModelMessage, ...]:
    """A step as the model sees it afterwards."""
    return to_model_messages({"id": "", "role": "assistant", "parts": list(block)})


def _active(tools: Any, names: Any) -> dict[str, Tool]:
    if names is None:
        return dict(tools)
    wanted = set(names)
    return {name: tool for name, tool in tools.items() if name in wanted}
