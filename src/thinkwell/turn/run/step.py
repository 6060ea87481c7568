"""One step: the request of its model call, made from the prompt, the scopes and `before_step`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, cast

import msgspec

from thinkwell.hooks.answers import SAME_STEP, StepConfig, TurnConfig
from thinkwell.hooks.contexts import ModelResponse, StepContext
from thinkwell.hooks.reading import merge_options, sampling_of
from thinkwell.messages.convert import close_with_user
from thinkwell.messages.model_messages import ModelMessage
from thinkwell.models.base import Model, ModelRequest, NamedTool, ToolChoice, ToolSpec
from thinkwell.tools.output import (
    Output,
    final_answer_instruction,
    final_answer_tool,
    prompted_instruction,
    resolve_mode,
)
from thinkwell.tools.scope import ScopeSections, inject_user
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

    def messages(
        self, begun: tuple[ModelMessage, ...] = (), *, paused: bool = False
    ) -> tuple[ModelMessage, ...]:
        """What the model is sent, with a step it has begun.

        Never ends with an assistant message (spec/02 §10.12), unless the provider has `paused` in
        it: then it wants to see just that.
        """
        said = self._messages + begun
        return said if paused else tuple(close_with_user(said))


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
    sections = await turn.parts.scopes.sections()
    context = StepContext(
        **turn.hook_fields(),
        step_number=turn.step_number,
        steps=tuple(turn.steps),
        model=prompt.model,
        system=conversation.system,
        messages=conversation.messages(begun, paused=turn.paused is not None),
        tools=MappingProxyType(tools),
        tool_choice=(_choice(prompt.config) if tools else None) or "auto",
        remaining_steps=max(turn.settings.max_steps - turn.steps_used, 0),
        runtime_context=conversation.runtime_context,
        request=ModelRequest(messages=()),
    )
    config, response = SAME_STEP, None
    # What hooks are shown is what would be sent: they may keep it as the key of a cache.
    context = _with_request(turn, prompt.config, context, sections)
    if turn.paused:
        context = _with_options(context, {context.model.provider: turn.paused})
    if turn.parts.hooks.registry.hooks("before_step"):
        context, config, response = await _ask_hooks(turn, known, sections, context)
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
    return _with_output(step, _output(turn, config), forced=forced)


async def _ask_hooks(
    turn: RunningTurn, known: Mapping[str, Tool], sections: ScopeSections, context: StepContext
) -> tuple[StepContext, StepConfig, ModelResponse | None]:
    """What `before_step` makes of the step."""

    def patch(current: StepContext, config: StepConfig) -> StepContext:
        changes, sent = _patch(turn, known, config)
        for name, add in (("system", _with_section), ("messages", _injected)):
            if name in changes:
                sent[name] = add(changes[name], sections)
        options = sent.get("provider_options")
        if options is not None:
            sent["provider_options"] = merge_options(current.request.provider_options, options)
        request = msgspec.structs.replace(current.request, **sent)
        return msgspec.structs.replace(current, request=request, **changes)

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
    return settings.on_max_steps != "answer" and turn.steps_used + 1 >= settings.max_steps


def _patch(
    turn: RunningTurn, known: Mapping[str, Tool], config: StepConfig
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What one hook changes: in the context that the next hook sees, and in the request.

    Only what it names: an earlier hook may have replaced the rest of the request.
    """
    changes: dict[str, Any] = {}
    sent = sampling_of(config)
    if config.model is not None:
        changes["model"] = turn.parts.resolve_model(config.model)
    if config.system is not None:
        changes["system"] = config.system
    if config.messages is not None:
        changes["messages"] = tuple(close_with_user(_messages(config)))
    if config.active_tools is not None:
        chosen = _active(known, config.active_tools)
        offered = {name: tool for name, tool in chosen.items() if tool.is_enabled()}
        changes["tools"] = MappingProxyType(offered)
        sent["tools"] = _specs(offered.values())
    if config.tool_choice is not None:
        changes["tool_choice"] = sent["tool_choice"] = config.tool_choice
    if config.runtime_context is not None:
        changes["runtime_context"] = config.runtime_context
    return changes, sent


