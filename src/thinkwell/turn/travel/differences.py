"""What the code of today would do otherwise: the first place where two values differ, and both.

Pure. A path names the place: `messages[2].content[0].text`, `tools.search.description`, `system`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Literal, cast

import msgspec

from thinkwell.core import json
from thinkwell.core.errors import ConfigurationError
from thinkwell.turn.recorded_requests import RecordedRequest
from thinkwell.turn.run.request_record import REDACTED

ABSENT = "(nothing)"
"""Stands for what one side does not have."""
ALLOWED = {
    "prompt": ("system",),
    "descriptions": ("tools.*.description", "tools.*.input_schema*.description"),
    "tools": ("tools", "tools.*", "tool_choice"),
    "model": ("provider", "model"),
    "settings": (
        "temperature",
        "top_p",
        "top_k",
        "max_output_tokens",
        "presence_penalty",
        "frequency_penalty",
        "stop_sequences*",
        "seed",
        "headers*",
        "provider_options*",
        "connect_timeout",
    ),
}
"""Names for differences that a test may allow, and the paths they stand for."""
_SHOWN = 300
"""Characters of a value that are shown, around the place where it differs."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One place where a replay does not do what was recorded."""

    where: Literal["request", "tool", "chunk", "calls", "end"]
    """What differs: a model request, a tool's input, a chunk of the stream, how many model calls
    there are, or how the turn ended.
    """
    step: int | None = None
    path: str = ""
    """The place in it."""
    recorded: Any = None
    now: Any = None

    def __str__(self) -> str:
        before, after = shown(self.recorded, self.now)
        return f"{self.title}\n  recorded: {before}\n  now:      {after}"

    @property
    def title(self) -> str:
        """Where it is, in a line."""
        step = "" if self.step is None else f"step {self.step}: "
        match self.where:
            case "request":
                return f"{step}the model is sent something else at {self.path or 'its request'}"
            case "tool":
                return f"{step}a tool is given something else: {self.path}"
            case "chunk":
                return f"the stream differs at chunk {self.path}"
            case "calls":
                return f"{step}the model is asked another number of times"
            case "end":
                return f"the turn ends differently: {self.path}"


def compare_requests(
    recorded: RecordedRequest, now: RecordedRequest, *, headers: bool = True
) -> list[Difference]:
    """Every place where two requests differ, in the order in which a reader asks."""
    before, after = _plain(recorded), _plain(now)
    if not headers:
        del before["headers"], after["headers"]
    return [
        Difference(where="request", step=recorded.step, path=path, recorded=left, now=right)
        for name in before
        for path, left, right in _differing(before[name], after[name], name)
    ]


def compare_chunks(recorded: Sequence[str], now: Sequence[str]) -> Difference | None:
    """The first chunk that differs, by its bytes."""
    for place in range(max(len(recorded), len(now))):
        before = recorded[place] if place < len(recorded) else ABSENT
        after = now[place] if place < len(now) else ABSENT
        if before != after:
            return Difference(where="chunk", path=str(place), recorded=before, now=after)
    return None


def not_allowed(differences: Sequence[Difference], allow: Collection[str]) -> list[Difference]:
    """The differences that matter: names of `ALLOWED`, or patterns of paths, are left out."""
    patterns: list[str] = []
    for name in allow:
        if name not in ALLOWED and not any(mark in name for mark in ".*[") and name != "chunks":
            known = ", ".join([*ALLOWED, "chunks"])
            raise ConfigurationError(
                f"allow={name!r} names no difference. Choose from: {known}; or give the path of "
                'one, for example "messages[0].content*".'
            )
        patterns += ALLOWED.get(name, (name,))
    return [
        each
        for each in differences
        if not (each.where == "chunk" and "chunks" in patterns)
        and not (each.where == "request" and any(_matches(each.path, p) for p in patterns))
    ]


def shown(recorded: Any, now: Any) -> tuple[str, str]:
    """Both values as texts, cut around the place where they differ."""
    before = recorded if isinstance(recorded, str) else json.dumps(json.to_jsonable(recorded))
    after = now if isinstance(now, str) else json.dumps(json.to_jsonable(now))
    same = 0
    while same < min(len(before), len(after)) and before[same] == after[same]:
        same += 1
    start = max(0, same - _SHOWN // 3) if max(len(before), len(after)) > _SHOWN else 0
    return _cut(before, start), _cut(after, start)


def _cut(text: str, start: int) -> str:
    piece = text[start : start + _SHOWN]
    left, right = "…" if start else "", "…" if start + _SHOWN < len(text) else ""
    return f"{left}{piece}{right}".replace("\n", "\\n")


def _matches(path: str, pattern: str) -> bool:
    # Brackets are places of a list here, not the character classes of a shell.
    plain = pattern.replace("[", "[[]")
    return fnmatchcase(path, plain)


def _plain(recorded: RecordedRequest) -> dict[str, Any]:
    """A request as JSON data, what a reader wants to know first at the top; tools by name."""
    fields = cast("dict[str, Any]", msgspec.to_builtins(recorded.request, enc_hook=_data))
    first = {
        "provider": recorded.provider,
        "model": recorded.model,
        "system": fields.pop("system"),
        "tools": {tool["name"]: tool for tool in fields.pop("tools")},
        "messages": fields.pop("messages"),
    }
    return {**first, **fields}


def _data(value: Any) -> Any:
    """A hook may put anything into a request; what is no data is compared by how it is shown."""
    return dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else repr(value)


def _differing(before: Any, after: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """The deepest places at which two values differ."""
    if before in (after, REDACTED):
        return
    if isinstance(before, dict) and isinstance(after, dict):
        left, right = cast("dict[str, Any]", before), cast("dict[str, Any]", after)
        for name in {**left, **right}:
            found = left.get(name, ABSENT), right.get(name, ABSENT)
            yield from _differing(*found, f"{path}.{name}")
    elif isinstance(before, list | tuple) and isinstance(after, list | tuple):
        first, second = cast("list[Any]", before), cast("list[Any]", after)
        for place in range(max(len(first), len(second))):
            one = first[place] if place < len(first) else ABSENT
            other = second[place] if place < len(second) else ABSENT
            yield from _differing(one, other, f"{path}[{place}]")
    else:
        yield path, before, after
