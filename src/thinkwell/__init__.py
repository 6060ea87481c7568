"""Thinkwell: durable chat agents. Subclass `Think`, name a model: its turns outlive the request.

What is listed here, and `thinkwell.testing`, is public; everything else may change.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thinkwell.agent.think import Think
    from thinkwell.agent.turn_info import Submission, TurnInfo
    from thinkwell.core.errors import ThinkwellError, ToolError
    from thinkwell.core.signal import AbortController, AbortSignal
    from thinkwell.hooks.answers import Allow, Block, StepConfig, Substitute, TurnConfig
    from thinkwell.hooks.contexts import (
        ChatErrorContext,
        ChatResponse,
        ChunkContext,
        StepContext,
        StepFinishContext,
        ToolCallContext,
        ToolResultContext,
        TurnContext,
    )
    from thinkwell.messages.message import UIMessage
    from thinkwell.models.base import Model
    from thinkwell.server.app import App
    from thinkwell.session.session import Session
    from thinkwell.tools.context import ToolContext
    from thinkwell.tools.tool import Tool, tool
    from thinkwell.turn.ending import TurnResult

_HOMES = {
    "AbortController": "core.signal",
    "AbortSignal": "core.signal",
    "Allow": "hooks.answers",
    "App": "server.app",
    "Block": "hooks.answers",
    "ChatErrorContext": "hooks.contexts",
    "ChatResponse": "hooks.contexts",
    "ChunkContext": "hooks.contexts",
    "Model": "models.base",
    "Session": "session.session",
    "StepConfig": "hooks.answers",
    "StepContext": "hooks.contexts",
    "StepFinishContext": "hooks.contexts",
    "Submission": "agent.turn_info",
    "Substitute": "hooks.answers",
    "Think": "agent.think",
    "ThinkwellError": "core.errors",
    "Tool": "tools.tool",
    "ToolCallContext": "hooks.contexts",
    "ToolContext": "tools.context",
    "ToolError": "core.errors",
    "ToolResultContext": "hooks.contexts",
    "TurnConfig": "hooks.answers",
    "TurnContext": "hooks.contexts",
    "TurnInfo": "agent.turn_info",
    "TurnResult": "turn.ending",
    "UIMessage": "messages.message",
    "tool": "tools.tool",
}

__all__ = [
    "AbortController",
    "AbortSignal",
    "Allow",
    "App",
    "Block",
    "ChatErrorContext",
    "ChatResponse",
    "ChunkContext",
    "Model",
    "Session",
    "StepConfig",
    "StepContext",
    "StepFinishContext",
    "Submission",
    "Substitute",
    "Think",
    "ThinkwellError",
    "Tool",
    "ToolCallContext",
    "ToolContext",
    "ToolError",
    "ToolResultContext",
    "TurnConfig",
    "TurnContext",
    "TurnInfo",
    "TurnResult",
    "UIMessage",
    "tool",
]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Load a public name on first use, so that `import thinkwell` stays cheap."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'thinkwell' has no attribute {name!r}")
    value = getattr(import_module(f"thinkwell.{home}"), name)
    globals()[name] = value
    return value
