"""What hooks may answer: settings for a turn or a step, and decisions about a tool call (spec/02
§5.8.3, §8).

`None` in a config field means "as it was". `UNSET` in a decision means "not given", because None
is a value there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from thinkwell.messages.model_messages import ModelMessage
from thinkwell.models.base import ToolChoice
from thinkwell.tools.tool import Tool


class Sampling(msgspec.Struct, frozen=True, kw_only=True):
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


SAMPLING_FIELDS: Final = tuple(Sampling.__struct_fields__)


class TurnConfig(Sampling, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Answer of `before_turn`: changes for this turn only."""

    model: Any = None
    """A model or its name."""
    system: str | None = None
    """Replaces the whole system prompt."""
    messages: Sequence[ModelMessage] | None = None
    """Replaces what the model is sent of the conversation."""
    tools: Mapping[str, Tool] | None = None
    """Tools added on top; the same name overrides."""
    active_tools: Sequence[str] | None = None
    """Only these tools are offered; an empty list offers none."""
    tool_choice: ToolChoice | None = None
    max_steps: int | None = None
    headers: Mapping[str, str] | None = None


class StepConfig(Sampling, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Answer of `before_step`.

    `messages` and `system` stay for later steps, the rest is for this step.
    """

    model: Any = None
    system: str | None = None
    messages: Sequence[ModelMessage] | None = None
    active_tools: Sequence[str] | None = None
    tool_choice: ToolChoice | None = None


class Allow(msgspec.Struct, frozen=True):
    """Run the tool, with another input if given."""

    input: Mapping[str, Any] | UnsetType = UNSET


class Block(msgspec.Struct, frozen=True):
    """Do not run the tool; the model reads the reason as its result."""

    reason: str | None = None


class Substitute(msgspec.Struct, frozen=True):
    """Do not run the tool; `output` is its result."""

    output: Any


ToolDecision: TypeAlias = Allow | Block | Substitute
