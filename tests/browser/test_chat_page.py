"""The page with the stock npm hooks against our server: what a person sees."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.wire.serving import serving
from thinkwell import App, Think, tool
from thinkwell.core.errors import ModelError
from thinkwell.testing import Gate, ScriptedModel, call, error, reasoning, text

pytestmark = pytest.mark.browser

WORDS = [f"word{number} " for number in range(1, 31)]


class Talker(Think):
    """Says what the test gives it."""

    def get_model(self) -> Any:
        return MODEL

    @tool
    async def get_weather(self, city: str) -> dict[str, str]:
        """Weather."""
        return {"city": city, "sky": "sunny"}


MODEL = ScriptedModel()


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> ScriptedModel:
    model = ScriptedModel()
    monkeypatch.setattr(f"{__name__}.MODEL", model)
    return model


@pytest.fixture
async def chat(page: Page, model: ScriptedModel, tmp_path: Path) -> AsyncIterator[Page]:
    async with serving(App(agents=[Talker], store="sqlite://:memory:")) as url:
        await page.goto(url)
        await expect(page.get_by_label("Status")).to_have_text("ready")
        yield page
        await page.screenshot(path=tmp_path / "page.png")
        await page.goto("about:blank")  # before the server goes, or the page would complain


async def say(chat: Page, words: str) -> None:
    await chat.get_by_label("Message").fill(words)
    await chat.keyboard.press("Enter")


async def test_text_streams_word_by_word_into_one_bubble(chat: Page, model: ScriptedModel):
    gates = [Gate(), Gate()]
    half = len(WORDS) // 2
    model.add([text(*WORDS[:half]), gates[0], text(*WORDS[half:]), gates[1]])
    await say(chat, "hello")
    answer = chat.get_by_role("article", name="Assistant")
    await gates[0].reached()
    await expect(answer).to_contain_text(WORDS[half - 1].strip())
    await expect(answer).not_to_contain_text(WORDS[half].strip())
    gates[0].open()
    gates[1].open()
    await expect(chat.get_by_label("Status")).to_have_text("ready")
    await expect(answer).to_have_count(1)
    assert (await answer.inner_text()).split() == "".join(WORDS).split()


async def test_a_tool_call_is_a_card_with_input_output_and_state(chat: Page, model: ScriptedModel):
    model.add([reasoning("hm"), call("get_weather", {"city": "Oslo"})], "It is sunny.")
    await say(chat, "weather?")
    card = chat.get_by_label("Tool get_weather")
    await expect(card).to_have_attribute("data-state", "output-available")
    await card.locator("summary").click()
    await expect(card).to_contain_text('"city": "Oslo"')
    await expect(card).to_contain_text('"sky": "sunny"')
    await expect(chat.get_by_text("It is sunny.")).to_be_visible()
    await expect(chat.get_by_text("Thoughts")).to_be_visible()
    await expect(chat.get_by_role("article", name="Assistant")).to_have_count(1)


async def test_stop_keeps_what_was_said(chat: Page, model: ScriptedModel):
    gate = Gate()
    model.add([text(*WORDS), gate, text("never")])
    await say(chat, "go on")
    await gate.reached()
    await expect(chat.get_by_text("word30")).to_be_visible()
    await chat.get_by_role("button", name="Stop").click()
    await expect(chat.get_by_label("Status")).to_have_text("ready")
    answer = chat.get_by_role("article", name="Assistant")
    assert (await answer.inner_text()).split() == "".join(WORDS).split()


async def test_a_reload_shows_the_stored_conversation(chat: Page, model: ScriptedModel):
    model.add("one answer")
    await say(chat, "hello")
    await expect(chat.get_by_text("one answer")).to_be_visible()
    await expect(chat.get_by_label("Status")).to_have_text("ready")
    await chat.reload()
    await expect(chat.get_by_role("article")).to_have_text(["hello", "one answer"])


async def test_an_error_is_shown_and_the_next_message_works(chat: Page, model: ScriptedModel):
    model.add([text("part "), error(ModelError("the provider is down"))], "fine again")
    await say(chat, "hello")
    await expect(chat.get_by_role("alert")).to_be_visible()
    await say(chat, "again")
    await expect(chat.get_by_text("fine again")).to_be_visible()
    await expect(chat.get_by_label("Status")).to_have_text("ready")


async def test_clear_empties_the_conversation(chat: Page, model: ScriptedModel):
    model.add("something")
    await say(chat, "hello")
    await expect(chat.get_by_text("something")).to_be_visible()
    await expect(chat.get_by_label("Status")).to_have_text("ready")
    await chat.get_by_role("button", name="Clear").click()
    await expect(chat.get_by_text("Say something to begin.")).to_be_visible()
    await chat.reload()
    await expect(chat.get_by_text("Say something to begin.")).to_be_visible()
