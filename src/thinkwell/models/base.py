"""What a model is: one call that turns a request into a stream of events.

Contract of `Model.stream`:
- It yields content events in order and ends with exactly one terminal event: `Finish` or `Failure`.
  Failure is data here; it becomes an exception in one place (`turn/run/model_call.py`).
- Each `TextDelta` and `ReasoningDelta` lies between a start and an end with the same id; ids are
  unique within one call. Only a `Failure` may leave a part open.
- A tool call is `ToolInputStart`, any number of `ToolInputDelta`, then `ToolCall` with the whole
  input text. One that the provider runs itself says so (`provider_executed`) and is followed by its
  `ToolResult` in the same stream; it is shown and stored, never run here, and nobody waits for it.
- It must stop soon after `signal` aborts (closing the generator also ends it) and must leave no
  connection open. After an abort it just ends: there is no terminal event then.
Provider types never leave the adapter that knows them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Hashable, Mapping
from typing import Any, Literal, Protocol, TypeAlias, cast, runtime_checkable

import msgspec

from thinkwell.core.signal import AbortSignal
from thinkwell.messages.model_messages import ModelMessage
from thinkwell.messages.usage import Usage

FinishReason = Literal["stop", "length", "content-filter", "tool-calls", "error", "other"]
ToolChoice: TypeAlias = "Literal['auto', 'none', 'required'] | NamedTool"


class NamedTool(msgspec.Struct, frozen=True):
    """A tool choice that forces one tool."""

    tool_name: str


class ToolSpec(msgspec.Struct, frozen=True):
    """What a model is told about one tool."""

    name: str
    description: str
    input_schema: Mapping[str, Any]


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Everything one model call is given."""

    messages: tuple[ModelMessage, ...]
    """The conversation, oldest first, without the system prompt."""
    system: str = ""
    """The system prompt; empty means none."""
    tools: tuple[ToolSpec, ...] = ()
    """The tools the model may call in this step."""
    tool_choice: ToolChoice = "auto"
    """Whether and which tool the model must call."""
    max_output_tokens: int | None = None
    """Upper bound of generated tokens."""
    temperature: float | None = None
    """Sampling temperature."""
    top_p: float | None = None
    """Nucleus sampling."""
    top_k: int | None = None
    """Sample from the k most likely tokens."""
    presence_penalty: float | None = None
    """Penalty for tokens that occurred at all."""
    frequency_penalty: float | None = None
    """Penalty by how often a token occurred."""
    stop_sequences: tuple[str, ...] = ()
    """Texts that end the generation."""
    seed: int | None = None
    """Seed for providers that sample deterministically."""
    response_format: Mapping[str, Any] | None = None
    """JSON schema the answer's text must follow, for models with `supports_response_format`."""
    response_name: str = "answer"
    """What the schema is called there."""
    headers: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    """Extra HTTP headers for the provider."""
    connect_timeout: float | None = 15.0
    """Seconds until the provider must have taken the connection; None means no limit."""
    provider_options: Mapping[str, Any] = msgspec.field(default_factory=dict[str, Any])
    """Extra request fields, by provider name."""

    def __hash__(self) -> int:
        """Equal requests have equal hashes, so that a request is the key of a cache."""
        return hash(_frozen(self))


def _frozen(value: Any) -> Any:
    """The value as something that can be hashed; what is equal stays equal."""
    if isinstance(value, Mapping):
        given = cast("Mapping[str, Any]", value)
        return frozenset((key, _frozen(item)) for key, item in given.items())
    if isinstance(value, list | tuple):
        return tuple(_frozen(item) for item in cast("list[Any]", value))
    if isinstance(value, msgspec.Struct):
        fields = (getattr(value, name) for name in value.__struct_fields__)
        return (type(value), *(_frozen(field) for field in fields))
    return value if isinstance(value, Hashable) else type(value).__name__


class TextStart(msgspec.Struct, frozen=True, gc=False):
    """A text part begins."""

    id: str
    provider_metadata: dict[str, Any] | None = None


class TextDelta(msgspec.Struct, frozen=True, gc=False):
    """A piece of text."""

    id: str
    delta: str


class TextEnd(msgspec.Struct, frozen=True, gc=False):
    """A text part is complete."""

    id: str
    provider_metadata: dict[str, Any] | None = None


