"""A scripted answer, the same for every protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from thinkwell.core import json


@dataclass(frozen=True, kw_only=True, slots=True)
class MockCall:
    """A tool call in a reply, its arguments cut into the given pieces."""

    name: str
    arguments: Sequence[str] = ("{}",)
    id: str = "call-1"


@dataclass(frozen=True, kw_only=True, slots=True)
class MockServerCall:
    """A call that the provider runs itself, where its protocol has that."""

    name: str
    input: Mapping[str, Any] = field(default_factory=dict[str, Any])
    id: str = "srvtoolu_1"
    result: Any = None
    """None: there is none yet."""
    asked_before: bool = False
    """The call was in an answer before this one; here is only its result."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """A well-formed answer."""

    deltas: Sequence[str] = ()
    """Text deltas."""
    reasoning: Sequence[str] = ()
    """Reasoning deltas, sent before the text."""
    signature: str = ""
    """What the provider wants to see again with the reasoning, where its protocol has that."""
    server_calls: Sequence[MockServerCall] = ()
    """Calls that the provider runs, sent before the text."""
    calls: Sequence[MockCall] = ()
    """Tool calls, sent after the text."""
    finish_reason: str | None = None
    """In the protocol's own words. Default: that of a whole answer, with or without calls."""
    usage: Mapping[str, Any] = field(
        default_factory=lambda: {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
    )
    """In the words of chat completions; the other protocols translate."""
    interval: float = 0.0
    """Seconds between two deltas; 0 means burst."""
    hold_after: int | None = None
    """How many events of a kept answer (`background`) come before it waits to be released."""


def event(payload: Mapping[str, Any], *, named: bool = False) -> bytes:
    """One server-sent event; `named` ones say their type twice, as some protocols do."""
    head = b"event: " + str(payload["type"]).encode() + b"\n" if named else b""
    return head + b"data: " + json.dump_bytes(payload) + b"\n\n"
