"""`data:` URLs: the bytes of a file inside a message (pure)."""

from __future__ import annotations

from base64 import b64decode, b64encode
from urllib.parse import unquote_to_bytes

import msgspec


class DataUrl(msgspec.Struct, frozen=True):
    """The body of a `data:` URL, not decoded before somebody asks."""

    body: str
    is_base64: bool

    def bytes(self) -> bytes:
        """The file. What is not base64 after all counts as empty."""
        if not self.is_base64:
            return unquote_to_bytes(self.body)
        try:
            return b64decode(self.body)
        except ValueError:
            return b""

    def base64(self) -> str:
        """The file as base64 text."""
        return self.body if self.is_base64 else b64encode(self.bytes()).decode()

    def text(self) -> str:
        """The file as text."""
        return self.bytes().decode(errors="replace")


def read_data_url(url: str) -> DataUrl | None:
    """The body of a `data:` URL; None if `url` is another kind."""
    if not url.startswith("data:"):
        return None
    head, _, body = url.partition(",")
    return DataUrl(body, head.endswith(";base64"))
