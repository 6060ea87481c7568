"""The chunks of a UI message stream: which kinds there are and which fields each may carry.

A chunk is a plain dict in the AI SDK's wire shape; nothing here wraps it. `check_chunk` says
whether a client of any supported version can read a chunk; it is for tests, tools and the border
where strangers hand chunks in, not for every delta. The meaning of a chunk lives in `fold.py`,
the order duties of a producer with the producer (spec/01 §9.1, F19).

Invariant: an optional field that has no value is absent. Clients refuse `null` there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

from thinkwell.messages.plain_parts import PLAIN_PARTS

Chunk: TypeAlias = dict[str, Any]
"""One object of the stream, with its kind under `type`."""

FINISH_REASONS = frozenset({"stop", "length", "content-filter", "tool-calls", "error", "other"})

_Check: TypeAlias = Callable[[Any], str | None]


def _text(value: Any) -> str | None:
    return None if isinstance(value, str) else "a string"


def _flag(value: Any) -> str | None:
    return None if isinstance(value, bool) else "a boolean"


def _object(value: Any) -> str | None:
    return None if isinstance(value, dict) else "an object"


def _anything(value: Any) -> str | None:  # noqa: ARG001 - one shape for every check
    return None


def _by_provider(value: Any) -> str | None:
    if isinstance(value, dict):
        entries = cast("dict[Any, Any]", value)
        if all(isinstance(entry, dict) for entry in entries.values()):
            return None
    return "an object of objects, one per provider"


def _finish_reason(value: Any) -> str | None:
    return None if value in FINISH_REASONS else "one of " + ", ".join(sorted(FINISH_REASONS))


def _dotted(value: Any) -> str | None:
    return None if isinstance(value, str) and "." in value else 'a string like "provider.type"'


_PM: dict[str, _Check] = {"providerMetadata": _by_provider}
_CALL: dict[str, _Check] = {"toolCallId": _text}
_RESULT: dict[str, _Check] = {"dynamic": _flag, "providerExecuted": _flag, **_PM}
_INPUT: dict[str, _Check] = {**_RESULT, "toolMetadata": _object, "title": _text}
_META: dict[str, _Check] = {"messageMetadata": _object}

_FIELDS: dict[str, tuple[dict[str, _Check], dict[str, _Check]]] = {
    "start": ({}, {"messageId": _text, **_META}),
    "start-step": ({}, {}),
    "finish-step": ({}, {}),
    "reset-step": ({}, {}),
    "text-start": ({"id": _text}, _PM),
    "text-delta": ({"id": _text, "delta": _text}, _PM),
    "text-end": ({"id": _text}, _PM),
    "reasoning-start": ({"id": _text}, _PM),
    "reasoning-delta": ({"id": _text, "delta": _text}, _PM),
    "reasoning-end": ({"id": _text}, _PM),
    "tool-input-start": ({**_CALL, "toolName": _text}, _INPUT),
    "tool-input-delta": ({**_CALL, "inputTextDelta": _text}, {}),
    "tool-input-available": ({**_CALL, "toolName": _text, "input": _anything}, _INPUT),
    "tool-input-error": (
        {**_CALL, "toolName": _text, "input": _anything, "errorText": _text},
        _INPUT,
    ),
    "tool-approval-request": (
        {"approvalId": _text, **_CALL},
        {"isAutomatic": _flag, "signature": _text, "approvalDescriptor": _anything},
    ),
    "tool-approval-response": (
        {"approvalId": _text, "approved": _flag},
        {"reason": _text, "providerExecuted": _flag, **_PM},
    ),
    "tool-output-available": ({**_CALL, "output": _anything}, {"preliminary": _flag, **_RESULT}),
    "tool-output-error": ({**_CALL, "errorText": _text}, _RESULT),
    "tool-output-denied": (_CALL, {}),
    **{
        kind: (
            {name: _dotted if name == "kind" else _text for name in part.required},
            {**dict.fromkeys(part.optional, _text), **_PM},
        )
        for kind, part in PLAIN_PARTS.items()
    },
    "message-metadata": (_META, {}),
    "finish": ({}, {"finishReason": _finish_reason, **_META}),
    "abort": ({}, {"reason": _text}),
    "error": ({"errorText": _text}, {}),
}
_DATA: tuple[dict[str, _Check], dict[str, _Check]] = (
    {"data": _anything},
    {"id": _text, "transient": _flag},
)

CHUNK_KINDS = frozenset(_FIELDS)
"""Every kind but the open family `data-<name>`."""


def is_data_kind(kind: str) -> bool:
    """Whether a chunk or part type belongs to the family `data-<name>`."""
    return len(kind) > len("data-") and kind.startswith("data-")


def check_chunk(chunk: Chunk) -> str | None:
    """None when every supported client can read the chunk, else what is wrong with it."""
    kind = chunk.get("type")
    if not isinstance(kind, str):
        return "a chunk needs a string `type`"
    fields = _FIELDS.get(kind) or (_DATA if is_data_kind(kind) else None)
    if fields is None:
        return f"there is no chunk of type {kind!r}"
    required, optional = fields
    for name in required:
        if name not in chunk:
            return f"{kind} needs `{name}`"
    return _check_values(chunk, kind, {**required, **optional})


def _check_values(chunk: Chunk, kind: str, known: dict[str, _Check]) -> str | None:
    for name, value in chunk.items():
        if name == "type":
            continue
        check = known.get(name)
        if check is None:
            return f"{kind} has no field `{name}`"
        if value is None and name not in ("input", "output", "data"):
            return f"`{name}` of {kind} is null; leave it out instead"
        if (wanted := check(value)) is not None:
            return f"`{name}` of {kind} must be {wanted}"
    return None


def tool_output(tool_call_id: str, output: Any, *, preliminary: bool = False) -> Chunk:
    """The result of a tool call, or one that more will follow."""
    chunk: Chunk = {"type": "tool-output-available", "toolCallId": tool_call_id, "output": output}
    if preliminary:
        chunk["preliminary"] = True
    return chunk


def tool_error(tool_call_id: str, error_text: str) -> Chunk:
    """The failure of a tool call."""
    return {"type": "tool-output-error", "toolCallId": tool_call_id, "errorText": error_text}


_OPENING = frozenset({"tool-input-start", "tool-input-available", "tool-input-error"})


def opened_call(chunk: Chunk) -> str | None:
    """The call a chunk makes known to whoever reads its stream from the start, or None (F20)."""
    call_id = chunk.get("toolCallId")
    return call_id if chunk.get("type") in _OPENING and isinstance(call_id, str) else None
