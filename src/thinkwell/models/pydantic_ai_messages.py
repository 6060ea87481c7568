"""Our request in pydantic-ai's types.

Imported only by the bridge, once a pydantic-ai model is really called: this module imports
pydantic-ai at the top. Pure translation. Their requests hold what people, tools and the system
said, their responses what the model said; neighbours of the same side are joined.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from pydantic_ai import messages as theirs
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

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
from thinkwell.models.base import ModelRequest, NamedTool, ToolSpec
from thinkwell.models.data_url import read_data_url
from thinkwell.models.pairs import paired

_SETTINGS = {
    "max_output_tokens": "max_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "seed": "seed",
}
_OUTCOMES = {"error-text": "failed", "execution-denied": "denied"}
_DENIED = "The tool call was denied."
_CALL_FIELDS = ("id", "provider_name", "provider_details")


def build_call(
    request: ModelRequest, provider: str
) -> tuple[list[theirs.ModelMessage], ModelSettings, ModelRequestParameters]:
    """Messages, settings and parameters for one `request_stream`."""
    messages = list(_messages(paired(request.messages)))
    instructions: list[theirs.InstructionPart] | None = None
    if request.system:
        instructions = [theirs.InstructionPart(request.system)]
        last = messages[-1] if messages else None
        if isinstance(last, theirs.ModelRequest):
            last.instructions = request.system
        else:
            messages.append(theirs.ModelRequest(parts=[], instructions=request.system))
    parameters = ModelRequestParameters(
        function_tools=[_tool(spec) for spec in request.tools], instruction_parts=instructions
    )
    return messages, _settings(request, provider), parameters


def _messages(messages: Iterable[ModelMessage]) -> Iterable[theirs.ModelMessage]:
    said: list[Any] = []
    for message in messages:
        if not isinstance(message, AssistantMessage):
            said.extend(_request_parts(message))
            continue
        if said:
            yield theirs.ModelRequest(parts=said)
            said = []
        if parts := [part for item in message.content for part in _response_part(item)]:
            yield theirs.ModelResponse(parts=parts)
    if said:
        yield theirs.ModelRequest(parts=said)


def _request_parts(message: SystemMessage | UserMessage | ToolMessage) -> Iterable[Any]:
    match message:
        case SystemMessage():
            yield theirs.SystemPromptPart(message.content)
        case UserMessage(content=(TextContent(text=text),)):
            yield theirs.UserPromptPart(text)
        case UserMessage():
            yield theirs.UserPromptPart([_user_content(item) for item in message.content])
        case ToolMessage():
            yield from (_tool_return(item) for item in message.content)


def _user_content(item: TextContent | FileContent) -> Any:
    if isinstance(item, TextContent):
        return item.text
    if (data := read_data_url(item.url)) is not None:
        return theirs.BinaryContent(data.bytes(), media_type=item.media_type)
    match item.media_type.partition("/")[0]:
        case "image":
            return theirs.ImageUrl(item.url, media_type=item.media_type)
        case "audio":
            return theirs.AudioUrl(item.url, media_type=item.media_type)
        case "video":
            return theirs.VideoUrl(item.url, media_type=item.media_type)
        case _:
            return theirs.DocumentUrl(item.url, media_type=item.media_type)


def _tool_return(item: ToolResultContent) -> theirs.ToolReturnPart[Any]:
    value = item.value
    if item.kind == "execution-denied" and not value:
        value = _DENIED
    return theirs.ToolReturnPart(
        item.tool_name,
        value,
        item.tool_call_id,
        outcome=cast("Any", _OUTCOMES.get(item.kind, "success")),
    )


def _response_part(
    item: TextContent | ReasoningContent | FileContent | ToolCallContent,
) -> Iterable[theirs.ModelResponsePart]:
    match item:
        case TextContent(text=text):
            return [theirs.TextPart(text)] if text else []
        case ReasoningContent():
            return [theirs.ThinkingPart(item.text, **_kept(item.provider_metadata))]
        case ToolCallContent():
            kept = _kept(item.provider_metadata)
            extra = {name: kept[name] for name in _CALL_FIELDS if name in kept}
            return [theirs.ToolCallPart(item.tool_name, item.input, item.tool_call_id, **extra)]
        case FileContent():
            data = read_data_url(item.url)
            if data is None:
                return []
            return [theirs.FilePart(theirs.BinaryContent(data.bytes(), media_type=item.media_type))]


def _kept(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    return dict((metadata or {}).get("pydanticAi", {}))


def _tool(spec: ToolSpec) -> ToolDefinition:
    return ToolDefinition(
        name=spec.name,
        description=spec.description,
        parameters_json_schema=dict(spec.input_schema),
    )


def _settings(request: ModelRequest, provider: str) -> ModelSettings:
    settings: dict[str, Any] = {
        name: value
        for ours, name in _SETTINGS.items()
        if (value := getattr(request, ours)) is not None
    }
    if request.stop_sequences:
        settings["stop_sequences"] = list(request.stop_sequences)
    if request.headers:
        settings["extra_headers"] = dict(request.headers)
    if request.tools and request.tool_choice != "auto":
        choice = request.tool_choice
        settings["tool_choice"] = [choice.tool_name] if isinstance(choice, NamedTool) else choice
    settings.update(request.provider_options.get(provider, {}))
    return cast("ModelSettings", settings)
