"""Context blocks: the builder, providers of every kind, and what reading gives (M-055, M-060)."""

from __future__ import annotations

from pathlib import Path
from typing import assert_type

from thinkwell import Session, Think
from thinkwell.memory import BlockVersion, ContextBlock, ContextProvider


class Shelf:
    """Loadable."""

    async def get(self) -> str | None:
        return "- tea"

    def load(self, key: str) -> str | None:
        return key


provider: ContextProvider = Shelf()


class Butler(Think):
    model = "demo"

    def configure_session(self, session: Session) -> Session:
        return (
            session.with_context("soul", "You are kind.")
            .with_context("rules", Path("rules.md"))
            .with_context("now", lambda: "noon", placement="tail")
            .with_context("shelf", Shelf())
            .with_context("memory", description="Facts", max_tokens=100, scope="principal")
            .with_context("facts", kind="searchable", writable=False)
            .with_cached_prompt()
        )

    async def look(self) -> None:
        assert_type(await self.session.get_context_block("memory"), ContextBlock | None)
        assert_type(await self.session.context_history("memory"), list[BlockVersion])
        changed = await self.session.replace_context_block("memory", "x", expected_version=1)
        assert_type(changed.version, int)
        assert_type(await self.session.refresh_system_prompt(), str)
