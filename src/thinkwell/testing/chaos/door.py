"""Where the app can be reached now: tabs wait at it while the process is down."""

from __future__ import annotations

import asyncio


class Door:
    """Opened by the run for each life, closed at its end."""

    def __init__(self) -> None:
        self.prefix = "agents"
        self._open = asyncio.Event()
        self._where = (0, "")

    def open(self, life: int, url: str) -> None:
        """The app listens."""
        self._where = (life, url)
        self._open.set()

    def close(self) -> None:
        """It is about to end."""
        self._open.clear()

    async def opened(self) -> tuple[int, str]:
        """Wait for a life: its number and its address."""
        await self._open.wait()
        return self._where
