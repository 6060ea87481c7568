"""Which agent classes a host serves, by the names that URLs and rows have for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from thinkwell.agent.agent import Agent
from thinkwell.core.errors import ConfigurationError


def classes_by_name(agents: Sequence[type]) -> dict[str, type[Agent]]:
    """The classes of an app. Raises `ConfigurationError` for what is none, and for a name twice."""
    classes: dict[str, type[Agent]] = {}
    for cls in agents:
        if not issubclass(cls, Agent):
            raise ConfigurationError(
                f"{cls.__name__} is no agent class. Write `class {cls.__name__}(Think): ...`."
            )
        other = classes.setdefault(cls.agent_class, cast("type[Agent]", cls))
        if other is not cls:
            raise ConfigurationError(
                f"{other.__name__} and {cls.__name__} are both named {cls.agent_class!r}. "
                f'Give one another name: `class {cls.__name__}(Think, name="...")`.'
            )
    return classes
