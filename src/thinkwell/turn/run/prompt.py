"""What a turn sends to the model: the assembled prompt, and how it grows from step to step.

A block of the system prompt says what the agent can do in this turn (spec/02 §9.4). It is built
from the names of the tools that are really offered, so it never promises what is not there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
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


MARKER = "## What you can do here"

_WITH_TOOLS = (
    "You can call these tools: {names}. Call one when it helps to answer; its own description says "
    "what it does and what it needs. A tool may run on another machine and take a while."
)
_WITHOUT_TOOLS = "You have no tools in this conversation; answer from what you know and are told."
_ALWAYS = "Do not claim to have done or to be able to do anything that these tools do not offer."


def with_capabilities(system: str, tool_names: Collection[str], lines: Sequence[str] = ()) -> str:
    """The system prompt with the block, unless it has one already."""
    if MARKER in system:
        return system
    return f"{system}\n\n{capability_block(tool_names, lines)}".strip()


def capability_block(tool_names: Collection[str], lines: Sequence[str] = ()) -> str:
    """The block for these tools, with what features say about theirs."""
    names = ", ".join(sorted(tool_names))
    first = _WITH_TOOLS.format(names=names) if names else _WITHOUT_TOOLS
    return "\n".join((MARKER, first, *lines, _ALWAYS))
