"""`Agent`: one addressable, durable instance: a class, a name, a state.

A facade: bodies delegate. The host makes instances; users override `on_start` and use `state`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from thinkwell.agent.definition import check_class, class_name_of
from thinkwell.agent.state import StateBox


class Agent:
    """Base of every agent. Subclass `Think` for chat."""

    initial_state: ClassVar[Any] = None
    """State of an agent that has none yet; None means no state at all."""

    agent_class: ClassVar[str] = "agent"
    """The class in kebab case, as in URLs."""

    _name: str
    _state: StateBox

    def __init_subclass__(cls, *, name: str | None = None, **options: Any) -> None:
        """Give the class its stable name and check what it defines."""
        super().__init_subclass__(**options)
        cls.agent_class = class_name_of(cls, name)
        check_class(cls, cls.__mro__[1])

    @property
    def name(self) -> str:
        """The name of this instance."""
        return self._name

    @property
    def state(self) -> Any:
        """The state clients see. Change it with `await self.set_state(...)`."""
        return self._state.value

    async def set_state(self, state: Any) -> None:
        """Store a new state, then show it to every connected client."""
        await self._state.set(state)

    async def on_start(self) -> None:
        """Called when the agent wakes, before any turn runs, recovered ones included."""
