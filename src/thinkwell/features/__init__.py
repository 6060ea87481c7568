"""What an agent can beside its turns: one file or folder for each feature.

Features of others are written with the names below; `docs/features.md` shows how.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thinkwell.features.search.search import Search
    from thinkwell.features.suggestions import Suggestions
    from thinkwell.hooks.feature import Client, Feature, JobHandler, Kit, Unwoken, Without
    from thinkwell.hooks.routes import Route, RouteRequest
    from thinkwell.hooks.trace import TraceContext
    from thinkwell.journal.storage import Storage
    from thinkwell.journal.turns import TurnRecord
    from thinkwell.session.changes import (
        AddMessages,
        Change,
        DeleteBranch,
        DeleteMessages,
        SetActiveLeaf,
    )
    from thinkwell.session.search.find import SearchHit
    from thinkwell.turn.ask.authority import NotAllowed
    from thinkwell.wire.frames import ChatRequest
    from thinkwell.wire.http_body import Refusal

_HOMES = {
    "AddMessages": "session.changes",
    "Change": "session.changes",
    "ChatRequest": "wire.frames",
    "Client": "hooks.feature",
    "DeleteBranch": "session.changes",
    "DeleteMessages": "session.changes",
    "Feature": "hooks.feature",
    "JobHandler": "hooks.feature",
    "Kit": "hooks.feature",
    "NotAllowed": "turn.ask.authority",
    "Refusal": "wire.http_body",
    "Route": "hooks.routes",
    "RouteRequest": "hooks.routes",
    "Search": "features.search.search",
    "SearchHit": "session.search.find",
    "SetActiveLeaf": "session.changes",
    "Storage": "journal.storage",
    "Suggestions": "features.suggestions",
    "TraceContext": "hooks.trace",
    "TurnRecord": "journal.turns",
    "Unwoken": "hooks.feature",
    "Without": "hooks.feature",
}

__all__ = [
    "AddMessages",
    "Change",
    "ChatRequest",
    "Client",
    "DeleteBranch",
    "DeleteMessages",
    "Feature",
    "JobHandler",
    "Kit",
    "NotAllowed",
    "Refusal",
    "Route",
    "RouteRequest",
    "Search",
    "SearchHit",
    "SetActiveLeaf",
    "Storage",
    "Suggestions",
    "TraceContext",
    "TurnRecord",
    "Unwoken",
    "Without",
]


if not TYPE_CHECKING:  # or every misspelt import would be right for type checkers

    def __getattr__(name: str) -> Any:
        """Load a public name on first use."""
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module 'thinkwell.features' has no attribute {name!r}")
        value = getattr(import_module(f"thinkwell.{home}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """What can be asked for, loaded or not."""
    return sorted({*globals(), *__all__})
