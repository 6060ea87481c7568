"""Alternatives in the message tree: which there are, and which one the conversation goes on from.

Regenerating and editing make them; `agent.branches` and two calls of clients choose among them
(DESIGN §8.1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from thinkwell.core.errors import SessionError
from thinkwell.hooks.feature import Feature
from thinkwell.hooks.rpc import rpc
from thinkwell.messages.message import UIMessage, visible_message
from thinkwell.store.base import Transaction


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
        session = self.kit.session

        async def pin(tx: Transaction) -> None:
            newest = await session.history.newest_below(message_id, tx)
            if newest is None:
                raise SessionError(
                    f"No message has the id {message_id!r}, so it cannot be the active leaf."
                )
            await session.pin(tx, newest.id)

        await self.kit.rearrange(pin, "setActiveLeaf")
