"""Stop stops what runs, also while another question waits (spec/01 §8.2)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Page, expect

from tests.browser.page_support import ChatPage, chatting
from thinkwell.testing import Gate, text

pytestmark = pytest.mark.browser
NOT_ANSWERED = "Not answered: you stopped it."


@pytest.fixture
async def chat(page: Page) -> AsyncIterator[ChatPage]:
    async with chatting(page) as chat:
        yield chat


async def test_stop_with_a_question_waiting_stops_the_answer_that_runs(chat: ChatPage):
    endless = Gate()
    chat.model.add([text("first words"), endless, text("never said")], "second answer")
    await chat.say("one")
    await expect(chat.answers).to_contain_text("first words")
    await chat.say("two")
    await expect(chat.asked).to_have_count(2)

    await chat.button("Stop").click()

    await expect(chat.page.get_by_text("second answer", exact=True)).to_be_visible()
    await chat.settled()
    assert await chat.asked.locator(".bubble").all_inner_texts() == ["one", "two"]
    assert await chat.prose() == ["first words", "second answer"]
    await expect(chat.page.get_by_text(NOT_ANSWERED)).to_have_count(0)


async def test_a_second_stop_stops_the_question_that_waited(chat: ChatPage):
    first, second = Gate(), Gate()
    chat.model.add([text("first words"), first], [text("more words"), second])
    await chat.say("one")
    await first.reached()
    await chat.say("two")
    await expect(chat.asked).to_have_count(2)
    await chat.button("Stop").click()
    await second.reached()
    await expect(chat.page.get_by_text("more words", exact=True)).to_be_visible()

    await chat.button("Stop").click()

    await chat.settled()
    await chat.page.reload()
    await chat.settled()
    assert await chat.prose() == ["first words", "more words"]


async def test_a_question_stopped_before_its_answer_says_so_also_after_a_reload(chat: ChatPage):
    silent = Gate()
    chat.model.add([silent, text("never said")])
    await chat.say("one")
    await silent.reached()

    await chat.button("Stop").click()

    await expect(chat.asked.get_by_text(NOT_ANSWERED)).to_be_visible()
    await chat.settled()
    await chat.page.reload()
    await expect(chat.asked.get_by_text(NOT_ANSWERED)).to_be_visible()
    await chat.exchange("two", "an answer")
    await expect(chat.page.get_by_text(NOT_ANSWERED)).to_have_count(1)
