"""The text or reasoning parts of one message that are still being written.

A delta is put on a list and joined with its neighbours only when somebody looks, so a long answer
costs the same per delta as a short one. `Fold` owns the list of parts and hands it in; this file
appends to that list and writes `text`, `state` and `providerMetadata` of the parts of its kind
(F2, F3, F4, F21).

Invariant: after `flush` the parts hold every delta seen so far, in order.
"""

from __future__ import annotations

from typing import Literal

from thinkwell.messages.chunks import Chunk
from thinkwell.messages.message import Part

GrowingKind = Literal["text", "reasoning"]


class _Growing:
    __slots__ = ("part", "pieces")

    def __init__(self, part: Part) -> None:
        self.part = part
        self.pieces: list[str] = []

    def join(self) -> None:
        if self.pieces:
            self.part["text"] = "".join((self.part.get("text", ""), *self.pieces))
            self.pieces.clear()


class GrowingParts:
    """The open parts of one kind, by the id their chunks use."""

    __slots__ = ("_interrupted", "_kind", "_open", "_parts")

    def __init__(self, kind: GrowingKind, parts: list[Part], *, continuation: bool) -> None:
        self._kind = kind
        self._parts = parts
        self._open: dict[str, _Growing] = {}
        self._interrupted = _interrupted_part(kind, parts) if continuation else None

    def start(self, chunk: Chunk) -> None:
        """Open a part. The first one of a continuation goes on where the message was cut (F21)."""
        part_id = chunk.get("id")
        if not isinstance(part_id, str):
            return
        # Only the first start goes on in the cut part: a second text is a text of its own.
        part, self._interrupted = self._interrupted or self._new_part(), None
        _take_metadata(part, chunk)
        if chunk.get("hidden") is True:
            part["hidden"] = True  # stored, never told (`visible_message`)
        self._open[part_id] = _Growing(part)

    def delta(self, chunk: Chunk) -> None:
        """Add a piece of text."""
        part_id, delta = chunk.get("id"), chunk.get("delta")
        if not isinstance(part_id, str) or not isinstance(delta, str):
            return
        # A delta whose start was lost (a client joined late, a row was trimmed) still finds its
        # text.
        growing = self._open.get(part_id) or self._adopt(part_id)
        growing.pieces.append(delta)
        if "providerMetadata" in chunk:
            _take_metadata(growing.part, chunk)

    def end(self, chunk: Chunk) -> None:
        """Close a part. An end nobody opened closes the last part if that still streams."""
        part_id = chunk.get("id")
        if not isinstance(part_id, str):
            return
        growing = self._open.pop(part_id, None)
        part = growing.part if growing else self._abandoned()
        if growing is not None:
            growing.join()
        if part is not None:
            part["state"] = "done"
            _take_metadata(part, chunk)

    def close_all(self) -> None:
        """The step is over: nothing of it is open any more (F4)."""
        for growing in self._open.values():
            growing.join()
            growing.part["state"] = "done"
        self._open.clear()
        self._interrupted = None

    def forget_removed(self) -> None:
        """Parts were taken out of the list: what was open is gone with them (reset-step)."""
        self._open.clear()
        # By identity: an equal part elsewhere in the message is not the one that was removed.
        if not any(part is self._interrupted for part in self._parts):
            self._interrupted = None

    def flush(self) -> None:
        """Join what has been collected into the parts."""
        for growing in self._open.values():
            growing.join()

    def open_ids(self) -> dict[int, str]:
        """The ids still open, by the identity of their part."""
        return {id(growing.part): part_id for part_id, growing in self._open.items()}

    def _new_part(self) -> Part:
        part: Part = {"type": self._kind, "text": "", "state": "streaming"}
        self._parts.append(part)
        return part

    def _last_part(self) -> Part | None:
        return next(
            (part for part in reversed(self._parts) if part.get("type") == self._kind), None
        )

    def _adopt(self, part_id: str) -> _Growing:
        # Two ids on one part must share one list of pieces, or the text would change its order.
        part = self._last_part() or self._new_part()
        known = (growing for growing in self._open.values() if growing.part is part)
        growing = self._open[part_id] = next(known, None) or _Growing(part)
        return growing

    def _abandoned(self) -> Part | None:
        part = self._last_part()
        if part is None or any(growing.part is part for growing in self._open.values()):
            return None
        return part if part.get("state") == "streaming" else None


def _interrupted_part(kind: GrowingKind, parts: list[Part]) -> Part | None:
    """Text goes on in the last text part, reasoning only if no text came after it."""
    tail = ("text",) if kind == "text" else ("text", "reasoning")
    part = next((part for part in reversed(parts) if part.get("type") in tail), None)
    if part is None or part["type"] != kind or part.get("state") != "streaming":
        return None
    return part


def _take_metadata(part: Part, chunk: Chunk) -> None:
    if (metadata := chunk.get("providerMetadata")) is not None:
        part["providerMetadata"] = metadata
