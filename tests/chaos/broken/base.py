"""What the broken apps have in common: one agent with one tool that must never run twice."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from thinkwell import Think, tool


class Till(Think):
    @tool
    async def pay(self, cents: int) -> str:
        """Pay."""
        await asyncio.sleep(0.01)
        return f"paid {cents}"


def change_store(*statements: str) -> None:
    """Tamper with the scratch database before anybody opens it, in every life but the first."""
    file = Path(sys.argv[1]) / "chaos.db"
    if file.exists():
        with closing(sqlite3.connect(file)) as link, link:
            for statement in statements:
                link.execute(statement)
