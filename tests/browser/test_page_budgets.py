"""What the page shows of money: the cost of an answer, and a budget that asks for more."""

from __future__ import annotations

import os

import pytest
from playwright.async_api import Page, expect

from tests.browser.page_support import Backstage, ChatPage, app_with
from tests.wire.serving import serving
from thinkwell import Budget
from thinkwell.models import Price

pytestmark = pytest.mark.browser

PRICES = {"scripted:scripted": Price(input=250, output=1000)}


async def test_a_budget_asks_and_a_click_goes_on(page: Page):
    backstage = Backstage()
    budget = Budget(usd=4, per="agent", on_breach="ask", more_usd=2)
    app = app_with(backstage, prices=PRICES, budget=budget)
    async with app, serving(app) as url:
        await page.goto(url)
        chat = ChatPage(page, backstage)
        await chat.settled()
        await chat.exchange("Where is my parcel?", "On its way.")
        await expect(chat.answers.first.get_by_label("Usage")).to_contain_text("$0.0075")
        backstage.model.add("It arrives on Tuesday.")
        await chat.say("When does it arrive? " * 600)
        await expect(chat.status).to_have_text("waiting for you")
        card = chat.tool("raise_budget")
        await expect(card).to_contain_text("Continue with $4.00 more?")
        await expect(card.locator(".arguments")).to_contain_text("of $4.00 spent")
        if folder := os.environ.get("THINKWELL_SCREENSHOTS"):
            await page.screenshot(path=f"{folder}/budget.png")
        await chat.button("Continue").click()
        await expect(page.get_by_text("It arrives on Tuesday.")).to_be_visible()
        await chat.settled()
        if folder := os.environ.get("THINKWELL_SCREENSHOTS"):
            await page.screenshot(path=f"{folder}/budget-after.png")
        await page.goto("about:blank")


async def test_stopping_there_ends_the_answer_and_asks_no_more(page: Page):
    backstage = Backstage()
    app = app_with(backstage, budget=Budget(tokens=1500, per="agent", on_breach="ask"))
    async with app, serving(app) as url:
        await page.goto(url)
        chat = ChatPage(page, backstage)
        await chat.settled()
        await chat.say("long " * 400)
        await chat.button("Stop here").click()
        await expect(page.get_by_text("This answer would exceed its budget.")).to_be_visible()
        await expect(chat.tool("raise_budget")).to_have_attribute("data-state", "output-denied")
        assert backstage.model.requests == []
        await page.goto("about:blank")
