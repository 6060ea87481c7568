"""UI messages, parts, chunks and what can be done with them, without any I/O.

What is listed here is public: messages as clients and the database have them, and
messages as models are sent them.
"""

from typing import TYPE_CHECKING, Any

from thinkwell.messages.chunks import Chunk
from thinkwell.messages.message import Part, Role, UIMessage, text_of
from thinkwell.messages.model_messages import (
    AssistantMessage,
    FileContent,
    ModelMessage,
    ReasoningContent,
    SystemMessage,
    TextContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
)
from thinkwell.messages.usage import Usage

if TYPE_CHECKING:
    from thinkwell.messages.stream_chunks import StreamChunk

__all__ = [
    "AssistantMessage",
    "Chunk",
    "FileContent",
    "ModelMessage",
    "Part",
    "ReasoningContent",
    "Role",
    "StreamChunk",
    "SystemMessage",
    "TextContent",
    "ToolCallContent",
    "ToolMessage",
    "ToolResultContent",
    "UIMessage",
    "Usage",
    "UserMessage",
    "text_of",
]


if not TYPE_CHECKING:  # or every misspelt import would be right for type checkers

    def __getattr__(name: str) -> Any:
        """Load the typed chunks when somebody asks for them."""
        if name != "StreamChunk":
            raise AttributeError(f"module 'thinkwell.messages' has no attribute {name!r}")
        from thinkwell.messages.stream_chunks import StreamChunk

        return StreamChunk
