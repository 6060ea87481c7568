"""The list of conversations, and where the page is."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser.page_support import Backstage, ChatPage, Talker, chatting
from tests.wire.serving import serving
from thinkwell import App

pytestmark = pytest.mark.browser


@pytest.fixture
async def chat(page: Page) -> AsyncIterator[ChatPage]:
    async with chatting(page) as chat:
        yield chat


async def test_conversations_are_listed_and_switched(chat: ChatPage):
    rows = chat.page.get_by_role("navigation").get_by_role("link")
    await chat.exchange("first topic", "one")
    await chat.button("New conversation").click()
    await expect(chat.page.get_by_text("Say something to begin.")).to_be_visible()
    await chat.settled()
    await chat.exchange("second topic", "two")
    await expect(rows).to_have_count(2)
    await expect(rows.first).to_contain_text("second topic")
    await expect(rows.first).to_have_attribute("aria-current", "page")
    await rows.filter(has_text="first topic").click()
    await expect(chat.answers.locator(".prose")).to_have_text("one")
    await expect(rows.filter(has_text="first topic")).to_have_attribute("aria-current", "page")
    await chat.page.go_back()
    await expect(chat.answers.locator(".prose")).to_have_text("two")


async def test_the_list_is_the_servers_and_not_the_browsers(chat: ChatPage, browser: Browser):
    await chat.exchange("asked elsewhere", "one")
    context = await browser.new_context()
    other = await context.new_page()
    await other.goto(f"{chat.page.url.split('?')[0]}?name=another")
    rows = other.get_by_role("navigation").get_by_role("link")
    await expect(rows.filter(has_text="asked elsewhere")).to_be_visible()
    await context.close()


async def test_the_browser_remembers_if_the_server_keeps_no_list(browser: Browser):
    page = await (await browser.new_context()).new_page()  # its console tells of the 404
    await page.route("**/_thinkwell/conversations*", lambda route: route.fulfill(status=404))
    async with chatting(page) as chat:
        await chat.exchange("first topic", "one")
        await chat.button("New conversation").click()
        await expect(page.get_by_text("Say something to begin.")).to_be_visible()
        await page.reload()
        rows = page.get_by_role("navigation").get_by_role("link")
        await rows.filter(has_text="first topic").click()
        await expect(chat.answers.locator(".prose")).to_have_text("one")


async def test_on_a_phone_the_list_is_a_drawer(chat: ChatPage):
    await chat.page.set_viewport_size({"width": 390, "height": 844})
    await chat.exchange("first topic", "one")
    drawer = chat.page.get_by_role("complementary")
    await expect(drawer).to_be_hidden()
    await chat.button("Conversations").click()
    await expect(drawer).to_be_visible()
    await expect(chat.button("Close the list")).to_be_focused()
    await chat.page.keyboard.press("Escape")
    await expect(drawer).to_be_hidden()
    await expect(chat.button("Conversations")).to_be_focused()
    await chat.button("Conversations").click()
    await chat.button("New conversation").click()
    await expect(drawer).to_be_hidden()
    await expect(chat.page.get_by_text("Say something to begin.")).to_be_visible()


async def test_another_agent_is_picked_from_a_list(page: Page):
    class Poet(Talker):
        """Says what its test wrote down."""

        backstage = Backstage()

    class Clerk(Talker):
        """Another one."""

        backstage = Backstage()

    Clerk.backstage.model.add("I file things.")
    async with serving(App(agents=[Poet, Clerk], store="sqlite://:memory:")) as url:
        await page.goto(url)
        chat = ChatPage(page, Clerk.backstage)
        await chat.settled()
        await page.get_by_label("Agent", exact=True).select_option("clerk")
        await expect(page.get_by_text("You are talking to clerk")).to_be_visible()
        await chat.settled()
        await chat.say("what do you do?")
        await expect(page.get_by_text("I file things.")).to_be_visible()
        await chat.settled()
        await page.goto("about:blank")
