"""What `run` is given for one turn beside its input, and what of it outlives the process.

The name of a model, the cap of steps and the schema of an output are stored on the turn's row
(`Chosen`): an attempt after a crash runs as the first one did. A function or a model object lives
only in the process that asked. Its row names it, and a turn that has lost it fails with
`CallerLostError`: to go on without it would answer something that nobody asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, cast

import msgspec

from thinkwell.core import json
from thinkwell.core.errors import CallerLostError, ConfigurationError, ToolDefinitionError
from thinkwell.hooks import values
from thinkwell.hooks.given import read_tools
from thinkwell.journal.turns import Chosen
from thinkwell.tools.output import Output
from thinkwell.tools.tool import Tool, as_tool


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for one turn instead of the agent's settings."""

    model: Any = None
    max_steps: int | None = None
    output: Output[Any] | None = None
    system: str | None = None
    """The system prompt of a fork."""
    tools: Mapping[str, Tool] = MappingProxyType({})
    handled: Mapping[str, Tool] = MappingProxyType({})
    """Client tools whose calls the caller of `chat` runs: as a client's, they go with it."""

    def stored(self) -> Chosen | None:
        """What its row keeps of it; None if nothing was chosen."""
        named = _names_of(self.model)
        lost = [] if named is not None or self.model is None else [f"model={_shown(self.model)}"]
        lost += [f"the tool {name!r}" for name in self.tools]
        chosen = Chosen(
            model=named,
            max_steps=self.max_steps,
            output=None if self.output is None else self.output.to_json(),
            live=tuple(lost),
        )
        return None if chosen == _NOTHING_CHOSEN else chosen


NO_OPTIONS = Options()
_NOTHING_CHOSEN = Chosen()
_CAP = values.whole(1)


def read_options(*, model: Any, max_steps: Any, output: Any, tools: Any) -> Options:
    """Check what was given to `run`. Raises before anything is accepted, and says what to write."""
    problem = None if max_steps is None else values.problem_with(max_steps, _CAP)
    if problem is not None:
        raise ConfigurationError(f"The max_steps of run() {problem}")
    return Options(
        model=model,
        max_steps=None if max_steps is None else int(max_steps),  # any whole number; a row keeps it
        output=None if output is None else as_output(output),
        tools=tools_by_name(tools, "run"),
    )


def as_output(given: Any) -> Output[Any]:
    """An `Output`, or the type or schema of one."""
    return cast("Output[Any]", given) if isinstance(given, Output) else Output(given)


def check_body(body: Any) -> dict[str, Any] | None:
    """The body that is stored with the turn: hooks read it, also after a crash."""
    if body is None:
        return None
    if not isinstance(body, Mapping):
        raise ConfigurationError(
            f'run(body={body!r}): give a dict, for example {{"city": "Oslo"}}.'
        )
    try:
        return json.to_storable(dict(cast("Mapping[str, Any]", body)))
    except ValueError as error:
        raise ConfigurationError(
            f"run(body=...) must be JSON, because it is stored with the turn: {error}"
        ) from error


def tools_by_name(tools: Iterable[Any] | Mapping[str, Any], call: str) -> dict[str, Tool]:
    """Functions and tools as a list, or by the names the model is to see."""
    if isinstance(tools, Mapping):
        return read_tools(cast("Mapping[str, Any]", tools), f"{call}(tools=...)")
    if callable(tools) or isinstance(tools, str | Tool):
        raise ToolDefinitionError(f"{call}(tools={_shown(tools)}): give a list, tools=[...].")
    found: dict[str, Tool] = {}
    for tool in map(as_tool, tools):
        if tool.name in found:
            raise ToolDefinitionError(
                f"{call}() was given two tools named {tool.name!r}. Rename one of them."
            )
        found[tool.name] = tool
    return found


def recall_options(chosen: Chosen) -> Options:
    """The same again from the row, for an attempt that has only that.

    Raises `CallerLostError` if a part of it died with the process that asked.
    """
    if chosen.live:
        raise CallerLostError(chosen.live)
    return Options(
        model=chosen.model,
        max_steps=chosen.max_steps,
        output=None if chosen.output is None else Output.from_json(chosen.output),
        system=chosen.system,
    )


def _names_of(model: Any) -> str | tuple[str, ...] | None:
    """The model as it can be stored: a name, or a list of names."""
    if isinstance(model, str):
        return model
    if isinstance(model, list | tuple):
        names = cast("list[Any]", model)
        if all(isinstance(name, str) for name in names):
            return tuple(cast("list[str]", names))
    return None


def _shown(value: Any) -> str:
    return str(getattr(value, "__name__", None) or type(value).__name__)
