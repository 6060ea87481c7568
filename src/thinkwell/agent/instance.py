"""The instance of an agent: the object users subclassed, with its tools and hooks.

Needs no store and no event loop, so that hooks and scopes can be registered before the first use.
Waking it is `wiring.py`'s business.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TypeVar

from thinkwell.agent.agent import Agent
from thinkwell.agent.think import Think
from thinkwell.core.bus import AgentEvents
from thinkwell.hooks.registry import HookRegistry
from thinkwell.hooks.seats import features_of, place
from thinkwell.tools.scope_registry import ScopeRegistry
from thinkwell.tools.tool import Tool, bind_tools

AgentT = TypeVar("AgentT", bound=Agent)


def new_instance(cls: type[AgentT], name: str) -> AgentT:
    """An instance of an agent class. Agents are made here and nowhere else."""
    agent = object.__new__(cls)
    agent._name = name  # pyright: ignore[reportPrivateUsage]
    agent.events = AgentEvents()  # before it wakes: its first event may be one of its start
    return agent


class Instance:
    """One chat agent, whether awake or not."""

    def __init__(
        self, cls: type[Think], name: str, *, tools: Mapping[str, Tool] | None = None
    ) -> None:
        self.agent = agent = new_instance(cls, name)
        self.own_tools: Mapping[str, Tool] = {**bind_tools(agent), **(tools or {})}
        self.hooks = agent._registry = HookRegistry(agent, Think)  # pyright: ignore[reportPrivateUsage]
        place(self, features_of(cls))

    def hears(self, event: str) -> bool:
        """Whether there is a hook for an event now."""
        return bool(self.hooks.hooks(event))

    @cached_property
    def scopes(self) -> ScopeRegistry:
        """The tools and context that come and go; none if the class has left them out."""
        found = vars(self.agent).get("scopes")
        return found if isinstance(found, ScopeRegistry) else ScopeRegistry()
