"""What hooks may answer: settings for a turn or a step, and decisions about a tool call (spec/02
§5.8.3, §8).

`None` in a config field means "as it was". `UNSET` in a decision means "not given", because None
is a value there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from thinkwell.core.errors import ConfigurationError
from thinkwell.core.named_fields import NamedFields
from thinkwell.hooks import values
from thinkwell.hooks.time_limits import limits_of
from thinkwell.hooks.tool_choice import TOOL_CHOICE
from thinkwell.messages.chunks import Chunk
from thinkwell.messages.model_messages import ModelMessage
from thinkwell.models.base import ToolChoice
from thinkwell.tools.output import Output
from thinkwell.tools.repair import RepairToolCall
from thinkwell.tools.stopping import StopCondition

Transform: TypeAlias = Callable[[Chunk], Chunk | None]
"""Contract: pure and quick; called for every chunk before hooks, storage and clients see it."""


def _is_iterable(value: Any) -> bool:
    """Messages are read when they are needed: here only that they are several."""
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


_KINDS: Final[Mapping[str, values.ValueKind]] = {
    "active_tools": values.several('`["read"]`', of=values.is_text),
    "chat_stream_stall_timeout": values.SECONDS,
    "frequency_penalty": values.NUMBER,
    "headers": values.by_name(
        '`{"x-team": "blue"}`', of=lambda value: value is None or values.is_text(value)
    ),
    "max_output_tokens": values.whole(1),
    "max_retries": values.whole(0),
    "max_steps": values.whole(1),
    "messages": values.ValueKind(
        _is_iterable, 'a list, for example `[{"role": "user", "content": "hi"}]`'
    ),
    "on_max_steps": values.ON_MAX_STEPS,
    "output": values.ValueKind(lambda value: isinstance(value, Output), "`Output(Model)`"),
    "presence_penalty": values.NUMBER,
    "provider_options": values.by_name('`{"openai": {"user": "me"}}`', of=values.is_mapping),
    "repair_tool_call": values.FUNCTION,
    "seed": values.whole(),
    "send_reasoning": values.YES_NO,
    "stop_sequences": values.several('`["END"]`', of=values.is_text),
    "stop_when": values.one_or_several("`step_count_is(3)`", of=callable),
    "system": values.TEXT,
    "telemetry": values.by_name('`{"function_id": "summary"}`'),
    "temperature": values.NUMBER,
    "tool_choice": TOOL_CHOICE,
    "tool_execution": values.TOOL_EXECUTION,
    "tools": values.TOOLS,
    "top_k": values.whole(),
    "top_p": values.NUMBER,
    "transforms": values.one_or_several("a function from chunk to chunk", of=callable),
}
"""What the fields must be, wherever they stand. Those that are not here are read where used."""


class Sampling(msgspec.Struct, frozen=True, kw_only=True, metaclass=NamedFields):
    """What is passed to the model as it is."""

    max_output_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    stop_sequences: tuple[str, ...] | None = None
    seed: int | None = None
    provider_options: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        """Refuse what would only fail in the turn, or at the provider."""
        values.check_fields(self, _KINDS)


SAMPLING_FIELDS: Final = tuple(Sampling.__struct_fields__)


class TurnConfig(Sampling, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Answer of `before_turn`: changes for this turn only."""

    model: Any = None
    """A model or its name."""
    system: str | None = None
    """Replaces the whole system prompt."""
    messages: Sequence[ModelMessage | Mapping[str, Any]] | None = None
    """Replaces what the model is sent of the conversation."""
    tools: Mapping[str, Any] | None = None
    """Tools added on top, by the names the model calls them: functions, `Tool`s, pydantic-ai's.
    The same name overrides.
    """
    active_tools: Sequence[str] | None = None
    """Only these tools are offered; an empty list offers none."""
    tool_choice: ToolChoice | Mapping[str, str] | None = None
    max_steps: int | None = None
    on_max_steps: Literal["stop", "error", "answer"] | None = None
    """What happens at the cap: stop, fail with `MaxStepsError`, or one more step without tools."""
    stop_when: StopCondition | Sequence[StopCondition] | None = None
    """More reasons to stop, asked after each step that called tools."""
    send_reasoning: bool | None = None
    """Whether clients see reasoning."""
    output: Output[Any] | None = None
    """The structured output the turn must give."""
    max_retries: int | None = None
    """How often a failed model call is tried again while nothing of it was sent. Default 2."""
    timeout: float | Mapping[str, Any] | None = None
    """Seconds for the turn, or by name as in `time_limits`; None switches one off."""
    chat_stream_stall_timeout: float | None = None
    """Seconds without a chunk after which the model call is begun anew; 0 means never."""
    headers: Mapping[str, str | None] | None = None
    """HTTP headers of the model call; None takes one away that an earlier hook has set."""
    repair_tool_call: RepairToolCall | None = None
    """Mends a call with an unknown tool or arguments that do not fit."""
    transforms: Transform | Sequence[Transform] | None = None
    """Functions from chunk to chunk, before `on_chunk`; None drops the chunk."""
    telemetry: Mapping[str, Any] | None = None
    """Settings of the spans: function_id, metadata, record_inputs, record_outputs, enabled."""
    runtime_context: Any = None
    """Anything, handed to tools and `before_step`."""
    tool_execution: Literal["parallel", "sequential"] | None = None

    def __post_init__(self) -> None:
        """Refuse what would only fail in the turn, or at the provider."""
        Sampling.__post_init__(self)
        if self.timeout is not None:
            try:
                limits_of({}, self.timeout)
            except ConfigurationError as error:
                raise TypeError(f"TurnConfig.timeout is wrong. {error}") from None


class StepConfig(Sampling, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Answer of `before_step`.

    `messages` and `system` stay for later steps, the rest is for this step.
    """

    model: Any = None
    system: str | None = None
    messages: Sequence[ModelMessage | Mapping[str, Any]] | None = None
    active_tools: Sequence[str] | None = None
    tool_choice: ToolChoice | Mapping[str, str] | None = None
    output: Output[Any] | None = None
    runtime_context: Any = None
    """Stays for later steps."""


# What most turns and steps have; made once, because making one checks it.
SAME_TURN: Final = TurnConfig()
SAME_STEP: Final = StepConfig()


class Allow(msgspec.Struct, frozen=True):
    """Run the tool, with another input if given."""

    input: Mapping[str, Any] | UnsetType = UNSET


class Block(msgspec.Struct, frozen=True):
    """Do not run the tool; the model reads the reason as its result."""

    reason: str | None = None


class Substitute(msgspec.Struct, frozen=True):
    """Do not run the tool; `output` is its result, as if it had been run with `input`."""

    output: Any
    input: Mapping[str, Any] | UnsetType = UNSET


class Fail(msgspec.Struct, frozen=True):
    """Do not run the tool; the call failed with this error."""

    error: Exception | str


ToolDecision: TypeAlias = Allow | Block | Substitute | Fail
