"""Models: the Protocol every model speaks (`base.py`), native adapters, the pydantic-ai bridge.

What is listed here is public: the native adapters, and all that a model of your own needs.
`resolve.py` turns what a user wrote (a string, a model, a list) into a `Model`. Nothing here knows
turns, hooks or storage; nothing outside an adapter knows a provider's types.
"""

from thinkwell.models.anthropic import AnthropicModel
from thinkwell.models.base import (
    Bookmark,
    Failure,
    FilePart,
    Finish,
    FinishReason,
    Model,
    ModelEvent,
    ModelRequest,
    NamedTool,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    SourceDocument,
    SourceUrl,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolChoice,
    ToolInputDelta,
    ToolInputStart,
    ToolResult,
    ToolSpec,
)
from thinkwell.models.openai_chat import OpenAIChatModel
from thinkwell.models.openai_responses import OpenAIModel
from thinkwell.models.prices import Price, context_window
from thinkwell.models.resumable import ResumableModel

__all__ = [
    "AnthropicModel",
    "Bookmark",
    "Failure",
    "FilePart",
    "Finish",
    "FinishReason",
    "Model",
    "ModelEvent",
    "ModelRequest",
    "NamedTool",
    "OpenAIChatModel",
    "OpenAIModel",
    "Price",
    "ReasoningDelta",
    "ReasoningEnd",
    "ReasoningStart",
    "ResumableModel",
    "SourceDocument",
    "SourceUrl",
    "TextDelta",
    "TextEnd",
    "TextStart",
    "ToolCall",
    "ToolChoice",
    "ToolInputDelta",
    "ToolInputStart",
    "ToolResult",
    "ToolSpec",
    "context_window",
]
