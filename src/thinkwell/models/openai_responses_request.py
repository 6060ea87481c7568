"""A model request as the JSON body of an OpenAI responses call.

Owns the mapping of every `ModelRequest` field and every message kind, and says in `warnings` what
the provider cannot be told. Pure. The provider's own rules hold in every body made here:
- every `function_call` is followed by its `function_call_output`;
- a `reasoning` item is sent only as OpenAI gave it, and only with the item it led to;
- an item of a tool that OpenAI ran (web search, say) is sent as it came; what another provider's
  tool found is told as text.
By default nothing is stored at OpenAI (`store` is false): thoughts come back encrypted instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from thinkwell.core import json
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
from thinkwell.models.pairs import paired
from thinkwell.models.provider_options import given_options
from thinkwell.models.result_text import (
    file_text,
    foreign_call_text,
    made_file_text,
    result_content,
)

PROVIDER: Final = "openai"
OPTIONS: Final = frozenset(
    {
        *("background", "conversation", "include", "instructions", "max_tool_calls", "metadata"),
        *("parallel_tool_calls", "previous_response_id", "prompt", "prompt_cache_key"),
        *("prompt_cache_retention", "reasoning", "safety_identifier", "service_tier", "store"),
        *("text", "tools", "top_logprobs", "truncation", "user"),
    }
)
"""What `provider_options["openai"]` may hold, beside `extra_body`."""
_ENCRYPTED: Final = "reasoning.encrypted_content"
_LEFT_OUT: Final = ("top_k", "presence_penalty", "frequency_penalty", "seed", "stop_sequences")
_REASONS: Final = re.compile(r"^(o\d|gpt-5(?!.*chat)|codex)")
"""Models that think: they refuse a temperature."""


def is_kept(request: ModelRequest, *, background: bool) -> bool:
    """Whether OpenAI is to keep the answer and go on with it by itself."""
    options = cast("dict[str, Any]", request.provider_options.get(PROVIDER) or {})
    return bool(options.get("background", background))


def build_body(
    request: ModelRequest, *, model_id: str, background: bool = False
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The request body, and warnings about what was left out.

    With `background` OpenAI stores the answer, and goes on with it whoever listens.
    """
    options = given_options(request, (PROVIDER,), OPTIONS)
    reasons = _REASONS.match(model_id) is not None
    body: dict[str, Any] = {
        "model": model_id,
        "input": build_input(request.messages),
        "stream": True,
        "store": background,
    }
    if background:
        body["background"] = True
    if request.system:
        body["instructions"] = request.system
    if request.max_output_tokens is not None:
        body["max_output_tokens"] = request.max_output_tokens
    warnings = _sampling(request, body, reasons=reasons)
    tools = [_tool(spec) for spec in request.tools]
    tools.extend(cast("list[dict[str, Any]]", options.pop("tools", None) or []))
    if tools:
        body["tools"] = tools
        if request.tool_choice != "auto":
            body["tool_choice"] = _tool_choice(request.tool_choice)
    if text := {**_format(request), **options.pop("text", {})}:
        body["text"] = text
    # Last: whoever names a provider's own option means to override ours.
    body.update(options)
    # An answer may be gone from OpenAI when the conversation goes on: thoughts come along.
    if (background or not body["store"]) and (reasons or "reasoning" in options):
        body["include"] = list(dict.fromkeys([*body.get("include", ()), _ENCRYPTED]))
    return body, warnings


def _sampling(request: ModelRequest, body: dict[str, Any], *, reasons: bool) -> tuple[str, ...]:
    warnings = [
        f"{name} was left out: OpenAI's responses have no such setting."
        for name in _LEFT_OUT
        if getattr(request, name)
    ]
    given = {
        name: value
        for name in ("temperature", "top_p")
        if (value := getattr(request, name)) is not None
    }
    if reasons:
        why = "was left out: OpenAI's reasoning models refuse it."
        return (*warnings, *(f"{name} {why}" for name in given))
    body.update(given)
    return tuple(warnings)


def _format(request: ModelRequest) -> dict[str, Any]:
    if request.response_format is None:
        return {}
    schema = {"name": request.response_name, "schema": dict(request.response_format)}
    return {"format": {"type": "json_schema", **schema}}


