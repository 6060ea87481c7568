"""A model request as the JSON body of an Anthropic messages call.

Owns the mapping of every `ModelRequest` field (`anthropic_messages.py` has the messages) and the
markers of the prompt cache, and says in `warnings` what the provider cannot be told. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from thinkwell.messages.model_messages import (
    AssistantMessage,
    ToolCallContent,
)
from thinkwell.models.anthropic_messages import PROVIDER, build_messages
from thinkwell.models.base import ModelRequest, NamedTool, ToolSpec
from thinkwell.models.provider_options import given_options

OPTIONS: Final = frozenset(
    {
        *("betas", "cache_control", "container", "context_management", "effort"),
        *("inference_geo", "mcp_servers", "metadata", "output_config", "service_tier"),
        *("speed", "thinking", "tools"),
    }
)
"""What `provider_options["anthropic"]` may hold, beside `extra_body`."""
DEFAULT_MAX_TOKENS: Final = 32_000
_OLD_LIMITS: Final = {
    "claude-3-haiku": 4_096,
    "claude-3-opus": 4_096,
    "claude-3-sonnet": 4_096,
    "claude-3-5": 8_192,
}
"""Anthropic wants a limit with every request, and refuses one above what the model can do."""
_MARK: Final = {"type": "ephemeral"}
_NOT_MARKED: Final = ("thinking", "redacted_thinking")


def build_body(
    request: ModelRequest, *, model_id: str, cache: bool = True
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The request body, and warnings about what was left out.

    With `cache`, markers say up to where the prefix is worth keeping: the tools and the system
    prompt, the last question before this one, and the end of the request.
    """
    options = given_options(request, (PROVIDER,), OPTIONS)
    thinking = cast("dict[str, Any]", options.get("thinking") or {})
    thinks = thinking.get("type") in ("enabled", "adaptive")
    budget = cast("int", thinking.get("budget_tokens") or 0) if thinks else 0
    limit = request.max_output_tokens or default_max_tokens(model_id) - budget
    body: dict[str, Any] = {
        "model": model_id,
        "max_tokens": limit + budget,
        "messages": build_messages(request.messages),
        "stream": True,
    }
    if request.system:
        body["system"] = [{"type": "text", "text": request.system}]
    if request.stop_sequences:
        body["stop_sequences"] = list(request.stop_sequences)
    warnings = [*_sampling(request, body, thinks=thinks), *_left_out(request)]
    if tools := _tools(request, options):
        body["tools"] = tools
        _choose_tool(request, body, warnings, thinks=thinks)
    if request.response_format is not None:
        schema = {"type": "json_schema", "schema": dict(request.response_format)}
        body["output_config"] = {"format": schema}
    if cache and "cache_control" not in options:
        _mark_prefix(body)
    # Last: whoever names a provider's own option means to override ours.
    named = {key: value for key, value in options.items() if key not in ("tools", "betas")}
    return {**body, **named}, tuple(warnings)


def default_max_tokens(model_id: str) -> int:
    """How much a model may say if nobody says how much."""
    found = (limit for name, limit in _OLD_LIMITS.items() if model_id.startswith(name))
    return next(found, DEFAULT_MAX_TOKENS)


def _sampling(request: ModelRequest, body: dict[str, Any], *, thinks: bool) -> list[str]:
    given = {
        name: value
        for name in ("temperature", "top_p", "top_k")
        if (value := getattr(request, name)) is not None
    }
    if not thinks:
        body.update(given)
        return []
    return [f"{name} was left out: Anthropic's models think without it." for name in given]


def _left_out(request: ModelRequest) -> list[str]:
    names = ("presence_penalty", "frequency_penalty", "seed")
    missing = [name for name in names if getattr(request, name) is not None]
    return [f"{name} was left out: Anthropic has no such setting." for name in missing]


# Tools


def _tools(request: ModelRequest, options: Mapping[str, Any]) -> list[dict[str, Any]]:
    tools = [_tool(spec) for spec in request.tools]
    tools.extend(cast("list[dict[str, Any]]", options.get("tools") or []))
    if tools:
        return tools
    # A history with calls is refused if no tools are declared, also when none may be called now.
    called = {
        item.tool_name: None
        for message in request.messages
        if isinstance(message, AssistantMessage)
        for item in message.content
        if isinstance(item, ToolCallContent) and not item.provider_executed
    }
    return [{"name": name, "input_schema": {"type": "object"}} for name in called]


def _tool(spec: ToolSpec) -> dict[str, Any]:
    schema = {"type": "object", **spec.input_schema}
    return {"name": spec.name, "description": spec.description, "input_schema": schema}


def _choose_tool(
    request: ModelRequest, body: dict[str, Any], warnings: list[str], *, thinks: bool
) -> None:
    choice = request.tool_choice
    forced = choice == "required" or isinstance(choice, NamedTool)
    if forced and thinks:
        warnings.append("tool_choice was left out: a model that thinks cannot be forced to call.")
    elif isinstance(choice, NamedTool):
        body["tool_choice"] = {"type": "tool", "name": choice.tool_name}
    elif choice == "required":
        body["tool_choice"] = {"type": "any"}
    elif choice == "none" or not request.tools:
        offered = any("input_schema" not in tool for tool in body["tools"])
        if choice == "none" or not offered:
            body["tool_choice"] = {"type": "none"}


# The cache


def _mark_prefix(body: dict[str, Any]) -> None:
    """At most three of the four markers there may be; one is left to `provider_options`."""
    if "system" in body:
        body["system"][-1]["cache_control"] = _MARK
    elif "tools" in body:
        body["tools"][-1] = {**body["tools"][-1], "cache_control": _MARK}
    messages = cast("list[dict[str, Any]]", body["messages"])
    questions = [message for message in messages if message["role"] == "user"]
    for message in questions[-2:]:
        content = cast("list[dict[str, Any]]", message["content"])
        content[-1] = _marked(content[-1])


def _marked(block: dict[str, Any]) -> dict[str, Any]:
    return block if block["type"] in _NOT_MARKED else {**block, "cache_control": _MARK}
