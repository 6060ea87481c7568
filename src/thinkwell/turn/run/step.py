"""One step: the request of its model call, made from the prompt, the scopes and `before_step`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, cast

import msgspec

from thinkwell.hooks.answers import StepConfig, TurnConfig
from thinkwell.hooks.contexts import ModelResponse, StepContext
from thinkwell.hooks.reading import merge_options, sampling_of
from thinkwell.messages.convert import close_with_user
from thinkwell.messages.model_messages import ModelMessage
from thinkwell.models.base import Model, ModelRequest, NamedTool, ToolChoice, ToolSpec
from thinkwell.tools.output import (
    Output,
    final_answer_instruction,
    final_answer_tool,
    resolve_mode,
)
from thinkwell.tools.scope import inject_user
from thinkwell.tools.tool import Tool
from thinkwell.turn.end.ending import StageError, ends_turn
from thinkwell.turn.run.journal_events import note_decision
from thinkwell.turn.run.running import RunningTurn


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """The result of assembly: everything `before_turn` has had its say about."""

    model: Model
    system: str
    messages: tuple[ModelMessage, ...]
    """The conversation up to this turn's input."""
    tools: Mapping[str, Tool]
    """The static tools; those of scopes join in every step."""
    config: TurnConfig
    """What is passed on to each step: tool choice, sampling, headers."""


class Conversation:
    """What the model is told so far, and what stays from step to step (spec/02 §5.5.3)."""

    def __init__(self, prompt: Prompt) -> None:
        self._messages = prompt.messages
        self.system = prompt.system
        self.runtime_context: Any = prompt.config.runtime_context

    def add(self, step: tuple[ModelMessage, ...]) -> None:
        """A step has ended: the model sees it next time."""
        self._messages += step

    def replace(self, messages: tuple[ModelMessage, ...]) -> None:
        """A hook chose other messages; later steps go on from them."""
        self._messages = messages

    def messages(self, begun: tuple[ModelMessage, ...] = ()) -> tuple[ModelMessage, ...]:
        """What the model is sent, with a step it has begun.

        Never ends with an assistant message (spec/02 §10.12).
        """
        return tuple(close_with_user(self._messages + begun))


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """What `prepare_step` decided."""

    number: int
    model: Model
    request: ModelRequest
    tools: Mapping[str, Tool]
    """Only these may be called."""
    disabled: Mapping[str, Tool] = MappingProxyType({})
    """Tools of the turn that are switched off now: known, but not offered."""
    from_scopes: frozenset[str] = frozenset()
    """Names of tools that scopes brought; they may go before they are called."""
    runtime_context: Any = None
    output: Output[Any] | None = None
    """The structured output this step must give, if it is the last."""
    answer_tool: str | None = None
    """The hidden tool whose input is that output."""
    response: ModelResponse | None = None
    """A hook answered in the model's place."""


async def prepare_step(
    turn: RunningTurn, prompt: Prompt, conversation: Conversation, *, last: bool = False
) -> Step:
    """The next step, after `before_step`. `last` means: the cap is reached, no tools any more."""
    begun = turn.begun_step()
    known = {} if last else _active(step_tools(turn, prompt), prompt.config.active_tools)
    tools = {name: tool for name, tool in known.items() if tool.is_enabled()}
    context = StepContext(
        **turn.hook_fields(),
        step_number=turn.step_number,
        steps=tuple(turn.steps),
        model=prompt.model,
        system=conversation.system,
        messages=conversation.messages(begun),
        tools=MappingProxyType(tools),
        tool_choice=cast("ToolChoice", (prompt.config.tool_choice if tools else None) or "auto"),
        remaining_steps=max(turn.settings.max_steps - turn.step_number, 0),
        runtime_context=conversation.runtime_context,
        request=ModelRequest(
            messages=(),
            headers=prompt.config.headers or {},
            connect_timeout=turn.settings.limits.connect,
        ),
    )
    context = _with_request(context, prompt.config)
    config, response = StepConfig(), None
    if turn.parts.hooks.registry.hooks("before_step"):
        context, config, response = await _ask_hooks(turn, known, context)
        _keep(conversation, config)
    step = Step(
        number=turn.step_number,
        model=context.model,
        request=context.request,
        tools=context.tools,
        disabled={name: tool for name, tool in known.items() if name not in tools},
        from_scopes=frozenset(known.keys() - prompt.tools.keys()),
        runtime_context=context.runtime_context,
        response=response,
    )
    forced = last or _is_last_permitted(turn)
    asked = turn.handle.options  # of whoever waits for the result: no hook changes its type
    output = (asked and asked.output) or config.output or turn.settings.output
    step = _with_output(step, output, forced=forced)
    return await _with_scopes(turn, step)


