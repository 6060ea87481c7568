"""Thinkwell: durable chat agents. Subclass `Think`, name a model: its turns outlive the request.

What is listed here and in the modules of `_MODULES` is public; everything else may change.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any
from warnings import warn

if TYPE_CHECKING:
    from thinkwell.agent.agent import Agent
    from thinkwell.agent.connection import Connection
    from thinkwell.agent.think import Think
    from thinkwell.core.authority import Subject
    from thinkwell.core.budgets import Budget
    from thinkwell.core.errors import AbortTurn, FailTurn, ThinkwellError, ToolError
    from thinkwell.core.limits import Limits
    from thinkwell.core.principal import Principal
    from thinkwell.core.retention import Retention
    from thinkwell.core.signal import AbortController, AbortSignal
    from thinkwell.features.schedules.marks import scheduled
    from thinkwell.hooks.answers import Allow, Block, Fail, StepConfig, Substitute, TurnConfig
    from thinkwell.hooks.recovery import ChatRecovery
    from thinkwell.hooks.registry import hook
    from thinkwell.hooks.rpc import RpcStream, rpc
    from thinkwell.host.inline import InlineAgent, create_agent
    from thinkwell.journal.submission import Submission
    from thinkwell.messages.message import UIMessage
    from thinkwell.models.base import Model, NamedTool
    from thinkwell.models.limits import ModelLimits
    from thinkwell.server.app import App
    from thinkwell.session.session import Session
    from thinkwell.tools.context import ToolContext
    from thinkwell.tools.output import Output
    from thinkwell.tools.scope import Scope
    from thinkwell.tools.stopping import has_tool_call, step_count_is
    from thinkwell.tools.tool import Tool, tool
    from thinkwell.turn.end.ending import TurnResult
    from thinkwell.turn.info import TurnInfo
    from thinkwell.wire.http import HttpRequest, HttpResponse

_HOMES = {
    "AbortController": "core.signal",
    "AbortSignal": "core.signal",
    "AbortTurn": "core.errors",
    "Agent": "agent.agent",
    "Allow": "hooks.answers",
    "App": "server.app",
    "Block": "hooks.answers",
    "Budget": "core.budgets",
    "ChatRecovery": "hooks.recovery",
    "Connection": "agent.connection",
    "Fail": "hooks.answers",
    "FailTurn": "core.errors",
    "HttpRequest": "wire.http",
    "HttpResponse": "wire.http",
    "InlineAgent": "host.inline",
    "Limits": "core.limits",
    "Model": "models.base",
    "ModelLimits": "models.limits",
    "NamedTool": "models.base",
    "Output": "tools.output",
    "Principal": "core.principal",
    "Retention": "core.retention",
    "RpcStream": "hooks.rpc",
    "Scope": "tools.scope",
    "Session": "session.session",
    "StepConfig": "hooks.answers",
    "Subject": "core.authority",
    "Submission": "journal.submission",
    "Substitute": "hooks.answers",
    "Think": "agent.think",
    "ThinkwellError": "core.errors",
    "Tool": "tools.tool",
    "ToolContext": "tools.context",
    "ToolError": "core.errors",
    "TurnConfig": "hooks.answers",
    "TurnInfo": "turn.info",
    "TurnResult": "turn.end.ending",
    "UIMessage": "messages.message",
    "create_agent": "host.inline",
    "has_tool_call": "tools.stopping",
    "hook": "hooks.registry",
    "rpc": "hooks.rpc",
    "scheduled": "features.schedules.marks",
    "step_count_is": "tools.stopping",
    "tool": "tools.tool",
}

__all__ = [
    "AbortController",
    "AbortSignal",
    "AbortTurn",
    "Agent",
    "Allow",
    "App",
    "Block",
    "Budget",
    "ChatRecovery",
    "Connection",
    "Fail",
    "FailTurn",
    "HttpRequest",
    "HttpResponse",
    "InlineAgent",
    "Limits",
    "Model",
    "ModelLimits",
    "NamedTool",
    "Output",
    "Principal",
    "Retention",
    "RpcStream",
    "Scope",
    "Session",
    "StepConfig",
    "Subject",
    "Submission",
    "Substitute",
    "Think",
    "ThinkwellError",
    "Tool",
    "ToolContext",
    "ToolError",
    "TurnConfig",
    "TurnInfo",
    "TurnResult",
    "UIMessage",
    "create_agent",
    "has_tool_call",
    "hook",
    "rpc",
    "scheduled",
    "step_count_is",
    "tool",
]

__version__ = "0.1.0"


_MODULES = frozenset(
    {
        "approvals",
        "errors",
        "events",
        "features",
        "fibers",
        "hooks",
        "jobs",
        "memory",
        "messages",
        "models",
        "schedules",
        "testing",
        "tools",
        "turns",
    }
)
# Names that the front door had once: they go on working there, and say where they are now.
_MOVED = {
    "ChatAbortContext": "thinkwell.hooks",
    "ChatDoneContext": "thinkwell.hooks",
    "ChatErrorContext": "thinkwell.hooks",
    "ChatResponse": "thinkwell.hooks",
    "ChunkContext": "thinkwell.hooks",
    "MessageContext": "thinkwell.hooks",
    "ModelResponse": "thinkwell.hooks",
    "ResponseContext": "thinkwell.hooks",
    "StepContext": "thinkwell.hooks",
    "StepFinishContext": "thinkwell.hooks",
    "ToolCallContext": "thinkwell.hooks",
    "ToolFailureContext": "thinkwell.hooks",
    "ToolResultContext": "thinkwell.hooks",
    "ToolSuccessContext": "thinkwell.hooks",
    "TurnContext": "thinkwell.hooks",
    "TurnStartContext": "thinkwell.hooks",
}


if not TYPE_CHECKING:  # or every misspelt import would be right for type checkers

    def __getattr__(name: str) -> Any:
        """Load a public name on first use, so that `import thinkwell` stays cheap."""
        if name in _MODULES:
            return import_module(f"thinkwell.{name}")
        if name in _MOVED:
            # Not kept in `globals()`: each place that still says it is told where to look.
            warn(
                f"thinkwell.{name} has moved: write `from {_MOVED[name]} import {name}`.",
                DeprecationWarning,
                stacklevel=2,
            )
            return getattr(import_module(_MOVED[name]), name)
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module 'thinkwell' has no attribute {name!r}")
        value = getattr(import_module(f"thinkwell.{home}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """What can be asked for, loaded or not: an interactive shell completes it."""
    return sorted({*globals(), *__all__, *_MODULES})
