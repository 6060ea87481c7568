"""The instance of an agent: the object users subclassed, with its tools, hooks and scopes.

Needs no store and no event loop, so that hooks and scopes can be registered before the first use.
Waking it is `wiring.py`'s business. What changes about the scopes until then is reported to the
scope hooks when it wakes; a change that no hook was there to hear is reported to nobody (spec/02
§12.17).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from thinkwell.agent.agent import Agent
from thinkwell.agent.plugins import TrackedScopes
from thinkwell.agent.think import Think
from thinkwell.features import telemetry
from thinkwell.hooks.contexts import ScopeContext
from thinkwell.hooks.registry import TRACE, HookRegistry
from thinkwell.tools.scope import Scope
from thinkwell.tools.tool import Tool, bind_tools

AgentT = TypeVar("AgentT", bound=Agent)
ReportScope = Callable[[str, ScopeContext], object]
"""Runs the hooks of a scope event. Contract: returns at once."""


def new_instance(cls: type[AgentT], name: str) -> AgentT:
    """An instance of an agent class. Agents are made here and nowhere else."""
    agent = object.__new__(cls)
    agent._name = name  # pyright: ignore[reportPrivateUsage]
    return agent


class Instance:
    """One chat agent, whether awake or not."""

    def __init__(
        self, cls: type[Think], name: str, *, tools: Mapping[str, Tool] | None = None
    ) -> None:
        self.agent = agent = new_instance(cls, name)
        self.own_tools: Mapping[str, Tool] = {**bind_tools(agent), **(tools or {})}
        self.hooks = agent._registry = HookRegistry(agent, Think)  # pyright: ignore[reportPrivateUsage]
        self.hooks.add(TRACE, telemetry.span)
        self.scopes = agent.scopes = TrackedScopes(
            reserved=lambda: self.own_tools,
            on_register=lambda scope: self._scope_changed("on_scope_register", scope),
            on_unregister=lambda scope: self._scope_changed("on_scope_unregister", scope),
        )
        self._unreported: list[tuple[str, ScopeContext]] = []
        self._report: ReportScope | None = None

    def report_scopes_to(self, report: ReportScope) -> None:
        """The agent wakes: report what has changed, and from now on every change."""
        self._report = report
        while self._unreported:
            report(*self._unreported.pop(0))

    def _scope_changed(self, event: str, scope: Scope) -> None:
        if not self.hooks.hooks(event):
            return
        context = ScopeContext(scope=scope, agent=self.agent)
        if self._report is None:
            self._unreported.append((event, context))
        else:
            self._report(event, context)
