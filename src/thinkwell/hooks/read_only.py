"""JSON data as hooks see it: to read, to print, to copy, not to change (spec/02 §5.0.5).

Dicts and lists that refuse to be changed, instead of a `MappingProxyType`, because hooks log and
forward what they see and only dicts and lists can be turned into JSON. They refuse at every depth:
a change that is dropped in silence would let a hook believe that it has hidden something.
"""

from __future__ import annotations

from typing import Any, NoReturn, cast


class ReadOnlyError(TypeError):
    """A hook wrote into what it was given. Quotes nothing of it."""


def _no_change(_self: object, *_args: object, **_kwargs: object) -> NoReturn:
    raise ReadOnlyError(
        "What a hook is given cannot be changed. Return a value from the hook instead."
    )


_refuse: Any = _no_change  # takes the place of methods with many signatures


class ReadOnlyDict(dict[str, Any]):
    """A dict whose entries cannot be set or removed. `dict(it)` gives one that can be changed."""

    __slots__ = ()

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> Any:
        """A copy, a deep copy or a pickle is an ordinary dict."""
        return dict, (dict(self),)


class ReadOnlyList(list[Any]):
    """A list that cannot be changed. `list(it)` gives one that can."""

    __slots__ = ()

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __reduce__(self) -> Any:
        """A copy, a deep copy or a pickle is an ordinary list."""
        return list, (list(self),)


_LEAVES = frozenset({str, int, float, bool, type(None)})


def read_only_copy(value: Any) -> Any:
    """A copy of JSON data that a hook may be given; nothing in it can be changed."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        if _LEAVES.issuperset(map(type, fields.values())):  # as nearly every chunk
            return ReadOnlyDict(fields)
        return ReadOnlyDict((key, read_only_copy(item)) for key, item in fields.items())
    if isinstance(value, list):
        return ReadOnlyList(read_only_copy(item) for item in cast("list[Any]", value))
    return value


def ordinary(value: Any) -> Any:
    """JSON data in which a hook may have put what it was given, as dicts and lists that can be
    changed: whoever gets it next owns it.
    """
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {key: ordinary(item) for key, item in items}
    if isinstance(value, list):
        return [ordinary(item) for item in cast("list[Any]", value)]
    return value
