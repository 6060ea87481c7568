"""One HTTP request with path and headers exactly as they are given, over a plain connection."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

PATIENCE = 60.0


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


def ask(
    port: int,
    method: str,
    path: str,
    headers: Iterable[tuple[str, str]] = (),
    body: bytes | None = None,
) -> Answer:
    """Ask, and read the whole answer. A header may be given twice; `Host` replaces our own."""
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    given = list(headers)
    try:
        _free_of_checks(link)
        named = {name.lower() for name, _ in given}
        link.putrequest(method, path, skip_host="host" in named, skip_accept_encoding=True)
        for name, value in given:
            link.putheader(name, value)
        if body is not None:
            link.putheader("Content-Length", str(len(body)))
        link.endheaders(body)
        answer = link.getresponse()
        return Answer(answer.status, dict(answer.getheaders()), answer.read())
    finally:
        link.close()


def _free_of_checks(link: http.client.HTTPConnection) -> None:
    # What these forbid is the point of asking.
    setattr(link, "_validate_path", lambda _: None)  # noqa: B010
    setattr(link, "_encode_request", lambda text: text.encode("latin-1"))  # noqa: B010
