"""Tool calls as one line each: what was called, with what, what came of it, how long it took.

`Cards` follows the calls of a conversation through chunks and through messages whose parts changed
(the outcome of an approved call comes that way, spec/01 §11.12). Times are taken here, so a call
that was not watched from its start has none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import msgspec

from thinkwell.core.clock import SystemClock
from thinkwell.core.json import dumps
from thinkwell.messages.message import UIMessage, tool_name, tool_parts

MAX_VALUE = 200
"""Characters of an input or output that a line shows."""
_ENDED = frozenset({"output-available", "output-error", "output-denied"})
_SIGNS = {
    "output-available": "✓",
    "output-error": "✗",
    "output-denied": "⊘",
    "approval-requested": "?",
}


class Card(msgspec.Struct, kw_only=True):
    """One tool call."""

    id: str
    tool: str
    state: str = "input-streaming"
    input: Any = None
    output: Any = None
    error: str = ""
    preliminary: bool = False
    started: float | None = None
    seconds: float | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing more comes of the call."""
        return self.state in _ENDED and not self.preliminary

    @property
    def is_worth_a_line(self) -> bool:
        """Whether a log should hold this state."""
        return self.is_over or self.state == "approval-requested"

    @property
    def sign(self) -> str:
        """One character for the state."""
        return "…" if self.preliminary else _SIGNS.get(self.state, "…")

    @property
    def call(self) -> str:
        """The call as it is written in code."""
        return f"{self.tool}({_arguments(self.input)})"

    @property
    def outcome(self) -> str:
        """What came of it."""
        if self.state == "output-error":
            return self.error
        if self.state == "output-denied":
            return "not allowed"
        if self.state == "approval-requested":
            return "needs your permission"
        return short(self.output) if self.state == "output-available" else ""

    @property
    def took(self) -> str:
        """How long it took, once it is over."""
        return f"  {self.seconds:.1f} s" if self.seconds is not None and self.is_over else ""

    def line(self) -> str:
        """All of it."""
        outcome = self.outcome
        return f"{self.sign} {self.call}" + (f" → {outcome}" if outcome else "") + self.took


class Cards:
    """The tool calls of one conversation."""

    def __init__(self, now: Callable[[], float] | None = None) -> None:
        self._now = now or SystemClock().monotonic
        self._cards: dict[str, Card] = {}

    def take(self, chunk: Mapping[str, Any], *, live: bool) -> Card | None:
        """The call a chunk is about, changed by it; None if it is about none."""
        call_id = chunk.get("toolCallId")
        if not isinstance(call_id, str):
            return None
        card = self._cards.get(call_id)
        if card is None:
            card = Card(id=call_id, tool=str(chunk.get("toolName", "tool")))
            self._cards[call_id] = card
        match chunk["type"]:
            case "tool-input-available":
                card.state, card.input = "input-available", chunk["input"]
                card.started = self._now() if live else None
            case "tool-approval-request":
                card.state = "approval-requested"
            case "tool-output-available":
                card.output, card.preliminary = chunk["output"], bool(chunk.get("preliminary"))
                self._end(card, "output-available")
            case "tool-output-error" | "tool-input-error":
                card.error, card.preliminary = str(chunk["errorText"]), False
                self._end(card, "output-error")
            case "tool-output-denied":
                self._end(card, "output-denied")
            case _:
                pass
        return card

    def update(self, message: UIMessage) -> list[Card]:
        """The calls of a message that have changed since they were seen last."""
        return [card for part in tool_parts(message) if (card := self._read(part)) is not None]

    def of(self, message: UIMessage) -> Sequence[Card]:
        """The calls of a message as they stand, without remembering them."""
        return [card_of(part) for part in tool_parts(message)]

    def _read(self, part: Mapping[str, Any]) -> Card | None:
        new = card_of(part)
        old = self._cards.get(new.id)
        if old is not None and (old.is_over or old.state == new.state):
            return None
        if old is None and new.is_over:  # happened before we came: no news
            self._cards[new.id] = new
            return None
        if new.state == "approval-responded":
            new.started = self._now()
        elif old is not None and old.started is not None and new.is_over:
            new.seconds = self._now() - old.started
        self._cards[new.id] = new
        return new

    def _end(self, card: Card, state: str) -> None:
        card.state = state
        if card.started is not None:
            card.seconds = self._now() - card.started


def card_of(part: Mapping[str, Any]) -> Card:
    """A card from a part of a stored message."""
    return Card(
        id=str(part.get("toolCallId", "")),
        tool=tool_name(dict(part)),
        state=str(part.get("state", "")),
        input=part.get("input"),
        output=part.get("output"),
        error=str(part.get("errorText") or ""),
        preliminary=part.get("preliminary") is True,
    )


def _arguments(value: Any) -> str:
    if not value:
        return ""
    if not isinstance(value, Mapping):
        return short(value)
    fields = cast("Mapping[str, Any]", value)
    return cut(", ".join(f"{name}: {dumps(given)}" for name, given in fields.items()))


def short(value: Any) -> str:
    """A value in one line of bounded length."""
    return cut(value if isinstance(value, str) else dumps(value))


def cut(text: str, length: int = MAX_VALUE) -> str:
    """A text in one line of at most `length` characters."""
    text = " ".join(text.split())
    return text if len(text) <= length else text[: length - 1] + "…"
