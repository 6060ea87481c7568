"""Tool cards, approvals, and tools that run in the page."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Page, expect

from tests.browser.page_support import ChatPage, chatting
from thinkwell.testing import call, text

pytestmark = pytest.mark.browser


@pytest.fixture
async def chat(page: Page) -> AsyncIterator[ChatPage]:
    async with chatting(page) as chat:
        yield chat


async def test_a_tool_call_is_a_card_with_input_output_and_duration(chat: ChatPage):
    chat.model.add([call("get_weather", {"city": "Oslo"})], "It is sunny.")
    await chat.say("weather?")
    card = chat.tool("get_weather")
    await expect(card).to_have_attribute("data-state", "output-available")
    await card.locator("summary").click()
    await expect(card.get_by_label("Input")).to_contain_text('"city": "Oslo"')
    await expect(card.get_by_label("Output")).to_contain_text('"sky": "sunny"')
    await expect(chat.page.get_by_text("It is sunny.")).to_be_visible()
    await chat.settled()
    await expect(chat.answers).to_have_count(1)
    await chat.page.reload()
    await expect(card.locator(".took")).to_contain_text("s")


async def test_tools_side_by_side_have_a_card_each(chat: ChatPage):
    calls = [call("get_weather", {"city": city}) for city in ("Oslo", "Rome")]
    chat.model.add([*calls, call("fails")], "Well.")
    await chat.say("compare")
    await expect(chat.tool("get_weather")).to_have_count(2)
    for card, city in zip(await chat.tool("get_weather").all(), ("Oslo", "Rome"), strict=True):
        await expect(card).to_have_attribute("data-state", "output-available")
        await expect(card.locator(".arguments")).to_have_text(f"city: {city}")
    await expect(chat.tool("fails")).to_have_attribute("data-state", "output-error")
    await expect(chat.tool("fails").get_by_label("Error")).to_have_text("no such luck")
    await chat.settled()
    await expect(chat.answers).to_have_count(1)


async def test_preliminary_results_show_how_far_a_tool_is(chat: ChatPage):
    chat.model.add([call("look_around")], "Seen.")
    await chat.say("look")
    card = chat.tool("look_around")
    await expect(card.locator(".progress")).to_have_text("half way")
    await expect(card.locator(".state")).to_have_text("working")
    chat.backstage.go_on.set()
    await expect(card.locator(".state")).to_have_text("done")
    await expect(card.locator(".progress")).to_have_count(0)
    await card.locator("summary").click()
    await expect(card.get_by_label("Output")).to_have_text("all seen")
    await chat.settled()


async def test_approve_runs_the_tool_and_the_answer_goes_on_in_one_bubble(chat: ChatPage):
    chat.model.add([text("If you say so."), call("delete_report", {"title": "Q3"})], "It is gone.")
    await chat.say("delete it")
    await expect(chat.status).to_have_text("waiting for you")
    assert chat.backstage.deleted == []
    await chat.button("Approve").click()
    await expect(chat.page.get_by_text("It is gone.")).to_be_visible()
    await chat.settled()
    assert chat.backstage.deleted == ["Q3"]
    await expect(chat.tool("delete_report")).to_have_attribute("data-state", "output-available")
    await expect(chat.answers).to_have_count(1)
    assert await chat.prose() == ["If you say so.", "It is gone."]


async def test_deny_keeps_the_tool_from_running(chat: ChatPage):
    chat.model.add([call("delete_report", {"title": "Q3"})], "Then not.")
    await chat.say("delete it")
    await chat.button("Deny").click()
    await expect(chat.page.get_by_text("Then not.")).to_be_visible()
    await chat.settled()
    assert chat.backstage.deleted == []
    await expect(chat.tool("delete_report")).to_have_attribute("data-state", "output-denied")
    await expect(chat.answers).to_have_count(1)


async def test_an_approval_survives_a_reload(chat: ChatPage):
    """spec/01 §18 case 58."""
    chat.model.add([call("delete_report", {"title": "Q3"})], "It is gone.")
    await chat.say("delete it")
    await expect(chat.button("Approve")).to_be_visible()
    await chat.page.reload()
    await chat.button("Approve").click()
    await expect(chat.page.get_by_text("It is gone.")).to_be_visible()
    await chat.settled()
    assert chat.backstage.deleted == ["Q3"]


async def test_the_model_changes_the_colours_through_a_tool_of_the_page(chat: ChatPage):
    chat.model.add([call("set_theme", {"theme": "dark"})], "Dark it is.")
    await chat.say("make it dark")
    await expect(chat.page.get_by_text("Dark it is.")).to_be_visible()
    await chat.settled()
    await expect(chat.page.locator("html")).to_have_attribute("data-theme", "dark")
    await expect(chat.tool("set_theme")).to_have_attribute("data-state", "output-available")
    assert '"dark"' in repr(chat.model.requests[-1].messages).replace("'", '"')
    await expect(chat.answers).to_have_count(1)


async def test_the_model_learns_about_the_browser(chat: ChatPage):
    chat.model.add([call("get_browser_info")], "I see.")
    await chat.say("where am I?")
    await expect(chat.page.get_by_text("I see.")).to_be_visible()
    await chat.settled()
    zone = await chat.page.evaluate("Intl.DateTimeFormat().resolvedOptions().timeZone")
    assert zone in repr(chat.model.requests[-1].messages)


async def test_the_model_asks_the_person_and_waits(chat: ChatPage):
    question = {"question": "Which colour?", "options": ["Teal", "Amber"]}
    chat.model.add([call("ask_user", question)], "A fine choice.")
    await chat.say("ask me")
    await expect(chat.status).to_have_text("waiting for you")
    await expect(chat.tool("ask_user").get_by_label("Which colour?")).to_be_visible()
    await chat.button("Amber").click()
    await expect(chat.page.get_by_text("A fine choice.")).to_be_visible()
    await chat.settled()
    assert "Amber" in repr(chat.model.requests[-1].messages[-1])


async def test_a_question_can_be_answered_in_own_words(chat: ChatPage):
    chat.model.add([call("ask_user", {"question": "Why?"})], "Because, then.")
    await chat.say("ask me")
    await chat.tool("ask_user").get_by_label("Why?").fill("because")
    await chat.page.keyboard.press("Enter")
    await expect(chat.page.get_by_text("Because, then.")).to_be_visible()
    await chat.settled()
    assert "because" in repr(chat.model.requests[-1].messages[-1])
