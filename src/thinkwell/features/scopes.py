"""Scopes of an agent: tools and context that come and go while it is awake (spec/02 §12).

The namespace `agent.scopes`. It can be filled before the agent wakes; what changes until then is
reported to the scope hooks when it does. A change that no hook was there to hear is reported to
nobody (spec/02 §12.17).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from thinkwell.core.signal import Disposer
from thinkwell.hooks.contexts import ScopeContext
from thinkwell.hooks.plugins import tracked
from thinkwell.hooks.registry import HookRegistry
from thinkwell.tools.scope import Scope
from thinkwell.tools.scope_registry import ScopeRegistry

ReportScope = Callable[[str, ScopeContext], object]
"""Runs the hooks of a scope event. Contract: returns at once."""


class Scopes(ScopeRegistry):
    """The scopes of one agent. What a plugin registers goes with the plugin."""

    def __init__(
        self, agent: Any, hooks: HookRegistry, reserved: Callable[[], Collection[str]]
    ) -> None:
        super().__init__(
            reserved=reserved,
            on_register=lambda scope: self._report_change("on_scope_register", scope),
            on_unregister=lambda scope: self._report_change("on_scope_unregister", scope),
        )
        self._agent = agent
        self._hooks = hooks
        self._unreported: list[tuple[str, ScopeContext]] = []
        self._report: ReportScope | None = None

    def register(self, scope: Scope) -> Disposer:
        """Add a scope. See `ScopeRegistry`."""
        return tracked(super().register(scope))

    def report_to(self, report: ReportScope) -> None:
        """The agent wakes: report what has changed, and from now on every change."""
        self._report = report
        while self._unreported:
            report(*self._unreported.pop(0))

    def _report_change(self, event: str, scope: Scope) -> None:
        if not self._hooks.hooks(event):
            return
        context = ScopeContext(scope=scope, agent=self._agent)
        if self._report is None:
            self._unreported.append((event, context))
        else:
            self._report(event, context)
