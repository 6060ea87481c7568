"""Parts that come whole, in one chunk of the same type: the one table of them.

Reading chunks, folding them, sending them over HTTP, writing a stored answer as a stream again and
counting progress all look here, so another such part is another row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class PlainPart(NamedTuple):
    """What a part of one type has, as the chunk that brings it."""

    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    everywhere: bool = True
    """Whether every supported client knows it. Over HTTP the others are left out: a client that
    does not know a chunk refuses the whole stream.
    """

    @property
    def fields(self) -> tuple[str, ...]:
        """All of them; every such part may carry what its provider says about it."""
        return (*self.required, *self.optional, "providerMetadata")


PLAIN_PARTS: Final[Mapping[str, PlainPart]] = {
    "file": PlainPart(("mediaType", "url")),
    "reasoning-file": PlainPart(("mediaType", "url"), everywhere=False),
    "source-url": PlainPart(("sourceId", "url"), ("title",)),
    "source-document": PlainPart(("sourceId", "mediaType", "title"), ("filename",)),
    "custom": PlainPart(("kind",), everywhere=False),
}
EVERYWHERE: Final[Mapping[str, PlainPart]] = {
    kind: part for kind, part in PLAIN_PARTS.items() if part.everywhere
}
"""Those that every client knows."""