def _with_request(
    turn: RunningTurn, config: TurnConfig, context: StepContext, sections: ScopeSections
) -> StepContext:
    """The context with the request as it is sent if no hook says anything."""
    request = ModelRequest(
        messages=_injected(context.messages, sections),
        system=_with_section(context.system, sections),
        tools=_specs(context.tools.values()),
        tool_choice=context.tool_choice,
        headers={name: v for name, v in (config.headers or {}).items() if v is not None},
        connect_timeout=turn.settings.limits.connect,
        **sampling_of(config),
    )
    output = _output(turn, SAME_STEP)
    if output is not None and _mode_of(output, context.model, context.tools) == "native":
        request = _with_format(request, output)
    return msgspec.structs.replace(context, request=request)


def _with_options(context: StepContext, options: Mapping[str, Any]) -> StepContext:
    merged = merge_options(context.request.provider_options, options)
    request = msgspec.structs.replace(context.request, provider_options=merged)
    return msgspec.structs.replace(context, request=request)


def _output(turn: RunningTurn, config: StepConfig) -> Output[Any] | None:
    """The structured output that is asked for, if any."""
    settings = turn.settings
    return settings.output if settings.output_fixed else config.output or settings.output


def _choice(config: TurnConfig | StepConfig) -> ToolChoice | None:
    """The tool choice of a config that was read (`hooks/given.py`)."""
    return cast("ToolChoice | None", config.tool_choice)


def _messages(config: StepConfig) -> tuple[ModelMessage, ...]:
    """The messages of a config that was read (`hooks/given.py`)."""
    return tuple(cast("Sequence[ModelMessage]", config.messages))


def _keep(conversation: Conversation, config: StepConfig) -> None:
    """What one step's hooks chose for later steps too."""
    if config.messages is not None:
        conversation.replace(_messages(config))
    if config.system is not None:
        conversation.system = config.system
    if config.runtime_context is not None:
        conversation.runtime_context = config.runtime_context


def _with_output(step: Step, output: Output[Any] | None, *, forced: bool) -> Step:
    """Ask for structured output: as a response format, in words, or through a hidden tool (spec/02
    §8.3).
    """
    if output is None:
        return step
    mode = _mode_of(output, step.model, step.tools)
    if mode == "native":
        request = _with_format(step.request, output)
        return msgspec.structs.replace(step, request=request, output=output)
    if mode == "prompted":
        asked = f"{step.request.system}\n\n{prompted_instruction(output)}".strip()
        request = msgspec.structs.replace(step.request, system=asked, response_format=None)
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
        response_format=None,
    )
    return msgspec.structs.replace(step, request=request, output=output, answer_tool=answer.name)


def _mode_of(output: Output[Any], model: Model, tools: Mapping[str, Tool]) -> str:
    native = getattr(model, "supports_response_format", False)
    return resolve_mode(output, native_supported=native, tools_active=bool(tools))


def _with_format(request: ModelRequest, output: Output[Any]) -> ModelRequest:
    return msgspec.structs.replace(
        request, response_format=output.json_schema, response_name=output.name
    )


# The live context of the scopes is in the request only, never in history (spec/02 §12.7).


def _with_section(system: str, sections: ScopeSections) -> str:
    return "\n\n".join(text for text in (system, sections.system) if text)


def _injected(
    messages: tuple[ModelMessage, ...], sections: ScopeSections
) -> tuple[ModelMessage, ...]:
    return tuple(inject_user(messages, sections.user)) if sections.user else messages


def _specs(tools: Iterable[Tool]) -> tuple[ToolSpec, ...]:
    return tuple(ToolSpec(t.name, t.description, t.input_schema) for t in tools)


def _active(tools: Mapping[str, Tool], names: Any) -> dict[str, Tool]:
    if names is None:
        return dict(tools)
    wanted = set(names)
    return {name: tool for name, tool in tools.items() if name in wanted}