def _tool(spec: ToolSpec) -> dict[str, Any]:
    return {
        "type": "function",
        "name": spec.name,
        "description": spec.description,
        "parameters": dict(spec.input_schema),
        # OpenAI's default here is strict, which refuses most schemas with optional fields.
        "strict": False,
    }


def _tool_choice(choice: str | NamedTool) -> str | Mapping[str, Any]:
    if isinstance(choice, NamedTool):
        return {"type": "function", "name": choice.tool_name}
    return choice


def build_input(messages: Iterable[ModelMessage]) -> list[dict[str, Any]]:
    """The conversation as input items."""
    items: list[dict[str, Any]] = []
    for message in paired(messages):
        match message:
            case SystemMessage(content=text):
                items.append({"role": "developer", "content": text})
            case UserMessage():
                items.append({"role": "user", "content": _user_content(message)})
            case AssistantMessage():
                items.extend(_with_followers(_assistant_items(message)))
            case ToolMessage():
                items.extend(item for part in message.content for item in _result_item(part, items))
    return items


def _result_item(part: ToolResultContent, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if not part.provider_executed:
        return [_output(part.tool_call_id, _result(part))]
    if any(item.get("id") == part.tool_call_id for item in items):
        return []  # the item of the call holds its result
    return [{"role": "assistant", "content": foreign_call_text(part)}]


def _output(call_id: str, output: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def _result(part: ToolResultContent) -> str | list[dict[str, Any]]:
    found = result_content(part)
    return found if isinstance(found, str) else [_block(item) for item in found]


def _user_content(message: UserMessage) -> str | list[dict[str, Any]]:
    parts = message.content
    if len(parts) == 1 and isinstance(parts[0], TextContent):
        return parts[0].text
    return [_block(part) for part in parts]


def _block(part: TextContent | FileContent) -> dict[str, Any]:
    return _text(part.text) if isinstance(part, TextContent) else _file(part)


def _text(text: str) -> dict[str, Any]:
    return {"type": "input_text", "text": text}


def _file(part: FileContent) -> dict[str, Any]:
    inline = part.url.startswith("data:")
    if part.media_type.startswith("image/"):
        return {"type": "input_image", "image_url": part.url, "detail": "auto"}
    if not inline and part.media_type == "application/pdf":
        return {"type": "input_file", "file_url": part.url}
    if inline:
        name = part.filename or f"file.{part.media_type.rpartition('/')[2]}"
        return {"type": "input_file", "filename": name, "file_data": part.url}
    return _text(file_text(part))


def _assistant_items(message: AssistantMessage) -> list[dict[str, Any]]:
    return [item for part in message.content for item in _assistant_item(part)]


def _assistant_item(
    part: TextContent | ReasoningContent | FileContent | ToolCallContent,
) -> list[dict[str, Any]]:
    match part:
        case TextContent(text=text):
            return [{"role": "assistant", "content": text}] if text else []
        case ReasoningContent():
            return _reasoning(part)
        case ToolCallContent(provider_executed=True):
            item = _kept(part.provider_metadata).get("item")
            return [item] if isinstance(item, dict) else []
        case ToolCallContent():
            call = {"type": "function_call", "call_id": part.tool_call_id, "name": part.tool_name}
            return [{**call, "arguments": json.dumps(part.input)}]
        case FileContent():
            return [{"role": "assistant", "content": made_file_text(part)}]


def _reasoning(part: ReasoningContent) -> list[dict[str, Any]]:
    kept = _kept(part.provider_metadata)
    if not kept.get("itemId"):
        return []
    summary = [{"type": "summary_text", "text": part.text}] if part.text else []
    item = {"type": "reasoning", "id": kept["itemId"], "summary": summary}
    encrypted = kept.get("encryptedContent")
    return [{**item, "encrypted_content": encrypted}] if encrypted else []


def _with_followers(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without thoughts that led to nothing (a stop, a crash): OpenAI refuses them alone."""
    last = max((at for at, item in enumerate(items) if item.get("type") != "reasoning"), default=-1)
    return items[: last + 1]


def _kept(metadata: Mapping[str, Any] | None) -> Mapping[str, Any]:
    return (metadata or {}).get(PROVIDER) or {}
