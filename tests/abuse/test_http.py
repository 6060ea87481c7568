"""Strange HTTP: whatever is asked, the answer is one that the routes' own description knows.

Schemathesis makes requests from `/_thinkwell/openapi.json`, good ones and bent ones; then come
paths and methods that no description would name. A server in its own process answers, so that a
single unexpected error would show in its log.
"""

from __future__ import annotations

import asyncio
import http.client
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
)

from tests.abuse.process import DEADLINE, ServerProcess, server_process

CHECKS: Any = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
)
PROFILE = settings(
    derandomize=True,
    max_examples=40,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
AGENT = "/agents/victim/a"
TRICKS = (
    *("/../../../../etc/passwd", "/%2e%2e/%2e%2e/%2e%2e/etc/passwd", "/..%2f..%2f..%2fetc/passwd"),
    *("/assets/../../app.py", "/assets/%2e%2e/%2e%2e/app.py", "/assets/..%5c..%5capp.py"),
    *("/assets/..%c0%af..%c0%afapp.py", "/assets/....//....//app.py", "/./../server/app.py"),
    *("/%00", "/index.html%00.js", "/assets/%00", "//etc/passwd", "///", "//", "/%2f%2fetc/passwd"),
    *("/file:///etc/passwd", "/C:%5cwindows%5cwin.ini", "/~root", "/.git/config", "/.env"),
    *("/page/index.html", "/__init__.py", "/pages.py", "/page", "/assets", "/assets/"),
    *("/" + "a" * 8_000, "/" + "a/" * 4_000, "/%", "/%zz", "/%u002e", "/\xff", "/?" + "x" * 8_000),
    *("/agents", "/agents/", "/agents/victim", "/agents/victim/", "/agents//victim//a"),
    *("/agents/victim/%00/get-messages", "/agents/victim/../victim/a/get-messages"),
    *("/agents/victim/a/sub/victim/b/get-messages", "/agents/%76ictim/a", "/AGENTS/victim/a"),
    *("/agents/victim/" + "n" * 8_000 + "/get-messages", "/agents/victim/a;x=1/get-messages"),
    *("/agents/victim/%ff%fe/get-messages", "/agents/victim/a/get-messages/", "/healthz/../x"),
)
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW", "get")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    process = server_process(tmp_path_factory.mktemp("http"), "tests.abuse.agents:app")
    with asyncio.Runner() as runner:
        running = runner.run(process.__aenter__())
        try:
            yield running
            assert running.alive
            assert not running.defects()
        finally:
            runner.run(process.__aexit__(None, None, None))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_every_answer_is_one_the_description_knows(server: ServerProcess, mode: GenerationMode):
    """Spec/01 §1.3.6, §14.4: never a 500, only documented codes, content types and shapes."""
    schema = schemathesis.openapi.from_url(f"{server.http}/_thinkwell/openapi.json")
    for found in schema.get_all_operations():
        operation: Any = found.ok()  # pyright: ignore[reportAttributeAccessIssue]
        if mode is GenerationMode.NEGATIVE and not _takes_anything(operation):
            continue

        @PROFILE
        @given(case=operation.as_strategy(generation_mode=mode))
        def ask(case: Any) -> None:
            answer = case.call(base_url=server.http, timeout=DEADLINE)
            if not _leads_elsewhere(case, answer.status_code):
                case.validate_response(answer, checks=CHECKS)

        ask()


@pytest.mark.parametrize("path", TRICKS)
def test_no_path_leaves_the_page_or_raises(server: ServerProcess, path: str):
    """Spec/01 §1.1.3, §1.3.6."""
    status, kind, body = request(server, "GET", path)
    assert status < 500
    assert kind.startswith(("text/", "application/json"))
    for secret in (b"root:", b"[core]", b"import annotations", b"; for 16-bit"):
        assert secret not in body


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("path", ["/", "/healthz", "/nowhere", f"{AGENT}/run", f"{AGENT}/nope"])
def test_a_method_that_is_not_for_a_path_is_refused(server: ServerProcess, method: str, path: str):
    """Spec/01 §1.3.6: 404 or 405, a missing body 415; never an error inside."""
    status, _, _ = request(server, method, path)
    page = path in ("/", "/healthz") and method in ("GET", "HEAD")
    assert status in ((200,) if page else (400, 404, 405, 415))


def _leads_elsewhere(case: Any, status: int) -> bool:
    """Whether a bent name or id made the path one of another route, or of none."""
    segments = [str(value) for value in (case.path_parameters or {}).values()]
    plain = all(segment and not set(segment) & set("/\\?#%.") for segment in segments)
    return status in (404, 405) and not plain


def _takes_anything(operation: Any) -> bool:
    """Whether there is something in a request that could be wrong."""
    places = (operation.path_parameters, operation.query, operation.body)
    return any(len(list(place)) for place in places)


def request(server: ServerProcess, method: str, path: str) -> tuple[int, str, bytes]:
    """One request with the path exactly as it stands here."""
    link = http.client.HTTPConnection("127.0.0.1", server.port, timeout=DEADLINE)
    setattr(link, "_validate_path", lambda _: None)  # noqa: B010 - what it forbids is the point
    setattr(link, "_encode_request", lambda text: text.encode("latin-1"))  # noqa: B010
    try:
        link.request(method, path)
        answer = link.getresponse()
        return answer.status, answer.getheader("content-type") or "", answer.read()
    finally:
        link.close()
