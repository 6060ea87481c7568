"""What a turn sends to the model: the assembled prompt, and how it grows from step to step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from thinkwell.hooks.answers import TurnConfig
from thinkwell.messages.convert import close_with_user
from thinkwell.messages.model_messages import ModelMessage
from thinkwell.models.base import Model
from thinkwell.tools.tool import Tool


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
