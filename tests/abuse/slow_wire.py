"""A tab behind a slow line: frames wait in both directions until the test lets them through.

Latency without a clock: what is under way is a queue, and how long it stays there is the test's
choice, so every crossing of frames can be made and made again.
"""

from __future__ import annotations

from tests.abuse.client_frames import Frame
from tests.abuse.room import Wire


class SlowWire(Wire):
    """One tab whose frames are under way for as long as the test wants."""

    def __init__(self, url: str, name: str) -> None:
        super().__init__(url, name)
        self.up: list[Frame] = []
        """Said, and not at the server yet."""
        self.down: list[Frame] = []
        """Sent by the server, and not read yet."""

    def deliver_up(self, most: int) -> list[Frame]:
        """Let some frames reach the server; those frames."""
        if not self.online:
            return []
        through, self.up = self.up[:most], self.up[most:]
        for frame in through:
            super()._say(frame)
        return through

    def deliver_down(self, most: int) -> None:
        """Let the tab read some frames."""
        through, self.down = self.down[:most], self.down[most:]
        for frame in through:
            self.log.append(f"< {frame}")
            self.tab.receive(frame)

    async def drop(self) -> None:
        """The socket dies: what is under way in either direction is lost."""
        if self.online:
            self.up.clear()
            self.down.clear()
        await super().drop()

    def _say(self, frame: Frame) -> None:
        if frame["type"] == "rpc":
            super()._say(frame)
        else:
            self.up.append(frame)

    def _take(self, frame: Frame) -> None:
        self.down.append(frame)
