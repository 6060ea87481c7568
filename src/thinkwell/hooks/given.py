"""The fields of a config in the forms people write them, as the loop needs them (pure).

Done once, where a hook's answer is read: every later hook, the request and the journal see tools,
messages and choices of one kind only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from thinkwell.core.errors import ToolDefinitionError
from thinkwell.hooks.answers import StepConfig, TurnConfig
from thinkwell.hooks.tool_choice import read_choice
from thinkwell.messages.given import read_messages
from thinkwell.tools.tool import Tool, as_tool

Config = TypeVar("Config", TurnConfig, StepConfig)


def taken(config: Config) -> Config:
    """The config with its tools, messages and tool choice in the one form."""
    changes: dict[str, Any] = {}
    if config.messages is not None:
        changes["messages"] = read_messages(config.messages)
    if config.tool_choice is not None:
        changes["tool_choice"] = read_choice(config.tool_choice)
    if isinstance(config, TurnConfig) and config.tools is not None:
        changes["tools"] = read_tools(config.tools, "TurnConfig.tools")
    return msgspec.structs.replace(config, **changes) if changes else config


def read_tools(given: Mapping[str, Any], owner: str) -> dict[str, Tool]:
    """Tools by the names the model calls them; `owner` is named when one is none."""
    tools: dict[str, Tool] = {}
    for name, value in given.items():
        try:
            tools[name] = as_tool(value, name)
        except ToolDefinitionError as error:
            raise ToolDefinitionError(f"{owner}[{name!r}]: {error}") from error
    return tools
