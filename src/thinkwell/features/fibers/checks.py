"""What may be said about a fiber: an error names what was given and what to write instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from thinkwell.core import json
from thinkwell.core.errors import FiberError
from thinkwell.features.jobs.desk import checked_json
from thinkwell.journal.fibers import FiberStatus

ENDS = ("completed", "aborted", "interrupted", "error")


def check_function(name: Any, function: Any) -> None:
    """Refuse what is no fiber: the error says what to write."""
    if not isinstance(name, str) or not name:
        raise FiberError(
            f'A fiber was given the name {name!r}. Give a text: `start("import", fn)`.'
        )
    if not callable(function):
        raise FiberError(
            f"The fiber {name!r} was given {function!r}. Give an async function of its context: "
            "`async def work(ctx): ...`."
        )


def read_statuses(status: Any) -> tuple[str, ...]:
    """The statuses somebody asks for. Raises `FiberError` for one that no fiber has."""
    known: tuple[str, ...] = get_args(FiberStatus)
    given = known if status is None else (status,) if isinstance(status, str) else tuple(status)
    for each in given:
        if each not in known:
            raise FiberError(f"No fiber has the status {each!r}. There are: {', '.join(known)}.")
    return given


def checked_result(who: str, said: Any) -> dict[str, Any]:
    """What somebody says became of a fiber, as JSON data. Raises `FiberError`."""
    if isinstance(said, Mapping) and said.get("status") in ENDS:  # pyright: ignore[reportUnknownMemberType]
        return {str(name): json.to_storable(value) for name, value in said.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    raise FiberError(
        f"{who} {said!r:.100}. Give None, or what became of it: "
        f'{{"status": "completed"}}, one of {", ".join(ENDS)}.'
    )


def reason_of(said: Mapping[str, Any]) -> str | None:
    """Why, if somebody said so."""
    text = said.get("error", said.get("reason"))
    return None if text is None else str(text)


def mapping_of(value: Any) -> dict[str, Any]:
    """The object, or an empty one for anything else."""
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def storable(name: str, value: Any) -> Any:
    """As JSON data that a row can hold. Raises `FiberError`."""
    try:
        return checked_json(value)
    except ValueError as error:
        raise FiberError(f"What the fiber {name!r} keeps cannot be stored: {error}.") from error
