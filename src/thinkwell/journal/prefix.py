"""Which block of a request changed since the one before, so that the provider's cache was lost.

Providers cache a request from its beginning: tools, prompt, messages. The journal has a hash of
each of these blocks for every model call (`ModelAsked`). What follows here is pure.
"""

from __future__ import annotations

import msgspec

from thinkwell.journal.events import ModelAsked
from thinkwell.messages.usage import Usage

WIDTH = 4
"""Characters of one hash. 24 bits: two versions of a message look the same once in 16 million."""


class RequestBlocks(msgspec.Struct, frozen=True):
    """The hashes of one request."""

    model: str
    tools: str | None
    system: str | None
    messages: tuple[str, ...]
    stored: int
    """How many messages come before those that are in this request only: they must not change."""


class CacheBreak(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A request does not begin as the one before it did."""

    block: str
    """What changed first: `model`, `tools`, `system`, or `message 3` (counted from 0)."""
    since: str
    """The request it is compared with: `step 0`, or the id of an earlier turn."""
    lost_tokens: int | None = None
    """How many tokens fewer came from the cache; None if the provider did not say."""


class BlockReader:
    """Reads the hashes of a turn's requests, of which each says only what is new."""

    def __init__(self) -> None:
        self._prints: tuple[str, ...] = ()

    def read(self, asked: ModelAsked) -> RequestBlocks | None:
        """The blocks of the next request; None if an earlier release has written it."""
        if not asked.prints and not asked.same:
            return None
        fresh = [asked.prints[at : at + WIDTH] for at in range(0, len(asked.prints), WIDTH)]
        self._prints = (*self._prints[: asked.same], *fresh)
        own = 0
        for source, start, stop in reversed(asked.messages):
            if source != "g":
                break
            own += stop - start
        return RequestBlocks(
            model=f"{asked.provider}:{asked.model}",
            tools=asked.tools,
            system=asked.system,
            messages=self._prints,
            stored=len(self._prints) - own,
        )


def first_change(before: RequestBlocks, now: RequestBlocks) -> str | None:
    """The first block that is not as it was; None if the request goes on from the one before."""
    for name in ("model", "tools", "system"):
        if getattr(before, name) != getattr(now, name):
            return name
    for place, print_ in enumerate(before.messages[: before.stored]):
        if now.messages[place : place + 1] != (print_,):
            return f"message {place}"
    return None


def cache_break(
    before: tuple[RequestBlocks, Usage], now: tuple[RequestBlocks, Usage], since: str
) -> CacheBreak | None:
    """What changed between two requests that follow each other, and what that cost."""
    block = first_change(before[0], now[0])
    if block is None:
        return None
    had, has = before[1].cached_input_tokens, now[1].cached_input_tokens
    lost = None if had is None or has is None else max(had - has, 0)
    return CacheBreak(block=block, since=since, lost_tokens=lost)
