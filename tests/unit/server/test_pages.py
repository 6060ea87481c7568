"""The files of the chat page."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.server.fakes import AsgiClient, FakeHost, make_edge
from thinkwell.server.asgi import local_path
from thinkwell.server.http import serve_http
from thinkwell.server.pages import Page
from thinkwell.server.routing import NotOurs

INDEX = (
    '<!doctype html><head><!--thinkwell:settings--><script type="module" '
    'src="./assets/index-Ab12.js"></script><link rel="stylesheet" href="./assets/index-Cd34.css">'
)


@pytest.fixture
def page(tmp_path: Path) -> Page:
    """A page as a bundler leaves it, in a folder with other things beside it."""
    folder = tmp_path / "page"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text(INDEX)
    (folder / "icon.svg").write_text("<svg/>")
    (folder / "assets" / "index-Ab12.js").write_text("js()")
    (folder / "assets" / "index-Cd34.css").write_text("a{}")
    (folder / "assets" / "font-Ef56.woff2").write_bytes(b"\0font")
    (folder / "secret.py").write_text("password")
    (folder / ".hidden.js").write_text("password")
    (tmp_path / "outside.js").write_text("password")
    return Page(agents=["a", "b</script>"], prefix="agents", folder=folder)


async def get(page: Page, path: str, *, mounted_at: str = "", **headers: str):
    client = AsgiClient("http", mounted_at + path, headers=headers)
    client.scope["root_path"] = mounted_at
    assert local_path(client.scope) == path or path == ""
    await serve_http(make_edge(FakeHost(), page=page), NotOurs(), client.call)
    status, body, said = await client.response()
    return status, body, {key.decode(): value.decode() for key, value in said.items()}


@pytest.mark.parametrize(
    ("path", "kind", "body"),
    [
        ("/assets/index-Ab12.js", "text/javascript; charset=utf-8", b"js()"),
        ("/assets/index-Cd34.css", "text/css; charset=utf-8", b"a{}"),
        ("/assets/font-Ef56.woff2", "font/woff2", b"\0font"),
        ("/icon.svg", "image/svg+xml", b"<svg/>"),
    ],
)
async def test_every_built_file_is_served_with_its_type(
    page: Page, path: str, kind: str, body: bytes
):
    status, said, headers = await get(page, path)
    assert (status, said, headers["content-type"]) == (200, body, kind)
    assert headers["x-content-type-options"] == "nosniff"


async def test_files_with_a_hash_are_kept_for_ever_and_the_rest_is_asked_for_anew(page: Page):
    forever = "public, max-age=31536000, immutable"
    assert (await get(page, "/assets/index-Ab12.js"))[2]["cache-control"] == forever
    assert (await get(page, "/icon.svg"))[2]["cache-control"] == "no-cache"
    assert (await get(page, "/"))[2]["cache-control"] == "no-cache"


async def test_what_a_browser_has_is_not_sent_again(page: Page):
    _, _, headers = await get(page, "/")
    status, body, _ = await get(page, "/", if_none_match=headers["etag"])
    assert (status, body) == (304, b"")


async def test_the_index_knows_the_agents_and_where_it_is_mounted(page: Page):
    _, body, _ = await get(page, "/", mounted_at="/my app")
    text = body.decode()
    assert '"agents":["a","b\\u003c/script>"],"prefix":"agents","root":"/my app"' in text
    assert 'src="/my%20app/assets/index-Ab12.js"' in text
    assert 'href="/my%20app/assets/index-Cd34.css"' in text


async def test_scripts_run_only_from_here_and_pictures_come_only_from_here(page: Page):
    policy = (await get(page, "/"))[2]["content-security-policy"]
    assert "default-src 'self';" in policy
    assert "img-src 'self' data: blob:;" in policy
    assert "unsafe" not in policy


@pytest.mark.parametrize(
    "path",
    [
        "/secret.py",
        "/.hidden.js",
        "/../outside.js",
        "/%2e%2e/outside.js",
        "/assets/../../outside.js",
        "/assets/..%2f..%2foutside.js",
        "/assets",
        "/assets/index-Ab12.js%00",
        "/" + "a" * 5000,
    ],
)
async def test_nothing_else_is_found(page: Page, path: str):
    client = AsgiClient("http", path)
    await serve_http(make_edge(FakeHost(), page=page), NotOurs(), client.call)
    assert (await client.response())[0] == 404


async def test_without_a_build_it_says_how_to_get_one(tmp_path: Path):
    page = Page(agents=[], prefix="agents", folder=tmp_path / "missing")
    status, body, _ = await get(page, "/")
    assert status == 200
    assert b"make page" in body


def test_below_a_mount_point_the_address_is_found_without_decoding():
    client = AsgiClient("http", "/my app/agents/chat-agent/a b")
    client.scope.update(root_path="/my app", raw_path=b"/my%20app/agents/chat-agent/a%20b")
    assert local_path(client.scope) == "/agents/chat-agent/a%20b"
