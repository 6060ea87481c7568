"""The page with the stock npm hooks against our server: what a person sees."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, WebSocketRoute, expect

from tests.browser.page_support import ChatPage, Served, chatting
from thinkwell.core.errors import ModelError
from thinkwell.models.base import ReasoningDelta, ReasoningEnd, ReasoningStart
from thinkwell.testing import Gate, error, text

pytestmark = pytest.mark.browser

WORDS = [f"word{number} " for number in range(1, 31)]
COUNTER = """
from thinkwell import App, Think
from thinkwell.models.demo import DemoModel

class Counter(Think):
    model = DemoModel(delay=0.01)

app = App(agents=[Counter])
"""


@pytest.fixture
async def chat(page: Page) -> AsyncIterator[ChatPage]:
    async with chatting(page) as chat:
        yield chat


async def test_text_streams_word_by_word_into_one_bubble(chat: ChatPage):
    gates = [Gate(), Gate()]
    half = len(WORDS) // 2
    chat.model.add([text(*WORDS[:half]), gates[0], text(*WORDS[half:]), gates[1]])
    await chat.say("hello")
    await gates[0].reached()
    await expect(chat.answers).to_contain_text(WORDS[half - 1].strip())
    await expect(chat.answers).not_to_contain_text(WORDS[half].strip())
    await expect(chat.status).to_have_text("streaming")
    gates[0].open()
    gates[1].open()
    await chat.settled()
    await expect(chat.answers).to_have_count(1)
    assert " ".join(await chat.prose()).split() == "".join(WORDS).split()


async def test_a_thought_is_one_line_that_unfolds(chat: ChatPage):
    gates = [Gate(), Gate(), Gate()]
    thoughts = [ReasoningStart("r"), ReasoningDelta("r", "first I look, "), gates[0]]
    thoughts += [ReasoningDelta("r", "then I leap"), gates[1], ReasoningEnd("r")]
    chat.model.add([*thoughts, text("done"), gates[2]])
    await chat.say("think")
    await gates[0].reached()
    line = chat.answers.locator("details.reasoning summary")
    await expect(line).to_have_text("Thinking…first I look, ")
    gates[0].open()
    await expect(line).to_have_text("Thinking…first I look, then I leap")
    gates[1].open()
    await gates[2].reached()
    await expect(line).to_contain_text("Thought for")
    whole = chat.answers.locator(".thought")
    await expect(whole).to_be_hidden()
    await line.click()
    await expect(whole).to_have_text("first I look, then I leap")
    gates[2].open()
    await chat.settled()
    await expect(line).to_contain_text("Thought for")
    await expect(whole).to_be_visible()


async def test_stop_keeps_what_was_said(chat: ChatPage):
    gate = Gate()
    chat.model.add([text(*WORDS), gate, text("never")])
    await chat.say("go on")
    await gate.reached()
    await expect(chat.page.get_by_text("word30")).to_be_visible()
    await chat.button("Stop").click()
    await chat.settled()
    assert " ".join(await chat.prose()).split() == "".join(WORDS).split()


async def test_a_reload_in_mid_stream_shows_every_word_once(chat: ChatPage):
    gate = Gate()
    chat.model.add([text(*WORDS), gate])
    await chat.say("hello")
    await gate.reached()
    await chat.page.reload()
    await expect(chat.page.get_by_text("word30")).to_be_visible()
    await expect(chat.status).to_have_text("streaming")
    gate.open()
    await chat.settled()
    await expect(chat.answers).to_have_count(1)
    assert " ".join(await chat.prose()).split() == "".join(WORDS).split()


async def test_a_message_sent_meanwhile_is_answered_next(chat: ChatPage):
    gate = Gate()
    chat.model.add([text("first answer"), gate], "second answer")
    await chat.say("one")
    await gate.reached()
    await chat.say("two")
    await expect(chat.asked).to_have_count(2)
    gate.open()
    await expect(chat.page.get_by_text("second answer")).to_be_visible()
    await chat.settled()
    shown = await chat.page.locator(".bubble, .prose").all_inner_texts()
    assert shown == ["one", "first answer", "two", "second answer"]


async def test_an_error_is_shown_and_can_be_tried_again(chat: ChatPage):
    chat.model.add([text("part "), error(ModelError("the provider is down"))], "fine again")
    await chat.say("hello")
    await expect(chat.page.get_by_role("alert")).to_be_visible()
    await expect(chat.status).to_have_text("error")
    await chat.button("Try again").click()
    await expect(chat.page.get_by_text("fine again")).to_be_visible()
    await chat.settled()
    await expect(chat.page.get_by_role("alert")).to_have_count(0)


async def test_after_an_error_the_next_message_works(chat: ChatPage):
    chat.model.add([error(ModelError("the provider is down"))], "fine again")
    await chat.say("hello")
    await expect(chat.page.get_by_role("alert")).to_be_visible()
    await chat.say("again")
    await expect(chat.page.get_by_text("fine again")).to_be_visible()
    await chat.settled()


async def test_clear_asks_first_and_then_empties_the_conversation(chat: ChatPage):
    await chat.exchange("hello", "something")
    await chat.button("Clear").click()
    await chat.button("Keep it").click()
    await expect(chat.answers).to_have_count(1)
    await chat.button("Clear").click()
    await chat.button("Clear conversation").click()
    await expect(chat.page.get_by_text("Say something to begin.")).to_be_visible()
    await chat.page.reload()
    await expect(chat.page.get_by_text("Say something to begin.")).to_be_visible()


async def test_a_suggestion_is_sent_by_a_click(chat: ChatPage):
    chat.model.add("Many things.")
    await chat.page.get_by_role("button", name="What can you do?").click()
    await expect(chat.asked.locator(".bubble")).to_have_text("What can you do?")
    await expect(chat.page.get_by_text("Many things.")).to_be_visible()
    await chat.settled()


async def test_a_recovering_turn_is_announced(page: Page):
    """spec/01 §12: the hook's flag, shown as a banner until the server takes it back."""

    sockets: list[WebSocketRoute] = []

    def tap(socket: WebSocketRoute) -> None:
        socket.connect_to_server()
        sockets.append(socket)

    await page.route_web_socket(lambda url: "/agents/" in url, tap)
    async with chatting(page) as chat:
        frame = '{"type":"cf_agent_chat_recovering","recovering":%s}'
        sockets[-1].send(frame % "true")
        await expect(chat.status).to_have_text("recovering")
        await expect(page.get_by_text("taking up this answer again")).to_be_visible()
        sockets[-1].send(frame % "false")
        await chat.settled()


async def test_kill_9_in_mid_stream_loses_and_doubles_nothing(browser: Browser, tmp_path: Path):
    page = await (await browser.new_context()).new_page()  # its console may complain
    (tmp_path / "counter.py").write_text(COUNTER)
    server = Served(tmp_path / "counter.py", tmp_path / "store.db")
    await server.start()
    try:
        await page.goto(server.url)
        chat = ChatPage(page)
        await chat.settled()
        await chat.say("count to 300")
        await expect(chat.answers).to_contain_text("20, 21, 22")
        await server.kill()
        await expect(chat.status).to_have_text("reconnecting")
        await expect(page.get_by_text("Connection lost.")).to_be_visible()
        await expect(page.get_by_role("alert")).to_have_count(0)
        await server.start()
        await expect(chat.answers).to_contain_text("Done.", timeout=60_000)
        await chat.settled()
        await expect(chat.answers).to_have_count(1)
        numbers = ", ".join(str(number) for number in range(1, 301))
        assert await chat.prose() == [f"{numbers}. Done."]
    finally:
        await page.goto("about:blank")
        await server.kill()
