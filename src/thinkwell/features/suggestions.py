"""What the page at `/` offers in an empty conversation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from thinkwell.hooks.feature import Feature


class Suggestions(Feature):
    """Things to say first, by title: `features = [Suggestions({"A tour": "What can you do?"})]`."""

    name = "suggestions"
    namespace = False

    def __init__(self, suggestions: Mapping[str, str]) -> None:
        self._suggestions = dict(suggestions)

    def page(self, cls: type) -> Mapping[str, Any]:  # noqa: ARG002 - the same for every class
        """What the page knows of agents of this class."""
        return {"suggestions": self._suggestions}
