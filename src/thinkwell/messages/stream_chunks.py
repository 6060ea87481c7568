"""The chunks of a stream by their `type`, for type checkers; `chunks.py` checks them when they run.

`StreamChunk` is what `stream` yields and `on_chunk` is given: after a look at `chunk["type"]` a
type checker knows the fields. Chunks of the family `data-<name>`, which only an app's own
transforms make, are not in it: Python cannot type a prefix, and an open `type` would hide all the
others. Nothing imports this module until somebody asks for it: two dozen classes would cost every
start.
"""

# Without `from __future__ import annotations`: a TypedDict must see which keys may be missing.
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict


class _FromProvider(TypedDict):
    providerMetadata: NotRequired[dict[str, dict[str, Any]]]


class _OfCall(TypedDict):
    toolCallId: str


class _OfResult(_OfCall, _FromProvider):
    dynamic: NotRequired[bool]
    providerExecuted: NotRequired[bool]


class _OfInput(_OfResult):
    toolName: str
    toolMetadata: NotRequired[dict[str, Any]]
    title: NotRequired[str]


class StartChunk(TypedDict):
    """The reply begins."""

    type: Literal["start"]
    messageId: NotRequired[str]
    messageMetadata: NotRequired[dict[str, Any]]


class StepChunk(TypedDict):
    """A step begins, ends, or is answered anew by a hook."""

    type: Literal["start-step", "finish-step", "reset-step"]


class TextEdgeChunk(_FromProvider):
    """A text or a piece of reasoning begins or ends."""

    type: Literal["text-start", "text-end", "reasoning-start", "reasoning-end"]
    id: str


class TextDeltaChunk(_FromProvider):
    """A piece of text or reasoning."""

    type: Literal["text-delta", "reasoning-delta"]
    id: str
    delta: str


class ToolInputStartChunk(_OfInput):
    """The model begins to write the input of a call."""

    type: Literal["tool-input-start"]


class ToolInputDeltaChunk(_OfCall):
    """A piece of a call's JSON input."""

    type: Literal["tool-input-delta"]
    inputTextDelta: str


class ToolInputChunk(_OfInput):
    """The input of a call is complete."""

    type: Literal["tool-input-available"]
    input: Any


class ToolInputErrorChunk(_OfInput):
    """A call that cannot be run: an unknown tool, or input that does not fit."""

    type: Literal["tool-input-error"]
    input: Any
    errorText: str


class ApprovalRequestChunk(_OfCall):
    """A call waits for a person."""

    type: Literal["tool-approval-request"]
    approvalId: str
    isAutomatic: NotRequired[bool]
    signature: NotRequired[str]
    approvalDescriptor: NotRequired[Any]


class ApprovalResponseChunk(_FromProvider):
    """A person has decided."""

    type: Literal["tool-approval-response"]
    approvalId: str
    approved: bool
    reason: NotRequired[str]
    providerExecuted: NotRequired[bool]


class ToolOutputChunk(_OfResult):
    """The result of a call; a `preliminary` one is followed by others."""

    type: Literal["tool-output-available"]
    output: Any
    preliminary: NotRequired[bool]


class ToolOutputErrorChunk(_OfResult):
    """A call failed."""

    type: Literal["tool-output-error"]
    errorText: str


class ToolOutputDeniedChunk(_OfCall):
    """A person refused a call."""

    type: Literal["tool-output-denied"]


class FileChunk(_FromProvider):
    """A file the model made."""

    type: Literal["file", "reasoning-file"]
    mediaType: str
    url: str


class SourceUrlChunk(_FromProvider):
    """A page the answer rests on."""

    type: Literal["source-url"]
    sourceId: str
    url: str
    title: NotRequired[str]


class SourceDocumentChunk(_FromProvider):
    """A document the answer rests on."""

    type: Literal["source-document"]
    sourceId: str
    mediaType: str
    title: str
    filename: NotRequired[str]


class CustomChunk(_FromProvider):
    """What only its provider knows."""

    type: Literal["custom"]
    kind: str


class MetadataChunk(TypedDict):
    """What is added to the reply's metadata."""

    type: Literal["message-metadata"]
    messageMetadata: dict[str, Any]


class FinishChunk(TypedDict):
    """The reply is complete."""

    type: Literal["finish"]
    finishReason: NotRequired[
        Literal["stop", "length", "content-filter", "tool-calls", "error", "other"]
    ]
    messageMetadata: NotRequired[dict[str, Any]]


class AbortChunk(TypedDict):
    """The turn was stopped."""

    type: Literal["abort"]
    reason: NotRequired[str]


class ErrorChunk(TypedDict):
    """The turn failed."""

    type: Literal["error"]
    errorText: str


StreamChunk: TypeAlias = (
    StartChunk
    | StepChunk
    | TextEdgeChunk
    | TextDeltaChunk
    | ToolInputStartChunk
    | ToolInputDeltaChunk
    | ToolInputChunk
    | ToolInputErrorChunk
    | ApprovalRequestChunk
    | ApprovalResponseChunk
    | ToolOutputChunk
    | ToolOutputErrorChunk
    | ToolOutputDeniedChunk
    | FileChunk
    | SourceUrlChunk
    | SourceDocumentChunk
    | CustomChunk
    | MetadataChunk
    | FinishChunk
    | AbortChunk
    | ErrorChunk
)
"""One chunk of a stream."""
