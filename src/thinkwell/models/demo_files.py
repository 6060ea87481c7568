"""What the demo model can tell about a file: its type, its size, and a picture's width and height.

It reads the first bytes of `data:` URLs. Pure; nothing is fetched.
"""

from __future__ import annotations

import base64
import binascii
from urllib.parse import unquote_to_bytes

from thinkwell.messages.model_messages import FileContent

_NO_JPEG_SIZE = frozenset({0xC4, 0xC8, 0xCC})
"""Markers among the start-of-frame ones that hold no size."""


def describe_file(file: FileContent) -> str:
    """One sentence about a file."""
    kind = file.media_type.partition("/")[2].partition("+")[0].upper() or "unknown"
    what = f"{kind} picture" if file.media_type.startswith("image/") else f"file of type {kind}"
    name = f" named `{file.filename}`" if file.filename else ""
    data = _bytes_of(file.url)
    if data is None:
        return f"This is a {what}{name}. It lies elsewhere, so I cannot say how large it is."
    size = image_size(data)
    pixels = f", {size[0]} × {size[1]} pixels" if size else ""
    return f"This is a {what}{name}{pixels}, {_amount(len(data))}."


def image_size(data: bytes) -> tuple[int, int] | None:
    """Width and height of a PNG, GIF or JPEG; None for anything else."""
    if data.startswith(b"\x89PNG\r\n\x1a\n") and len(data) >= 24:
        return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
    if data[:6] in {b"GIF87a", b"GIF89a"} and len(data) >= 10:
        return int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little")
    return _jpeg_size(data) if data.startswith(b"\xff\xd8") else None


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in _NO_JPEG_SIZE:
            height, width = data[at + 5 : at + 7], data[at + 7 : at + 9]
            return int.from_bytes(width, "big"), int.from_bytes(height, "big")
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return None


def _bytes_of(url: str) -> bytes | None:
    head, comma, body = url.partition(",")
    if not comma or not head.startswith("data:"):
        return None
    if not head.endswith(";base64"):
        return unquote_to_bytes(body)
    try:
        return base64.b64decode(body)
    except binascii.Error:
        return None


def _amount(size: int) -> str:
    if size < 1000:
        return f"{size} bytes"
    return f"{size / 1000:.1f} kB" if size < 1_000_000 else f"{size / 1_000_000:.1f} MB"
