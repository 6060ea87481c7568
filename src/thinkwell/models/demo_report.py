"""What tools have answered, put into words by the demo model. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from thinkwell.core import json
from thinkwell.messages.model_messages import ToolResultContent


def report(results: Sequence[ToolResultContent]) -> str:
    """All results: a table if they are of one kind, else one after the other."""
    rows = [fields for result in results if (fields := _fields(result.value))]
    if len(results) > 1 and len(rows) == len(results) and len({tuple(row) for row in rows}) == 1:
        return _table(rows)
    return "\n\n".join(_one(result) for result in results)


def _one(result: ToolResultContent) -> str:
    name = f"`{result.tool_name}`"
    if result.kind == "error-text":
        return f"The tool {name} failed: {result.value}"
    if result.kind == "execution-denied":
        return f"You did not allow {name}, so it was not run and nothing has changed."
    if fields := _fields(result.value):
        lines = [f"- **{key}**: {_plain(value)}" for key, value in fields.items()]
        return "\n".join((f"The tool {name} says:", "", *lines))
    return f"The tool {name} says: {_plain(result.value)}"


def _fields(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    head = list(rows[0])
    lines = [head, ["---"] * len(head), *([_cell(row[key]) for key in head] for row in rows)]
    return "Side by side:\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: Any) -> str:
    return _plain(value).replace("|", "\\|").replace("\n", " ")


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
