"""What the page says of a program that is wrong: to whoever writes it, and to everybody else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.browser.page_support import ChatPage, Served

pytestmark = pytest.mark.browser

NO_KEY = "from thinkwell import Think\nclass Assistant(Think): model = 'openai-chat:gpt-4o-mini'"
FAILS = """
from thinkwell import Think
class Assistant(Think):
    model = "demo"
    def before_turn(self, ctx):
        raise LookupError("no row 17 in the table of prices")
"""


@asynccontextmanager
async def served(page: Page, code: str, folder: Path, *command: str) -> AsyncIterator[ChatPage]:
    file = folder / "code" / "agents.py"
    file.parent.mkdir()
    file.write_text(code)
    server = Served(file, folder / "x.db", *command)
    await server.start()
    await page.goto(server.url)
    try:
        yield ChatPage(page)
    finally:
        await page.goto("about:blank")
        await server.stop()


@pytest.mark.parametrize("command", [("serve",), ("dev", "--no-open")])
async def test_the_page_says_which_key_is_missing(
    page: Page, tmp_path: Path, command: tuple[str, ...]
):
    async with served(page, NO_KEY, tmp_path, *command) as chat:
        await expect(chat.page.get_by_role("alert")).to_contain_text(
            "assistant cannot answer yet. The model 'openai-chat:gpt-4o-mini' needs a key. "
            "Set OPENAI_API_KEY"
        )


async def test_an_agent_that_can_answer_has_no_such_notice(page: Page, tmp_path: Path):
    async with served(page, FAILS, tmp_path) as chat:
        await expect(chat.page.get_by_text("Say something to begin.")).to_be_visible()
        await expect(chat.page.get_by_role("alert")).to_have_count(0)


async def test_under_dev_the_page_shows_the_real_error(page: Page, tmp_path: Path):
    async with served(page, FAILS, tmp_path, "dev", "--no-open") as chat:
        await chat.say("What does it cost?")
        await expect(chat.page.get_by_role("alert")).to_contain_text(
            "no row 17 in the table of prices"
        )


async def test_under_serve_the_page_never_does(page: Page, tmp_path: Path):
    async with served(page, FAILS, tmp_path) as chat:
        await chat.say("What does it cost?")
        await expect(chat.page.get_by_role("alert")).to_be_visible()
        await expect(chat.page.get_by_role("alert")).not_to_contain_text("row 17")
