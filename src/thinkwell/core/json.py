"""JSON in and out, in one place.

`dumps` and `loads` are the fast path for values that are JSON already (chunks, frames, rows).
`to_jsonable` is the border: it takes what a tool or a user hands in and gives plain JSON data or
says why it cannot. Lone surrogates become U+FFFD and NaN or infinities become null there, because
neither UTF-8 nor JSON can hold them. `to_storable` refuses such numbers.
"""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Any, cast
from uuid import UUID

import msgspec

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder()
_canonical = msgspec.json.Encoder(order="deterministic")

MAX_DEPTH = 64


def dumps(value: Any) -> str:
    """Compact JSON text of a value that is JSON data already."""
    return _encoder.encode(value).decode()


def dump_bytes(value: Any) -> bytes:
    """Compact UTF-8 JSON of a value that is JSON data already."""
    return _encoder.encode(value)


def canonical(value: Any) -> str:
    """JSON text with sorted keys: equal data gives equal text. -0.0 is 0.0, 1 and 1.0 differ."""
    text = _canonical.encode(value).decode()
    return _canonical.encode(_unsigned_zeros(value)).decode() if "-0.0" in text else text


def _unsigned_zeros(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _unsigned_zeros(each) for key, each in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_unsigned_zeros(each) for each in cast("list[Any]", value)]
    return value or 0.0 if isinstance(value, float) else value


def loads(text: str | bytes) -> Any:
    """Parse JSON. Raises `ValueError` on anything else."""
    return _decoder.decode(text)


def to_jsonable(value: Any) -> Any:
    """Plain JSON data for `value`, or `ValueError` that says what does not fit and where."""
    return _plain(value, "value", 0, False)


def to_storable(value: Any) -> Any:
    """The same for what somebody will read back: NaN and infinities are refused, too.

    As null they would be other values when they come back.
    """
    return _plain(value, "value", 0, True)


def encode(value: Any) -> str:
    """JSON text of anything `to_jsonable` takes."""
    return dumps(to_jsonable(value))


def clean_text(text: str) -> str:
    """Text that UTF-8 can hold: lone surrogates become U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def error_text(error: BaseException) -> str:
    """What an error says, as JSON can hold it: never raises, never empty."""
    try:
        said = str(error)
    except BaseException:  # noqa: BLE001 - an error whose text cannot be had is still told, by its name
        said = ""
    return clean_text(said) or type(error).__name__


def _plain(value: Any, path: str, depth: int, exact: bool) -> Any:  # noqa: FBT001 - ours
    if value is None or (isinstance(value, bool | int) and not isinstance(value, Enum)):
        return value
    if isinstance(value, str) and not isinstance(value, Enum):
        return clean_text(value)
    if isinstance(value, float):
        if exact and not math.isfinite(value):
            raise ValueError(f"{path} is {value}, which JSON cannot hold")
        return value if math.isfinite(value) else None
    if depth >= MAX_DEPTH:
        raise ValueError(f"{path} is nested deeper than {MAX_DEPTH} levels or refers to itself")
    if isinstance(value, dict):
        return _plain_mapping(cast("dict[Any, Any]", value), path, depth, exact)
    if isinstance(value, list | tuple):
        items = cast("list[Any]", value)
        return [_plain(item, f"{path}[{i}]", depth + 1, exact) for i, item in enumerate(items)]
    return _plain_object(value, path, depth, exact)


def _plain_mapping(value: dict[Any, Any], path: str, depth: int, exact: bool) -> dict[str, Any]:  # noqa: FBT001
    result: dict[str, Any] = {}
    for key, item in value.items():
        if not isinstance(key, str):
            raise ValueError(f"{path} has the key {key!r}; JSON keys are strings")
        result[clean_text(key)] = _plain(item, f"{path}.{key}", depth + 1, exact)
    return result


def _plain_object(value: Any, path: str, depth: int, exact: bool) -> Any:  # noqa: FBT001
    dump = getattr(value, "model_dump", None)
    if is_dataclass(value) and not isinstance(value, type):
        return {
            f.name: _plain(getattr(value, f.name), f"{path}.{f.name}", depth + 1, exact)
            for f in fields(value)
        }
    if isinstance(value, msgspec.Struct):
        names = zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True)
        return _plain({key: getattr(value, field) for key, field in names}, path, depth + 1, exact)
    if callable(dump):  # a pydantic model, without importing pydantic
        return _plain(dump(mode="json"), path, depth + 1, exact)
    if isinstance(value, Enum):
        return _plain(value.value, path, depth + 1, exact)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, UUID | Decimal):
        return str(value)
    raise ValueError(f"{path} is a {type(value).__name__}, which JSON cannot hold")
