"""One real Chromium for all tests; every test has its own pages and, with the hooks, a site."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from importlib import resources
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, async_playwright, expect

from tests.browser.hooks.node_tab import node_process, node_windows
from tests.browser.hooks.place import CHROMIUM, Place
from tests.browser.hooks.site import DIST, AnyScriptedSite, AnySite, OpenTab
from tests.browser.hooks.tab import AnyTab, new_tabs

PLACES = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-extensions",
    "--disable-component-update",
    "--disable-background-networking",
    "--no-first-run",
    # A tab behind another one runs like the one in front: both belong to the scenario.
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
)
expect.set_options(timeout=30_000)


def chromium() -> str:
    """The browser to drive: CHROMIUM_PATH, or the first one on PATH."""
    found = os.environ.get("CHROMIUM_PATH") or next(filter(None, map(shutil.which, PLACES)), None)
    assert found, "the browser tests need Chromium: set CHROMIUM_PATH, or run `make browser`"
    return found


@pytest.fixture(scope="session")
def devtools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the browser. It outlives the event loop of a test, so it is no async thing."""
    profile = tmp_path_factory.mktemp("profile")
    log = profile / "stderr.txt"
    options = [*OPTIONS, "--remote-debugging-port=0", f"--user-data-dir={profile}"]
    with log.open("wb") as errors:
        process = subprocess.Popen([chromium(), *options, "about:blank"], stderr=errors)
    try:
        yield _address(process, log)
    finally:
        process.terminate()
        process.wait(30)


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    while process.poll() is None:
        if found := re.search(r"listening on (ws://\S+)\n", log.read_text(errors="replace")):
            return found[1]
        try:
            process.wait(0.05)
        except subprocess.TimeoutExpired:
            continue
    raise AssertionError(f"Chromium did not start: {log.read_text(errors='replace')}")


@asynccontextmanager
async def connected(devtools: str) -> AsyncIterator[Browser]:
    """The browser, for one test; what the test opened is closed at its end."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.connect_over_cdp(devtools)
        yield browser
        await browser.close()


@pytest.fixture
async def browser(devtools: str) -> AsyncIterator[Browser]:
    async with connected(devtools) as browser:
        yield browser


@pytest.fixture
async def page(browser: Browser) -> AsyncIterator[Page]:
    """A page whose every error fails the test."""
    built = resources.files("thinkwell.server") / "page" / "index.html"
    assert built.is_file(), "the browser tests need the page: run `make page`"
    context = await browser.new_context()
    page = await context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda line: problems.append(line.text) if line.type == "error" else None)
    yield page
    assert problems == []
    await context.close()


@pytest.fixture(scope="session")
def node() -> Iterator[int]:
    """The port of the Node process with the jsdom windows of all tests."""
    with node_process() as port:
        yield port


@pytest.fixture
def place(request: pytest.FixtureRequest) -> Place:
    """Where the pages of this test run: Chromium, if it does not ask for more."""
    return getattr(request, "param", CHROMIUM)


@pytest.fixture
async def open_tab(place: Place, request: pytest.FixtureRequest) -> AsyncIterator[OpenTab[AnyTab]]:
    """Opens bare pages on the npm hooks, in the browser or in Node."""
    assert (DIST / "ai-chat.js").is_file(), "the hook tests need their pages: run `make node-tests`"
    if place.socket:
        async with node_windows(request.getfixturevalue("node"), place.socket) as windows:
            yield windows.tab
    else:
        async with connected(request.getfixturevalue("devtools")) as browser:
            yield new_tabs(browser)


@pytest.fixture
async def site(open_tab: OpenTab[AnyTab], place: Place) -> AsyncIterator[AnySite]:
    """Bare pages in front of agents that say what the test wrote down."""
    async with AnyScriptedSite(open_tab, place) as site:
        yield site
        site.model.assert_complete()
