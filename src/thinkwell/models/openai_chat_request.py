"""A model request as the JSON body of a chat-completions call.

Owns the mapping of every `ModelRequest` field and every message kind, and says in `warnings` what
the provider cannot be told. Pure. Two repairs happen here because providers refuse the call without
them: an assistant message with neither text nor calls is left out, and a tool call without a
recorded result is answered with a note. Reasoning of earlier steps is not sent: the protocol has no
field for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, assert_never, cast

import msgspec

from thinkwell.core import json
from thinkwell.messages.model_messages import (
    AssistantMessage,
    FileContent,
    ModelMessage,
    SystemMessage,
    TextContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
)
from thinkwell.models.base import ModelRequest, NamedTool, ToolSpec
from thinkwell.models.pairs import paired
from thinkwell.models.provider_options import given_options
from thinkwell.models.result_text import file_text, result_text

OPTION_NAMES: Final = {"openai-chat": ("openai", "openai-chat")}
"""Under which names a provider's options are looked for: OpenAI is one provider with two APIs."""
OPTIONS: Final = frozenset(
    {
        *("audio", "function_call", "functions", "logit_bias", "logprobs", "metadata"),
        *("modalities", "n", "parallel_tool_calls", "prediction", "prompt_cache_key"),
        *("prompt_cache_retention", "reasoning_effort", "response_format", "safety_identifier"),
        *("service_tier", "store", "stream_options", "top_logprobs", "user", "verbosity"),
        "web_search_options",
    }
)
"""What OpenAI's chat completions have beside our settings."""
_SETTINGS: Final = ("temperature", "top_p", "presence_penalty", "frequency_penalty")


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """Where a server that speaks chat completions differs from the others."""

    is_openai: bool = False
    """OpenAI itself: its options are known, and it has no `top_k`."""
    max_tokens: str = "max_tokens"
    """OpenAI refuses that name for its reasoning models; the others know no other."""
    seed: str = "seed"
    stream_options: bool = True
    """Whether it has to be asked for the usage. Mistral tells it anyway and refuses the field."""
    short_call_ids: bool = False
    """Mistral accepts only nine letters and digits as the id of a call."""


OPENAI: Final = Dialect(is_openai=True, max_tokens="max_completion_tokens")
COMPATIBLE: Final = Dialect()


