"""Alternatives in the message tree: which there are, and which one the conversation goes on from.

Regenerating and editing make them; `agent.branches` and two calls of clients choose among them
(DESIGN §8.1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from thinkwell.hooks.feature import Feature
from thinkwell.hooks.rpc import rpc
from thinkwell.messages.message import UIMessage, visible_message
from thinkwell.session.changes import SetActiveLeaf


class Branches(Feature):
    """The branches of a conversation."""

    name = "branches"

    def calls(self) -> Mapping[str, Callable[..., Any]]:
        """What clients may call."""
        return {"getBranches": self.below, "setActiveLeaf": self.choose}

    @rpc(read_only=True)
    async def below(self, message_id: str | None = None) -> list[UIMessage]:
        """The alternatives below a message, oldest first; None gives those of the beginning."""
        return [visible_message(m) for m in await self.kit.session.get_branches(message_id)]

    @rpc(action="branch")
    async def choose(self, message_id: str) -> None:
        """Go on from the newest message below this one; every client shows that branch.

        Raises `TurnActiveError` while a turn runs or waits.
        """
        chosen = SetActiveLeaf(message_id, newest_below=True)
        await self.kit.rearrange(chosen, call="setActiveLeaf")
