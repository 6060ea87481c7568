"""`TimeLimits`, the one table of time limits: defaults, the agent's, the turn's
(docs/config/settings.md).

It stands with the hooks because `TurnConfig.timeout` is checked where it is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from thinkwell.core.errors import ConfigurationError
from thinkwell.core.spelling import did_you_mean


def _is_seconds(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


class TimeLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long things may take, in seconds; None means as long as they like.

    The one table of limits: `time_limits` of the agent changes it by name, `TurnConfig.timeout` for
    one turn.
    """

    connect: float | None = 15.0
    """Until the provider takes the connection."""
    first_chunk: float | None = 180.0
    """Until the model says anything."""
    chunk: float | None = 120.0
    """Between two things it says."""
    step: float | None = 1800.0
    """One model call."""
    tool: float | None = 600.0
    """One call of a tool that has no limit of its own."""
    tools: Mapping[str, float | None] = msgspec.field(default_factory=dict[str, float | None])
    """One call of a tool by name; wins over the tool's own limit."""
    hook: float | None = 60.0
    """One call of a hook that has no limit of its own."""
    job: float | None = 3600.0
    """One attempt of a job."""
    total: float | None = None
    """The whole turn."""
    approval: float | None = None
    """How long a call waits for a person, if its tool does not say; then it is denied."""
    grace: float = 1.0
    """What a tool or hook gets to see a stop before it is cancelled, and again to end then."""

    def __post_init__(self) -> None:
        if self.grace != 0 and not _is_seconds(self.grace):
            raise ConfigurationError(f"The time limit grace is {self.grace!r}. Give seconds, or 0.")
        special = ("tools", "grace")
        named = {
            name: getattr(self, name) for name in self.__struct_fields__ if name not in special
        }
        named.update({f"tools[{name!r}]": value for name, value in self.tools.items()})
        for name, value in named.items():
            if value is not None and not _is_seconds(value):
                raise ConfigurationError(
                    f"The time limit {name} is {value!r}. Give seconds above 0, or None for no "
                    "limit."
                )

    def of_tool(self, name: str, own: float | None) -> float | None:
        """What one call may take: by name, else what the tool says, else the general limit."""
        if name in self.tools:
            return self.tools[name]
        return self.tool if own is None else own


USUAL = TimeLimits()


def limits_of(
    time_limits: Mapping[str, Any], timeout: float | Mapping[str, Any] | None = None
) -> TimeLimits:
    """The defaults, changed by the agent's `time_limits`, then by the turn's `timeout`.

    A single number is the limit of the whole turn.
    """
    changes: Mapping[str, Any]
    if isinstance(timeout, Mapping):
        changes = timeout
    else:
        changes = {} if timeout is None else {"total": timeout}
    named: dict[str, Any] = {**time_limits, **changes}
    known = TimeLimits.__struct_fields__
    for name in named:
        if name not in known:
            raise ConfigurationError(
                f"There is no time limit {name!r}. Known: {', '.join(known)}."
                f"{did_you_mean(name, known)}"
            )
    tools = (time_limits.get("tools", {}), changes.get("tools", {}))
    for given in tools:
        if not isinstance(given, Mapping):
            raise ConfigurationError(
                f"The time limit tools is {given!r}. Give seconds by the tools' names."
            )
    named["tools"] = {**tools[0], **tools[1]}
    return TimeLimits(**named)
