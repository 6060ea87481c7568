"""The conversation as a model sees it: provider-neutral, immutable, without UI details.

`messages/convert.py` makes these from UI messages; adapters in `models/` turn them into a
provider's JSON.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, TypeAlias

import msgspec


class TextContent(msgspec.Struct, frozen=True, tag="text"):
    """A piece of text."""

    text: str


class ReasoningContent(msgspec.Struct, frozen=True, tag="reasoning"):
    """Reasoning of an earlier step, with what the provider needs to accept it back."""

    text: str
    provider_metadata: dict[str, Any] | None = None


class FileContent(msgspec.Struct, frozen=True, tag="file"):
    """A file by URL (`data:` or http)."""

    url: str
    media_type: str
    filename: str | None = None


class ToolCallContent(msgspec.Struct, frozen=True, tag="tool-call"):
    """A tool call the assistant made. `input` is always a JSON object."""

    tool_call_id: str
    tool_name: str
    input: dict[str, Any]
    provider_metadata: dict[str, Any] | None = None
    provider_executed: bool = False
    """The provider ran it; adapters that cannot say so send it like any other."""


class ToolResultContent(msgspec.Struct, frozen=True, tag="tool-result"):
    """What came of a tool call. `kind` says how to read `value`."""

    tool_call_id: str
    tool_name: str
    kind: Literal["text", "json", "content", "error-text", "error-json", "execution-denied"]
    value: Any
    provider_executed: bool = False


class SystemMessage(msgspec.Struct, frozen=True, tag="system"):
    """A system message inside the conversation (not the system prompt)."""

    role: ClassVar[Literal["system"]] = "system"
    content: str


class UserMessage(msgspec.Struct, frozen=True, tag="user"):
    """What a person said."""

    role: ClassVar[Literal["user"]] = "user"
    content: tuple[TextContent | FileContent, ...]


class AssistantMessage(msgspec.Struct, frozen=True, tag="assistant"):
    """What the model said and asked for in one step."""

    role: ClassVar[Literal["assistant"]] = "assistant"
    content: tuple[TextContent | ReasoningContent | FileContent | ToolCallContent, ...]


class ToolMessage(msgspec.Struct, frozen=True, tag="tool"):
    """The results of one step's tool calls, in the order of the calls."""

    role: ClassVar[Literal["tool"]] = "tool"
    content: tuple[ToolResultContent, ...]

    @property
    def id(self) -> str:
        """The id of the call it answers; of several, the first. `on_message` tells one by one."""
        return self.content[0].tool_call_id


ModelMessage: TypeAlias = SystemMessage | UserMessage | AssistantMessage | ToolMessage
