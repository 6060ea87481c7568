"""Models: the Protocol every model speaks (`base.py`), native adapters, the pydantic-ai bridge.

What is listed here is public: all that a model of your own needs. `resolve.py` turns what a user
wrote (a string, a model, a list) into a `Model`. Nothing here knows turns, hooks or storage;
nothing outside an adapter knows a provider's types.
"""

from thinkwell.models.base import (
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

__all__ = [
    "Failure",
    "FilePart",
    "Finish",
    "FinishReason",
    "Model",
    "ModelEvent",
    "ModelRequest",
    "NamedTool",
    "ReasoningDelta",
    "ReasoningEnd",
    "ReasoningStart",
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
]
