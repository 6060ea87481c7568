"""The page says that an answer waits for a free slot of its model: a state, not a hang."""

from __future__ import annotations

import asyncio

import pytest
from playwright.async_api import Page, expect

from tests.browser.page_support import Backstage, ChatPage, app_with
from tests.wire.serving import serving
from thinkwell import ModelLimits
from thinkwell.testing import Gate, text

pytestmark = pytest.mark.browser


async def test_the_page_says_so_while_it_waits_and_no_longer(page: Page):
    backstage, door = Backstage(), Gate()
    app = app_with(backstage, model_limits={"scripted:*": ModelLimits(parallel=1)})
    backstage.model.add([door, text("for somebody else")], "at last")
    async with app, serving(app) as url:
        other = asyncio.create_task(app.agent("talker", "other").run("first"))
        await door.reached()
        await page.goto(url)
        chat = ChatPage(page, backstage)
        await chat.settled()
        await chat.say("second")
        notice = page.get_by_text("Waiting for a free slot of scripted:")
        await expect(notice).to_be_visible()
        await page.reload()  # whoever comes meanwhile is told too
        await expect(notice).to_be_visible()

        door.open()

        await expect(page.get_by_text("at last", exact=True)).to_be_visible()
        await expect(notice).to_have_count(0)
        await chat.settled()
        await other
        await page.goto("about:blank")
