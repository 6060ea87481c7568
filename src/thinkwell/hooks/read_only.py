"""JSON data as hooks see it: to read, to print, to copy, not to change (spec/02 §5.0.5).

A dict that refuses to be changed, instead of a `MappingProxyType`, because hooks log and forward
what they see and only dicts can be turned into JSON. What is nested inside is a copy where a turn
still needs the original, so that a hook cannot reach the turn's own data.
"""

from __future__ import annotations

from typing import Any, NoReturn, cast

from thinkwell.core import json


def _no_change(_self: object, *_args: object, **_kwargs: object) -> NoReturn:
    raise TypeError("What a hook is given cannot be changed. Return a value from the hook instead.")


_refuse: Any = _no_change  # takes the place of methods with many signatures


class ReadOnlyDict(dict[str, Any]):
    """A dict whose entries cannot be set or removed. `dict(it)` gives one that can be changed."""

    __slots__ = ()

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> Any:
        """A copy, a deep copy or a pickle is an ordinary dict."""
        return dict, (dict(self),)


def read_only_copy(value: Any) -> Any:
    """A copy of JSON data that a hook may be given; an object at its top cannot be changed."""
    if isinstance(value, dict):
        return ReadOnlyDict(json.loads(json.dumps(value)))
    if isinstance(value, list):
        return json.loads(json.dumps(cast("list[Any]", value)))
    return value
