"""JSON data as a value of a type: the state of `Think[State]`, the input of `ctx.input_as(Model)`.

What a type checker is told about such a value is true, because it is checked here when it is read.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import msgspec

from thinkwell.core import json
from thinkwell.tools.schema import explain

T = TypeVar("T")


def read_as(kind: type[T], value: Any, what: str) -> T:
    """JSON data as a pydantic model, a dataclass, a struct, a TypedDict, or what else has a type.

    `what` is named in the `ValueError` for data that does not fit.
    """
    try:
        return _reader(kind)(value)
    except ValueError as error:
        name = getattr(kind, "__name__", str(kind))
        raise ValueError(f"{what} does not fit {name}: {_problems(error)}") from error


@cache
def _reader(kind: Any) -> Callable[[Any], Any]:
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError

    try:
        adapter: TypeAdapter[Any] = TypeAdapter(kind)
    except PydanticUserError:  # structs; before Python 3.12 `typing.TypedDict`, too
        return lambda value: msgspec.convert(value, kind)
    # As JSON, so that strict types accept what JSON can only write as text.
    return lambda value: adapter.validate_json(json.dumps(value))


def _problems(error: ValueError) -> str:
    from pydantic import ValidationError

    return "; ".join(explain(error, "field")) if isinstance(error, ValidationError) else str(error)
