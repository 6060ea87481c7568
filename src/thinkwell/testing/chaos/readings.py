"""The streams a client read, one reading at a time: each from the start of the stream. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from thinkwell.core import json

_RESULTS = frozenset({"tool-output-available", "tool-output-error"})


class Reading(msgspec.Struct):
    """One stream as one client read it once."""

    request: str
    life: int
    continuation: bool
    chunks: list[tuple[int, str]]
    """(number, body)."""

    @property
    def results(self) -> list[str]:
        """The calls whose final results were in it."""
        found: list[str] = []
        for _, body in self.chunks:
            if '"tool-output' in body:
                chunk: dict[str, Any] = json.loads(body)
                if chunk["type"] in _RESULTS and not chunk.get("preliminary"):
                    found.append(chunk["toolCallId"])
        return found


def readings_in(lines: Iterable[dict[str, Any]]) -> list[Reading]:
    """Every reading in the file of one client, in order."""
    made: list[Reading] = []
    current: dict[str, Reading] = {}
    offers: set[str] = set()
    life = 0
    for line in lines:
        event = line["event"]
        if event == "open":
            life, current, offers = line["life"], {}, set[str]()
        elif event == "offer":
            offers.add(line["id"])
        elif event == "response" and "seq" in line:
            request = line["id"]
            if request not in current or _begins_again(line, current[request], offers):
                offers.discard(request)
                current[request] = Reading(request, life, bool(line.get("continuation")), [])
                made.append(current[request])
            current[request].chunks.append((line["seq"], line["body"]))
    return made


def _begins_again(line: dict[str, Any], reading: Reading, offers: set[str]) -> bool:
    """Whoever takes an offer reads from the start; otherwise nothing may come twice."""
    offered = bool(line.get("replay")) and reading.request in offers
    return offered and line["seq"] <= reading.chunks[-1][0]