async def _ask_hooks(
    turn: RunningTurn, known: Mapping[str, Tool], context: StepContext
) -> tuple[StepContext, StepConfig, ModelResponse | None]:
    """What `before_step` makes of the step."""

    def patch(current: StepContext, config: StepConfig) -> StepContext:
        return _patched(turn, known, current, config)

    try:
        return await turn.parts.hooks.before_step(
            context, patch, partial(note_decision, turn, "before_step")
        )
    except Exception as error:
        raise ends_turn(error) or StageError("step", error) from error


def step_tools(turn: RunningTurn, prompt: Prompt) -> dict[str, Tool]:
    """The tools of this step: the turn's own, and those of the scopes that are enabled now."""
    return {**turn.parts.scopes.active_tools(), **prompt.tools}


def _is_last_permitted(turn: RunningTurn) -> bool:
    settings = turn.settings
    return settings.on_max_steps != "answer" and turn.step_number + 1 >= settings.max_steps


def _patched(
    turn: RunningTurn, known: Mapping[str, Tool], context: StepContext, config: StepConfig
) -> StepContext:
    """The context with one hook's changes, so that the next hook sees them."""
    changes: dict[str, Any] = {}
    if config.model is not None:
        changes["model"] = turn.parts.resolve_model(config.model)
    if config.system is not None:
        changes["system"] = config.system
    if config.messages is not None:
        changes["messages"] = tuple(close_with_user(_read(config)))
    if config.active_tools is not None:
        chosen = _active(known, config.active_tools)
        offered = {name: tool for name, tool in chosen.items() if tool.is_enabled()}
        changes["tools"] = MappingProxyType(offered)
    if config.tool_choice is not None:
        changes["tool_choice"] = config.tool_choice
    if config.runtime_context is not None:
        changes["runtime_context"] = config.runtime_context
    return _with_request(msgspec.structs.replace(context, **changes), config)


def _read(config: StepConfig) -> tuple[ModelMessage, ...]:
    # Whatever form a hook wrote them in, `hooks/given.py` has read them.
    return tuple(cast("Sequence[ModelMessage]", config.messages))


def _with_request(context: StepContext, config: TurnConfig | StepConfig) -> StepContext:
    """The context with a request that says the same, and the sampling of one config on top."""
    sampling = sampling_of(config)
    if "provider_options" in sampling:
        before = context.request.provider_options
        sampling["provider_options"] = merge_options(before, sampling["provider_options"])
    request = msgspec.structs.replace(
        context.request,
        messages=context.messages,
        system=context.system,
        tools=_specs(context.tools.values()),
        tool_choice=context.tool_choice,
        **sampling,
    )
    return msgspec.structs.replace(context, request=request)


def _keep(conversation: Conversation, config: StepConfig) -> None:
    """What one step's hooks chose for later steps too."""
    if config.messages is not None:
        conversation.replace(_read(config))
    if config.system is not None:
        conversation.system = config.system
    if config.runtime_context is not None:
        conversation.runtime_context = config.runtime_context


def _with_output(step: Step, output: Output[Any] | None, *, forced: bool) -> Step:
    """Ask for structured output: as a response format, or through a hidden tool (spec/02 §8.3)."""
    if output is None:
        return step
    native = getattr(step.model, "supports_response_format", False)
    mode = resolve_mode(output, native_supported=native, tools_active=bool(step.tools))
    if mode == "native":
        request = msgspec.structs.replace(
            step.request, response_format=output.json_schema, response_name=output.name
        )
        return msgspec.structs.replace(step, request=request, output=output)
    answer = final_answer_tool(output, list(step.tools))
    choice = step.request.tool_choice
    if choice == "auto":
        choice = NamedTool(answer.name) if forced or not step.tools else "required"
    request = msgspec.structs.replace(
        step.request,
        tools=(*step.request.tools, *_specs([answer])),
        tool_choice=choice,
        system=f"{step.request.system}\n\n{final_answer_instruction(answer.name)}".strip(),
    )
    return msgspec.structs.replace(step, request=request, output=output, answer_tool=answer.name)


async def _with_scopes(turn: RunningTurn, step: Step) -> Step:
    """The live context of the scopes, in the request only, never in history (spec/02 §12.7)."""
    sections = await turn.parts.scopes.sections()
    if not sections.system and not sections.user:
        return step
    request = msgspec.structs.replace(
        step.request,
        system="\n\n".join(text for text in (step.request.system, sections.system) if text),
        messages=_injected(step.request.messages, sections.user),
    )
    return msgspec.structs.replace(step, request=request)


def _injected(messages: tuple[ModelMessage, ...], text: str) -> tuple[ModelMessage, ...]:
    return tuple(inject_user(messages, text)) if text else messages


def _specs(tools: Iterable[Tool]) -> tuple[ToolSpec, ...]:
    return tuple(ToolSpec(t.name, t.description, t.input_schema) for t in tools)


def _active(tools: Mapping[str, Tool], names: Any) -> dict[str, Tool]:
    if names is None:
        return dict(tools)
    wanted = set(names)
    return {name: tool for name, tool in tools.items() if name in wanted}