def build_body(
    request: ModelRequest, *, model_id: str, provider: str, dialect: Dialect = COMPATIBLE
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The request body, and warnings about what was left out."""
    messages = build_messages(request.system, request.messages)
    if dialect.short_call_ids:
        shorten_call_ids(messages)
    body: dict[str, Any] = {"model": model_id, "messages": messages, "stream": True}
    if dialect.stream_options:
        body["stream_options"] = {"include_usage": True}
    for name in (*_SETTINGS, "seed", "max_output_tokens"):
        if (value := getattr(request, name)) is not None:
            body[_name(name, dialect)] = value
    if request.stop_sequences:
        body["stop"] = list(request.stop_sequences)
    warnings: tuple[str, ...] = ()
    if request.top_k is not None:
        if dialect.is_openai:
            warnings = ("top_k was left out: OpenAI has no such setting.",)
        else:
            body["top_k"] = request.top_k
    _offer_tools(request, body)
    if request.response_format is not None:
        schema = {"name": request.response_name, "schema": dict(request.response_format)}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    # Last: whoever names a provider's own option means to override ours.
    names = OPTION_NAMES.get(provider, (provider,))
    body.update(given_options(request, names, OPTIONS, strict=dialect.is_openai))
    return body, warnings


def _name(setting: str, dialect: Dialect) -> str:
    if setting == "max_output_tokens":
        return dialect.max_tokens
    return dialect.seed if setting == "seed" else setting


def _offer_tools(request: ModelRequest, body: dict[str, Any]) -> None:
    if request.tools:
        body["tools"] = [_tool(spec) for spec in request.tools]
        if request.tool_choice != "auto":
            body["tool_choice"] = _tool_choice(request.tool_choice)


def shorten_call_ids(messages: list[dict[str, Any]]) -> None:
    """Give every call an id of nine letters and digits; the same id becomes the same one."""
    for message in messages:
        for call in message.get("tool_calls", ()):
            call["id"] = _short_id(call["id"])
        if "tool_call_id" in message:
            message["tool_call_id"] = _short_id(message["tool_call_id"])


def _short_id(call_id: str) -> str:
    if len(call_id) == _SHORT_ID and call_id.isascii() and call_id.isalnum():
        return call_id
    return sha256(call_id.encode()).hexdigest()[:_SHORT_ID]


_SHORT_ID: Final = 9


def build_messages(system: str, messages: Sequence[ModelMessage]) -> list[dict[str, Any]]:
    """The conversation in the provider's shape, system prompt first."""
    result: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
    plain = [_plain(message) for message in messages]
    if None not in plain:  # no calls, so there is nothing to pair
        return [*result, *cast("list[dict[str, Any]]", plain)]
    for message in paired(messages):
        if (made := _plain(message)) is not None:
            result.append(made)
        elif isinstance(message, ToolMessage):
            result.extend(_tool_result(item) for item in message.content)
        else:
            result.extend(_message(message))
    return result


def _plain(message: ModelMessage) -> dict[str, Any] | None:
    """A question or an answer of one text, which most of a conversation is; None for the rest."""
    content = message.content
    part = content[0] if len(content) == 1 else None
    if type(part) is not TextContent or not part.text:
        return None
    return {"role": message.role, "content": part.text}


def _message(message: SystemMessage | UserMessage | AssistantMessage) -> list[dict[str, Any]]:
    match message:
        case SystemMessage():
            return [{"role": "system", "content": message.content}]
        case UserMessage():
            return [{"role": "user", "content": _user_content(message)}]
        case AssistantMessage():
            return _assistant(message)
        case _:
            assert_never(message)


def _user_content(message: UserMessage) -> str | list[dict[str, Any]]:
    parts = message.content
    if all(isinstance(part, TextContent) for part in parts):
        return "\n\n".join(part.text for part in parts if isinstance(part, TextContent))
    return [
        {"type": "text", "text": part.text} if isinstance(part, TextContent) else _file(part)
        for part in parts
    ]


def _file(part: FileContent) -> dict[str, Any]:
    kind = part.media_type.partition("/")[0]
    if kind == "image":
        return {"type": "image_url", "image_url": {"url": part.url}}
    data = part.url.partition(",")[2]
    if kind == "audio" and part.url.startswith("data:"):
        audio_format = "wav" if "wav" in part.media_type else "mp3"
        return {"type": "input_audio", "input_audio": {"data": data, "format": audio_format}}
    if part.url.startswith("data:"):
        name = part.filename or "file"
        return {"type": "file", "file": {"filename": name, "file_data": part.url}}
    return {"type": "text", "text": file_text(part)}


def _assistant(message: AssistantMessage) -> list[dict[str, Any]]:
    text = "".join(part.text for part in message.content if isinstance(part, TextContent))
    calls = [_tool_call(part) for part in message.content if isinstance(part, ToolCallContent)]
    if not text and not calls:
        return []
    result: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls:
        result["tool_calls"] = calls
    return [result]


def _tool_call(part: ToolCallContent) -> dict[str, Any]:
    function = {"name": part.tool_name, "arguments": json.dumps(part.input)}
    return {"id": part.tool_call_id, "type": "function", "function": function}


def _tool_result(part: ToolResultContent) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": part.tool_call_id, "content": result_text(part)}


def _tool(spec: ToolSpec) -> dict[str, Any]:
    function = {
        "name": spec.name,
        "description": spec.description,
        "parameters": dict(spec.input_schema),
    }
    return {"type": "function", "function": function}


def _tool_choice(choice: str | NamedTool) -> str | Mapping[str, Any]:
    if isinstance(choice, NamedTool):
        return {"type": "function", "function": {"name": choice.tool_name}}
    return choice
