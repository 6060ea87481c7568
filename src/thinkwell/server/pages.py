"""The chat page at `/`: built files, and the list of agents it may talk to.

The files are made from `studio/` by `npm run build`; without them the page says how to get them and
everything else works. They are read once, when the app starts: what was not there then is not
found, whatever a path looks like. `index.html` is asked for anew each time; files in `assets/` have
a hash in their names and are kept for ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from html import escape
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any
from urllib.parse import quote

import msgspec

from thinkwell.core.json import dumps
from thinkwell.server.asgi import Scope, mount_path

INDEX = "index.html"
_TYPES = {
    "css": "text/css; charset=utf-8",
    "gif": "image/gif",
    "html": "text/html; charset=utf-8",
    "ico": "image/x-icon",
    "jpg": "image/jpeg",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "map": "application/json",
    "png": "image/png",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
    "webmanifest": "application/manifest+json",
    "webp": "image/webp",
    "woff2": "font/woff2",
}
"""What is served, by the end of its name. Anything else in the folder stays there."""
_PLACEHOLDER = "<!--thinkwell:settings-->"
_NOT_BUILT = (
    "<!doctype html><title>Thinkwell</title><p>The server runs, but its chat page is not built. "
    "In a clone, run <code>make page</code> and restart; otherwise install Thinkwell again without "
    "<code>THINKWELL_NO_PAGE</code>.</p>"
)
# Images only from here: a model that was tricked must not send what it knows to another server.
_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "content-security-policy": (
        "default-src 'self'; img-src 'self' data: blob:; connect-src 'self' ws: wss:; "
        "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'self'"
    ),
}
_FOR_EVER = "public, max-age=31536000, immutable"


class PageFile(msgspec.Struct, frozen=True):
    """One answer of the page."""

    body: bytes
    headers: Mapping[str, str]


class Page:
    """The page's files, with the settings of one app written into them."""

    def __init__(
        self,
        *,
        agents: Sequence[str],
        prefix: str,
        told: Mapping[str, Mapping[str, Any]] | None = None,
        folder: Traversable | None = None,
    ) -> None:
        self.settings: dict[str, Any] = {"agents": list(agents), "prefix": prefix, **(told or {})}
        """Which agents there are, the first part of their paths, and what their features tell."""
        found = dict(_files(folder or resources.files("thinkwell.server") / "page"))
        self._index = found.pop(INDEX, _NOT_BUILT.encode()).decode()
        self._files = {name: _page_file(name, body) for name, body in found.items()}
        self._indexes: dict[str, PageFile] = {}

    def find(self, path: str, scope: Scope) -> PageFile | None:
        """The file for a path below the mount point, or None."""
        name = path.strip("/") or INDEX
        return self._index_at(mount_path(scope)) if name == INDEX else self._files.get(name)

    def _index_at(self, mounted_at: str) -> PageFile:
        made = self._indexes.get(mounted_at)
        if made is None:
            made = _page_file(INDEX, self._written_for(mounted_at).encode())
            if len(self._indexes) < 100:  # a mount path may have parameters in it
                self._indexes[mounted_at] = made
        return made

    def _written_for(self, mounted_at: str) -> str:
        settings = dumps({**self.settings, "root": mounted_at}).replace("<", "\\u003c")
        head = f'<script type="application/json" id="settings">{settings}</script>'
        root = escape(quote(mounted_at))
        return self._index.replace(_PLACEHOLDER, head).replace('="./', f'="{root}/')


def _page_file(name: str, body: bytes) -> PageFile:
    hashed = name.startswith("assets/")
    headers = {
        "content-type": _TYPES[_ending(name)],
        "cache-control": _FOR_EVER if hashed else "no-cache",
        "etag": f'"{sha256(body).hexdigest()[:32]}"',
        **_HEADERS,
    }
    return PageFile(body, headers)


def _files(folder: Traversable, above: str = "") -> Iterator[tuple[str, bytes]]:
    """Every file below a folder that may be served, with its path from there."""
    if not folder.is_dir():
        return
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _files(entry, f"{above}{entry.name}/")
        elif not entry.name.startswith(".") and _ending(entry.name) in _TYPES:
            yield above + entry.name, entry.read_bytes()


def _ending(name: str) -> str:
    return name.rpartition(".")[2].lower()
