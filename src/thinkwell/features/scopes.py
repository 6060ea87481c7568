"""Scopes of an agent: tools and context that come and go while it is awake (spec/02 §12).

The namespace `agent.scopes`. It can be filled before the agent wakes; what changes until then is
reported to the scope hooks when it does. A change that no hook was there to hear is reported to
nobody (spec/02 §12.17).
"""

from __future__ import annotations

from typing import Self

from thinkwell.core.signal import Disposer
from thinkwell.hooks.contexts import ScopeContext
from thinkwell.hooks.feature import Feature, Kit, Unwoken
from thinkwell.hooks.plugins import tracked
from thinkwell.tools.scope import Scope
from thinkwell.tools.scope_registry import ScopeRegistry


class Scopes(Feature, ScopeRegistry):
    """The scopes of one agent. What a plugin registers goes with the plugin."""

    name = "scopes"
    _unwoken: Unwoken
    _awake = False

    def __init__(self) -> None:
        ScopeRegistry.__init__(
            self,
            reserved=lambda: self._unwoken.own_tools,
            on_register=lambda scope: self._report("on_scope_register", scope),
            on_unregister=lambda scope: self._report("on_scope_unregister", scope),
        )
        self._unreported: list[tuple[str, ScopeContext]] = []

    def __copy__(self) -> Self:
        """Each agent has scopes of its own."""
        return type(self)()

    def on_made(self, unwoken: Unwoken) -> None:
        """Scopes can be registered from now on."""
        self._unwoken = unwoken

    async def on_boot(self, kit: Kit) -> None:
        """Report what has changed, and from now on every change."""
        self._awake = True
        while self._unreported:
            kit.fire(*self._unreported.pop(0))

    def register(self, scope: Scope) -> Disposer:
        """Add a scope. See `ScopeRegistry`."""
        return tracked(super().register(scope))

    def _report(self, event: str, scope: Scope) -> None:
        if not self._unwoken.hears(event):
            return
        context = ScopeContext(scope=scope, agent=self._unwoken.agent)
        if self._awake:
            self.kit.fire(event, context)
        else:
            self._unreported.append((event, context))
