"""Where the pages of a scenario run, and what the line between them and the server does."""

from __future__ import annotations

from dataclasses import dataclass

from tests.browser.hooks.relay import JOINED


@dataclass(frozen=True)
class Place:
    """In Chromium; or, with a `socket`, in jsdom windows in Node on the WebSocket of a package.

    A reload in Node is a new window in place of the old one. What is about the browser itself
    (navigation, focus, layout) belongs to the tests of the page, which run in Chromium alone.
    """

    socket: str = ""
    joins: float = 0.0
    """For how many seconds the line holds what the server says, so that it comes in one piece."""

    def __str__(self) -> str:
        return (self.socket or "chromium") + ("-joined" if self.joins else "")


CHROMIUM = Place()
NODE = Place("undici", JOINED)
"""Node's own WebSocket."""

NODE_UNJOINED = Place("undici")
NODE_WS = Place("ws", JOINED)
