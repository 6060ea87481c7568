"""The first thing a newcomer sees: the demo agent, and what the empty page suggests to try."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.browser.page_support import ChatPage, Served

pytestmark = pytest.mark.browser

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"


@pytest.fixture
async def chat(page: Page, tmp_path: Path) -> AsyncIterator[ChatPage]:
    server = Served(DEMO, tmp_path / "demo.db")
    await server.start()
    await page.goto(server.url)
    chat = ChatPage(page)
    await chat.settled()
    yield chat
    await page.goto("about:blank")
    await server.kill()


async def suggestion(chat: ChatPage, words: str) -> None:
    await chat.page.get_by_role("button", name=words).click()
    await expect(chat.asked.locator(".bubble")).to_have_text(words)


async def test_two_tools_run_side_by_side(chat: ChatPage):
    await suggestion(chat, "Compare the weather in Paris and Tokyo")
    await expect(chat.tool("get_weather")).to_have_count(2)
    await expect(chat.page.get_by_role("cell", name="Tokyo")).to_be_visible()
    await chat.settled()


async def test_a_slow_tool_shows_how_far_it_is(chat: ChatPage):
    await suggestion(chat, "Build the report")
    await expect(chat.tool("build_report").locator(".progress")).to_contain_text("percent")
    await chat.settled()
    await expect(chat.tool("build_report").locator(".state")).to_have_text("done")
    await chat.page.get_by_text("State of the agent").click()
    await expect(chat.page.get_by_label("State", exact=True)).to_contain_text('"reports": 1')


async def test_a_deletion_waits_for_the_reader(chat: ChatPage):
    await suggestion(chat, "Delete the report")
    await chat.button("Approve").click()
    await chat.settled()
    await expect(chat.tool("delete_report").locator(".state")).to_have_text("done")
    await expect(chat.answers).to_have_count(1)


async def test_the_page_turns_dark(chat: ChatPage):
    await suggestion(chat, "Switch to the dark theme")
    await expect(chat.page.locator("html")).to_have_attribute("data-theme", "dark")
    await chat.settled()
    await expect(chat.answers).to_have_count(1)


async def test_the_tour_lists_what_can_be_tried(chat: ChatPage):
    await suggestion(chat, "What can you do?")
    await expect(chat.answers.get_by_role("listitem").nth(5)).to_be_visible()
    await chat.button("Stop").click()
    await chat.settled()
