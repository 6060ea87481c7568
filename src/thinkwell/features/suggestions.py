"""What the page at `/` offers in an empty conversation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from thinkwell.core.errors import AgentDefinitionError
from thinkwell.hooks.feature import Feature


class Suggestions(Feature):
    """Things to say first, by title: `features = [Suggestions({"A tour": "What can you do?"})]`."""

    name = "suggestions"
    namespace = False

    def __init__(self, suggestions: Mapping[str, str]) -> None:
        given: Any = suggestions
        if not isinstance(given, Mapping) or not all(
            isinstance(text, str)
            for pair in cast("Mapping[Any, Any]", given).items()
            for text in pair
        ):
            raise AgentDefinitionError(
                f"Suggestions({given!r:.80}) are no texts by title. Write "
                '`Suggestions({"A tour": "What can you do?"})`.'
            )
        self._suggestions = dict(suggestions)

    def page(self, cls: type) -> Mapping[str, Any]:  # noqa: ARG002 - the same for every class
        """What the page knows of agents of this class."""
        return {"suggestions": self._suggestions}
