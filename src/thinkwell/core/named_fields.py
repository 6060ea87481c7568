"""Structs that say which field was meant when they are given one they do not have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from thinkwell.core.spelling import unknown_names

_ELSEWHERE: Final = {
    "instructions": "system",
    "max_completion_tokens": "max_output_tokens",
    "max_iterations": "max_steps",
    "max_tokens": "max_output_tokens",
    "max_turns": "max_steps",
    "prompt": "system",
    "retries": "max_retries",
    "stop": "stop_sequences",
    "system_prompt": "system",
}
"""What other libraries, or our own classes, call a field."""


def unknown_field(struct: type[msgspec.Struct], given: Any) -> str | None:
    """What is wrong with the first given name that is no field, as a sentence."""
    known = struct.__struct_fields__
    for name in given:
        if name not in known and _ELSEWHERE.get(name) in known:
            return f"{struct.__name__} has no {name!r}. Did you mean {_ELSEWHERE[name]!r}?"
    return unknown_names(struct.__name__, given, known)


class NamedFields(msgspec.StructMeta):
    """A struct whose fields are given by name, and that says which one was meant."""

    if not TYPE_CHECKING:  # for type checkers it is called as every struct

        def __call__(cls, *args: Any, **fields: Any) -> Any:  # noqa: N805 - a metaclass
            """Make one."""
            if args:
                first = cls.__struct_fields__[0]
                raise TypeError(
                    f"{cls.__name__}({args[0]!r:.50}) does not name its field. Write "
                    f"`{cls.__name__}({first}=...)`."
                )
            wrong = unknown_field(cls, fields)
            if wrong is not None:
                raise TypeError(wrong)
            return super().__call__(**fields)
