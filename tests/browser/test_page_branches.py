"""Regenerate, edit, and the way back to what was said before."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Page, expect

from tests.browser.page_support import ChatPage, chatting
from thinkwell.messages.usage import Usage
from thinkwell.testing import finish, text

pytestmark = pytest.mark.browser


@pytest.fixture
async def chat(page: Page) -> AsyncIterator[ChatPage]:
    async with chatting(page) as chat:
        yield chat


async def test_a_regenerated_answer_is_a_version_beside_the_old_one(chat: ChatPage):
    await chat.exchange("hello", "first try")
    chat.model.add("second try")
    await chat.button("Regenerate").click()
    await expect(chat.page.get_by_text("second try")).to_be_visible()
    await chat.settled()
    versions = chat.answers.get_by_role("group", name="Versions")
    await expect(versions).to_have_text("2/2")
    assert await chat.prose() == ["second try"]
    await chat.button("Previous version").click()
    await expect(versions).to_have_text("1/2")
    await expect(chat.answers.locator(".prose")).to_have_text("first try")
    await chat.page.reload()
    await expect(versions).to_have_text("1/2")
    await expect(chat.answers.locator(".prose")).to_have_text("first try")


async def test_an_edited_message_is_a_version_with_its_own_answers(chat: ChatPage):
    await chat.exchange("hello", "hello yourself")
    await chat.exchange("how are you?", "fine")
    await chat.asked.first.hover()
    await chat.asked.first.get_by_label("Edit").click()
    await chat.page.get_by_label("Edit message").fill("good evening")
    chat.model.add("a good evening to you")
    await chat.button("Save and send").click()
    await expect(chat.page.get_by_text("a good evening to you")).to_be_visible()
    await chat.settled()
    shown = chat.page.locator(".bubble, .prose")
    await expect(shown).to_have_text(["good evening", "a good evening to you"])
    versions = chat.asked.get_by_role("group", name="Versions")
    await expect(versions).to_have_text("2/2")
    await versions.get_by_label("Previous version").click()
    await expect(shown).to_have_text(["hello", "hello yourself", "how are you?", "fine"])
    await expect(versions).to_have_text("1/2")


async def test_another_tab_follows_to_the_chosen_version(chat: ChatPage):
    await chat.exchange("hello", "first try")
    other = await chat.page.context.new_page()
    await other.goto(chat.page.url)
    await expect(other.locator(".prose")).to_have_text("first try")
    chat.model.add("second try")
    await chat.button("Regenerate").click()
    # While it streams, the other tab shows it behind the first: a list is waited for as a whole.
    await expect(other.locator(".prose")).to_have_text(["second try"])
    await expect(other.get_by_label("Status")).to_have_text("ready")
    await other.get_by_label("Previous version").click()
    await expect(chat.answers.locator(".prose")).to_have_text("first try")
    await other.close()


async def test_escape_leaves_a_message_as_it_was(chat: ChatPage):
    await chat.exchange("hello", "hi")
    await chat.asked.hover()
    await chat.asked.get_by_label("Edit").click()
    await chat.page.get_by_label("Edit message").fill("something else")
    await chat.page.keyboard.press("Escape")
    await expect(chat.asked.locator(".bubble")).to_have_text("hello")


async def test_every_answer_says_what_it_cost(chat: ChatPage):
    usage = Usage(input_tokens=1234, output_tokens=7, total_tokens=1241)
    chat.model.add([text("cheap"), finish("stop", usage=usage)])
    await chat.say("hello")
    cost = chat.answers.get_by_label("Usage")
    await expect(cost).to_contain_text("1,234 tokens in · 7 tokens out")
    await chat.page.reload()
    await expect(cost).to_contain_text("1,234 tokens in · 7 tokens out")
