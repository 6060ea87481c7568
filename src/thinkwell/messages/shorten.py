"""Shorter versions of tool outputs that still read as what they were (spec/03 §11).

A list stays a list and an object an object, so that whoever formats the output of one tool still
can. Used for rows that are too large (`limits.py`) and for what a model sees of old messages
(`convert.py`).

Invariant: the value handed in is never changed; one that fits comes back as it is.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

from thinkwell.core import json

MAX_DEPTH = 8
"""Containers nested deeper than this are left out of what has to be shortened."""

_MIN_CHILD = 80
_TOO_DEEP = "[nested too deep, left out]"


class Shortened(NamedTuple):
    """A value, whether it had to be shortened, and how long it was."""

    value: Any
    truncated: bool
    original_length: int


def truncate_tool_output(value: Any, max_chars: int) -> Shortened:
    """`value` in at most about `max_chars` characters of text or compact JSON."""
    length = _length(value)
    short = value if length <= max_chars else _shorten(value, max_chars, 0)
    return Shortened(short, short is not value, length)


def cut_text(text: str, max_chars: int) -> str:
    """The beginning of `text` and a note of its length, together at most `max_chars`."""
    if len(text) <= max_chars:
        return text
    note = truncation_note(len(text))
    if max_chars <= len(note):
        return note[:max_chars]
    return text[: max_chars - len(note)] + note


def truncation_note(original_length: int) -> str:
    """What stands at the end of a text that was cut."""
    return f"... [truncated {original_length} chars]"


def _shorten(value: Any, max_chars: int, depth: int) -> Any:
    if isinstance(value, str):
        return cut_text(value, max_chars)
    if _length(value) <= max_chars:
        return value
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return _TOO_DEEP if depth >= MAX_DEPTH else _shorten_list(items, max_chars, depth)
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return _TOO_DEEP if depth >= MAX_DEPTH else _shorten_object(fields, max_chars, depth)
    return value


def _shorten_list(items: list[Any], max_chars: int, depth: int) -> list[Any]:
    # A single text must leave room for its brackets and quotes, or nothing of it would be left.
    budget = _child_budget(max_chars - len('[""]'), len(items))
    kept: list[Any] = []
    size = 2
    for item in items:
        short = _shorten(item, budget, depth + 1)
        size += _json_length(short) + 1
        # Once one item does not fit, the later ones cannot either: the tail goes as a whole.
        if kept and size + _json_length(_dropped_note(len(items))) > max_chars:
            break
        kept.append(short)
    if len(kept) < len(items):
        kept.append(_dropped_note(len(items) - len(kept)))
    return kept if _length(kept) <= max_chars else [_marker(items)]


def _shorten_object(value: dict[str, Any], max_chars: int, depth: int) -> dict[str, Any]:
    budget = _child_budget(max_chars, len(value))
    short = {key: _shorten(item, budget, depth + 1) for key, item in value.items()}
    size = _length(short)
    texts = [key for key, item in short.items() if isinstance(item, str)]
    for key in sorted(texts, key=lambda name: len(short[name]), reverse=True):
        if size <= max_chars:
            break
        before = _json_length(short[key])
        # From the original, so that the note tells its true length and not that of the first cut.
        original = value[key] if isinstance(value[key], str) else short[key]
        short[key] = cut_text(original, max_chars // 4)
        size += _json_length(short[key]) - before
    return short if size <= max_chars else _marker(value)


def _child_budget(max_chars: int, children: int) -> int:
    return max_chars if children == 1 else max(_MIN_CHILD, max_chars // min(children, 10))


def _dropped_note(count: int) -> str:
    return f"... [{count} more items left out]"


def _marker(value: Any) -> dict[str, Any]:
    return {"__truncated": True, "__truncatedChars": _length(value)}


def _length(value: Any) -> int:
    return len(value) if isinstance(value, str) else _json_length(value)


def _json_length(value: Any) -> int:
    return len(json.dumps(value))