class ReasoningStart(msgspec.Struct, frozen=True, gc=False):
    """A reasoning part begins."""

    id: str
    provider_metadata: dict[str, Any] | None = None


class ReasoningDelta(msgspec.Struct, frozen=True, gc=False):
    """A piece of reasoning."""

    id: str
    delta: str


class ReasoningEnd(msgspec.Struct, frozen=True, gc=False):
    """A reasoning part is complete; its provider metadata (a signature, say) comes whole, here."""

    id: str
    provider_metadata: dict[str, Any] | None = None


class ToolInputStart(msgspec.Struct, frozen=True, gc=False):
    """The model begins to write the input of a tool call."""

    tool_call_id: str
    tool_name: str
    provider_executed: bool = False


class ToolInputDelta(msgspec.Struct, frozen=True, gc=False):
    """A piece of a tool call's JSON input text."""

    tool_call_id: str
    delta: str


class ToolCall(msgspec.Struct, frozen=True, gc=False):
    """A whole tool call. `input` is the model's JSON text, unparsed; empty means no arguments."""

    tool_call_id: str
    tool_name: str
    input: str
    provider_metadata: dict[str, Any] | None = None
    provider_executed: bool = False
    """The provider runs it and tells the result."""


class ToolResult(msgspec.Struct, frozen=True, gc=False):
    """What came of a call that the provider ran. With `error` it failed."""

    tool_call_id: str
    output: Any = None
    error: str | None = None
    preliminary: bool = False
    """Another one follows."""
    provider_metadata: dict[str, Any] | None = None


class FilePart(msgspec.Struct, frozen=True, gc=False):
    """A file the model made, as a data or http URL."""

    url: str
    media_type: str


class SourceUrl(msgspec.Struct, frozen=True, gc=False):
    """A web page the model refers to."""

    source_id: str
    url: str
    title: str | None = None


class SourceDocument(msgspec.Struct, frozen=True, gc=False):
    """A document the model refers to."""

    source_id: str
    media_type: str
    title: str
    filename: str | None = None


class Finish(msgspec.Struct, frozen=True, kw_only=True):
    """The terminal event of a call that ended well."""

    reason: FinishReason
    raw_reason: str = ""
    """The provider's own word for it."""
    usage: Usage = msgspec.field(default_factory=Usage)
    response_id: str | None = None
    model_id: str | None = None
    headers: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    provider_metadata: dict[str, Any] | None = None
    warnings: tuple[str, ...] = ()
    paused: Mapping[str, Any] | None = None
    """Set if the provider has only paused, amid tools that it runs itself: it goes on once it is
    sent what it has said. Holds the provider options to send along, usually none.
    """
    answered_by: str | None = None
    """Which model of a chain it was, as `provider:name`; None: the one that was called."""


class Failure(msgspec.Struct, frozen=True):
    """The terminal event of a call that failed."""

    error: Exception


class Bookmark(msgspec.Struct, frozen=True):
    """Where an answer that the provider keeps can be taken up again (see `ResumableModel`)."""

    token: Mapping[str, Any] | None
    """What `resume` needs to go on behind `event`, as JSON data. None: there is nothing to take up
    any more.
    """
    event: ModelEvent | None = None
    """The next event of the answer: it and the token are stored together, so that neither a crash
    nor a lost connection shows anything twice or leaves anything out.
    """


ModelEvent: TypeAlias = (
    TextDelta
    | ReasoningDelta
    | ToolInputDelta
    | TextStart
    | TextEnd
    | ReasoningStart
    | ReasoningEnd
    | ToolInputStart
    | ToolCall
    | ToolResult
    | FilePart
    | SourceUrl
    | SourceDocument
    | Bookmark
    | Finish
    | Failure
)


@runtime_checkable
class Model(Protocol):
    """One model of one provider. See the module docstring for the contract."""

    @property
    def provider(self) -> str:
        """The provider's name, e.g. `openai-chat`."""
        ...

    @property
    def model_id(self) -> str:
        """The provider's name for the model."""
        ...

    def stream(self, request: ModelRequest, signal: AbortSignal) -> AsyncIterator[ModelEvent]:
        """Run one call."""
        ...
