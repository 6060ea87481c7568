"""The chat page at `/`: three built files and the list of agents it may talk to.

The files are made from `studio/` by `npm run build`; without them the page says how to get them and
everything else works. They are read once, when the app starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib import resources
from urllib.parse import quote

import msgspec

from thinkwell.core.json import dumps
from thinkwell.server.asgi import Scope, mount_path

_TYPES = {
    "index.html": "text/html; charset=utf-8",
    "app.js": "text/javascript; charset=utf-8",
    "app.css": "text/css; charset=utf-8",
}
_PLACEHOLDER = "<!--thinkwell:settings-->"
_NOT_BUILT = (
    "<!doctype html><title>Thinkwell</title><p>The server runs, but its chat page is not built. "
    "Run <code>make page</code> and restart.</p>"
)


class PageFile(msgspec.Struct, frozen=True):
    """One answer of the page."""

    body: bytes
    content_type: str


class Page:
    """The page's files, with the settings of one app written into them."""

    def __init__(self, *, agents: Sequence[str], prefix: str) -> None:
        self.settings = {"agents": list(agents), "prefix": prefix}
        """Which agents there are and the first part of their paths."""
        self._files = {name: text for name in _TYPES if (text := _read(name)) is not None}

    def find(self, path: str, scope: Scope) -> PageFile | None:
        """The file for a path below the mount point, or None."""
        name = path.strip("/") or "index.html"
        if name == "index.html":
            return PageFile(self._index(mount_path(scope)).encode(), _TYPES[name])
        text = self._files.get(name)
        return None if text is None else PageFile(text.encode(), _TYPES[name])

    def _index(self, mounted_at: str) -> str:
        html = self._files.get("index.html", _NOT_BUILT)
        settings = dumps({**self.settings, "root": mounted_at}).replace("<", "\\u003c")
        head = f'<script type="application/json" id="settings">{settings}</script>'
        return html.replace(_PLACEHOLDER, head).replace('="./', f'="{escape(quote(mounted_at))}/')


def _read(name: str) -> str | None:
    file = resources.files("thinkwell.server") / "page" / name
    return file.read_text("utf-8") if file.is_file() else None
