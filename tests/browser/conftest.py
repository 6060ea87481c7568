"""A real Chromium."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from importlib import resources

import pytest
from playwright.async_api import Browser, Page, async_playwright

PLACES = ("chromium", "chromium-browser", "google-chrome")


def chromium() -> str:
    """The browser to drive: CHROMIUM_PATH, or the first one on PATH."""
    found = os.environ.get("CHROMIUM_PATH") or next(filter(None, map(shutil.which, PLACES)), None)
    assert found, "the browser tests need Chromium: set CHROMIUM_PATH, or run `make browser`"
    return found


@pytest.fixture(autouse=True)
def _the_page_is_built() -> None:
    built = resources.files("thinkwell.server") / "page" / "app.js"
    assert built.is_file(), "the browser tests need the page: run `make page`"


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=chromium(), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield browser
        await browser.close()


@pytest.fixture
async def page(browser: Browser) -> AsyncIterator[Page]:
    """A page whose every error fails the test."""
    page = await browser.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda line: problems.append(line.text) if line.type == "error" else None)
    yield page
    assert problems == []
