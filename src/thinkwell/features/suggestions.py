"""What an empty conversation offers: the setting `suggestions`, told to the page at `/`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from thinkwell.hooks.feature import Feature


class Suggestions(Feature):
    """Things to say first. It brings no namespace: the setting has that name."""

    name = "suggestions"
    namespace = False

    def page(self, cls: type) -> Mapping[str, Any]:
        """What the page knows of agents of this class."""
        suggestions: Mapping[str, str] = getattr(cls, "suggestions", {})
        return {"suggestions": suggestions} if suggestions else {}
