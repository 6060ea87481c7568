"""A butler who remembers: facts about the guest, house rules from a file, and what time it is.

thinkwell serve examples/butler.py
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from thinkwell import App, Session, Think, rpc
from thinkwell.memory import BlockVersion

RULES = Path(__file__).with_name("house_rules.md")


def tell_time() -> str:
    """Asked in every turn, behind the conversation: the prompt before it stays in the cache."""
    return f"It is {datetime.now(UTC):%A %H:%M} UTC."


class Butler(Think):
    """Tell it something about yourself, come back tomorrow, and ask what it knows."""

    model = "demo"

    def configure_session(self, session: Session) -> Session:
        return (
            session.with_context("soul", "You are a discreet and attentive butler.")
            .with_context("rules", RULES)
            .with_context("guest", description="What you know about the guest", max_tokens=800)
            .with_context("errands", kind="searchable", description="What was done, and when")
            .with_context("now", tell_time, placement="tail")
            .with_cached_prompt()
        )

    @rpc(read_only=True)
    async def what_you_know(self) -> str:
        """The guest may look …"""
        block = await self.session.get_context_block("guest")
        return block.content if block is not None else ""

    @rpc
    async def forget_last(self) -> None:
        """… and take back what was noted last."""
        await self.session.undo_context("guest")

    async def who_wrote_it(self) -> list[BlockVersion]:
        """For the staff only."""
        return await self.session.context_history("guest")


app = App(agents=[Butler])
