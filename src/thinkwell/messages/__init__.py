"""UI messages, parts, chunks and what can be done with them, without any I/O.

What is listed here is public: messages as clients and the database have them, and
messages as models are sent them.
"""

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

__all__ = [
    "AssistantMessage",
    "Chunk",
    "FileContent",
    "ModelMessage",
    "Part",
    "ReasoningContent",
    "Role",
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
