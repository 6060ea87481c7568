"""Answers the edge gives itself."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response

from thinkwell.wire.http import PLAIN


def text_response(status: int, text: str, headers: Mapping[str, str] | None = None) -> Response:
    """A plain text answer, spelled as the reference spells it. Header names are lower-case."""
    return Response(text, status, headers={"content-type": PLAIN, **(headers or {})})
