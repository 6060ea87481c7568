"""What some servers add to chat completions: pieces of thought, pictures, pages (pure).

None of it is in OpenAI's own protocol, so everything is read with care: what has another shape is
passed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from thinkwell.models.base import FilePart

_PICTURE = "image/png"


def pieces_in(content: Sequence[Any]) -> Iterator[tuple[str, bool]]:
    """Each text of a content that is a list, and whether it is a thought."""
    for piece in content:
        fields = _fields(piece)
        if fields.get("type") == "thinking":
            thought = fields.get("thinking")
            parts = cast("list[Any]", thought) if isinstance(thought, list) else [thought]
            for part in parts:
                text = _fields(part).get("text") if isinstance(part, dict) else part
                if isinstance(text, str) and text:
                    yield text, True
        elif isinstance(text := fields.get("text"), str) and text:
            yield text, False


def files_in(images: Sequence[Any]) -> Iterator[FilePart]:
    """The pictures a model has drawn."""
    for image in images:
        url = _fields(_fields(image).get("image_url")).get("url")
        if isinstance(url, str) and url:
            head = url[5:].partition(",")[0].partition(";")[0] if url.startswith("data:") else ""
            yield FilePart(url, head or _PICTURE)


def citations_in(annotations: Sequence[Any]) -> Iterator[tuple[str, str | None]]:
    """The pages an answer refers to, with their titles."""
    for annotation in annotations:
        cited = _fields(_fields(annotation).get("url_citation"))
        url, title = cited.get("url"), cited.get("title")
        if isinstance(url, str) and url:
            yield url, title if isinstance(title, str) and title else None


def urls_in(citations: Sequence[Any]) -> Iterator[tuple[str, str | None]]:
    """The same where only addresses are told."""
    for citation in citations:
        url = citation if isinstance(citation, str) else _fields(citation).get("url")
        if isinstance(url, str) and url:
            yield url, None


def _fields(value: Any) -> Mapping[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
