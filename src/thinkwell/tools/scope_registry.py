"""Which scopes an agent has at the moment, and who owns which tool name (spec/02 §12.5-12.8).

Every change is checked as a whole before anything is touched; then the snapshot is replaced, the
callback of the owner runs (hooks), and last the subscribers. Whether a scope or a tool is enabled
is asked anew each time.

Invariant: a tool name has one owner; the snapshot stays the same object until something changes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import cast

import msgspec

from thinkwell.core.errors import ToolDefinitionError
from thinkwell.core.signal import Disposer
from thinkwell.tools.scope import Scope, ScopeSections, render_sections
from thinkwell.tools.tool import Tool

log = logging.getLogger("thinkwell.scopes")

OnChange = Callable[[Scope], None]
"""Contract: called on the loop after each change, once; must not block. A raise reaches the
caller of `register` or `unregister` after the change is done."""


class FoundTool(msgspec.Struct, frozen=True):
    """A tool of a scope, and whether it may be called now."""

    tool: Tool
    scope: Scope
    enabled: bool


_NONE = ScopeSections()


class ScopeRegistry:
    """The scopes of one activation."""

    def __init__(
        self,
        *,
        reserved: Callable[[], Collection[str]] = tuple,
        on_register: OnChange | None = None,
        on_unregister: OnChange | None = None,
    ) -> None:
        """`reserved` gives the tool names that belong to the agent itself."""
        self._reserved = reserved
        self._on_register = on_register
        self._on_unregister = on_unregister
        self._scopes: dict[str, Scope] = {}
        self._owners: dict[str, tuple[Tool, Scope]] = {}
        self._snapshot: tuple[Scope, ...] = ()
        self._subscribers: dict[object, Callable[[], None]] = {}

    def register(self, scope: Scope) -> Disposer:
        """Add a scope. Returns an idempotent disposer that removes this very object.

        A name that is taken raises `ToolDefinitionError`, and nothing has changed.
        """
        tools = self._checked(scope)
        self._scopes[scope.name] = scope
        self._owners.update({name: (tool, scope) for name, tool in tools.items()})
        self._changed(scope, self._on_register)
        return lambda: self._remove(scope)

    def unregister(self, name: str) -> None:
        """Remove the scope with this name and free its tool names; nothing if there is none."""
        scope = self._scopes.get(name)
        if scope is not None:
            self._remove(scope)

    def get(self, name: str) -> Scope | None:
        """The scope with this name."""
        return self._scopes.get(name)

    def get_snapshot(self) -> tuple[Scope, ...]:
        """All scopes in the order they came; the same object until something changes."""
        return self._snapshot

    def subscribe(self, subscriber: Callable[[], None]) -> Disposer:
        """Be called after every change, when hooks have run. Returns an idempotent disposer."""
        token = object()
        self._subscribers[token] = subscriber
        return lambda: self._subscribers.pop(token, None) and None

    def find_tool(self, name: str) -> FoundTool | None:
        """The tool with this name, enabled or not."""
        owned = self._owners.get(name)
        if owned is None:
            return None
        tool, scope = owned
        return FoundTool(tool, scope, scope.is_enabled() and tool.is_enabled())

    def active_tools(self) -> dict[str, Tool]:
        """The tools that may be offered now, by name."""
        return {
            tool.name: tool
            for scope in self._snapshot
            if scope.tools and scope.is_enabled()
            for tool in _tools(scope)
            if tool.is_enabled()
        }

    async def sections(self) -> ScopeSections:
        """The context of the enabled scopes, as it is now."""
        return await render_sections(self._snapshot) if self._snapshot else _NONE

    def _checked(self, scope: Scope) -> dict[str, Tool]:
        if scope.name in self._scopes:
            raise ToolDefinitionError(
                f"There is a scope named {scope.name!r} already. Dispose of it first, or give the "
                "new one another name."
            )
        tools: dict[str, Tool] = {}
        reserved = self._reserved()
        for tool in _tools(scope):
            other = self._owner_of(tool.name, reserved)
            if tool.name in tools:
                other = "the same scope once more"
            if other is not None:
                raise ToolDefinitionError(
                    f"The tool {tool.name!r} of scope {scope.name!r} has a name that belongs to "
                    f"{other}. Rename one of them."
                )
            tools[tool.name] = tool
        return tools

    def _owner_of(self, tool_name: str, reserved: Collection[str]) -> str | None:
        if tool_name in self._owners:
            return f"scope {self._owners[tool_name][1].name!r}"
        return "the agent itself" if tool_name in reserved else None

    def _remove(self, scope: Scope) -> None:
        if self._scopes.get(scope.name) is not scope:
            return
        del self._scopes[scope.name]
        for tool in _tools(scope):
            del self._owners[tool.name]
        self._changed(scope, self._on_unregister)

    def _changed(self, scope: Scope, callback: OnChange | None) -> None:
        self._snapshot = tuple(self._scopes.values())
        try:
            if callback is not None:
                callback(scope)
        finally:
            for subscriber in tuple(self._subscribers.values()):
                _notify(subscriber)


def _tools(scope: Scope) -> tuple[Tool, ...]:
    return cast("tuple[Tool, ...]", scope.tools)


def _notify(subscriber: Callable[[], None]) -> None:
    try:
        subscriber()
    except BaseException:  # one subscriber's bug must not keep the others from hearing
        log.exception("a subscriber of the scopes failed", extra={"action": "scopes"})
