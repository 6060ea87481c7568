"""Calm while streaming: no jumps, no long tasks, and the reader decides where to look."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Page, expect

from tests.browser.page_support import ChatPage, chatting
from thinkwell.testing import Gate, call, reasoning, text

pytestmark = pytest.mark.browser

OBSERVE = """
window.seen = { tasks: [], shifts: [] };
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) window.seen.tasks.push(entry.duration);
}).observe({ type: "longtask", buffered: true });
new PerformanceObserver((list) => {
  for (const entry of list.getEntries())
    if (!entry.hadRecentInput) window.seen.shifts.push(entry.value);
}).observe({ type: "layout-shift", buffered: true });
"""
"""In the page: what the browser itself says about long tasks and shifted content."""

DELTAS = 5000
MAX_TASK_MS = 200
MAX_SHIFT = 0.1
ATTEMPTS = 6


def prose() -> list[str]:
    """Paragraphs, a list now and then, and some code."""
    deltas = [f"word{number} " for number in range(DELTAS)]
    for place in range(0, DELTAS, 40):
        deltas[place] = f"\n\n{'- ' if place % 120 == 0 else ''}word{place} "
    for place in range(200, DELTAS, 1000):
        deltas[place] = f"\n\n```python\nword{place} = 1\n```\n\n"
    return deltas


ANSWERS = {
    "prose": prose(),
    "one paragraph": [f"word{number} " for number in range(DELTAS)],
    "code": ["```python\n", *(f"word{number} = {number}\n" for number in range(1, DELTAS))],
}


@pytest.fixture
async def chat(page: Page) -> AsyncIterator[ChatPage]:
    await page.add_init_script(OBSERVE)
    async with chatting(page) as chat:
        yield chat


async def longest_task(chat: ChatPage, answer: list[str]) -> float:
    """Milliseconds of the longest task while the page shows an answer in a new conversation."""
    await chat.button("New conversation").click()
    await expect(chat.page.get_by_text("Say something to begin.")).to_be_visible()
    await chat.settled()
    await chat.page.evaluate("window.seen.tasks = []")
    chat.model.add([text(*answer)])
    await chat.say("go")
    await expect(chat.answers).to_contain_text(f"word{DELTAS - 1}", timeout=120_000)
    await chat.settled()
    # The observer reports after the task that follows; two frames later it has.
    await chat.page.evaluate(
        "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )
    return max(await chat.page.evaluate("window.seen.tasks"), default=0)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", ANSWERS)
async def test_5000_deltas_come_without_a_long_task(chat: ChatPage, kind: str):
    """A task is measured by the clock, so other work on the machine counts: the best of a few."""
    tasks: list[float] = []
    while len(tasks) < ATTEMPTS and min(tasks, default=MAX_TASK_MS + 1) > MAX_TASK_MS:
        tasks.append(await longest_task(chat, ANSWERS[kind]))
    assert min(tasks) <= MAX_TASK_MS, tasks


async def test_nothing_jumps_while_an_answer_streams(chat: ChatPage):
    gates = [Gate() for _ in range(4)]
    paragraphs = [f"{' '.join(f'w{number}' for number in range(80))}\n\n" for _ in range(12)]
    chat.model.add(
        [reasoning("hm, ", "well"), gates[0], text(*paragraphs), gates[1], call("look_around")],
        [text(*paragraphs), gates[2], text("# The end\n\n", *paragraphs), gates[3]],
    )
    await chat.say("tell me everything")
    for gate in gates[:2]:
        await gate.reached()
        gate.open()
    await expect(chat.tool("look_around").locator(".progress")).to_be_visible()
    chat.backstage.go_on.set()
    for gate in gates[2:]:
        await gate.reached()
        gate.open()
    await chat.settled()
    await expect(chat.answers.get_by_label("Usage")).to_be_visible()
    assert sum(await chat.page.evaluate("window.seen.shifts")) < MAX_SHIFT


async def test_the_view_follows_unless_the_reader_scrolls_up(chat: ChatPage):
    gates = [Gate() for _ in range(4)]
    lines = [f"line {number}\n\n" for number in range(60)]
    chat.model.add([piece for gate in gates for piece in (text(*lines), gate)])
    below = "box => Math.round(box.scrollHeight - box.scrollTop - box.clientHeight)"
    await chat.say("go")
    await gates[0].reached()
    await expect(chat.page.get_by_text("line 59", exact=True).last).to_be_in_viewport()
    gates[0].open()
    await gates[1].reached()
    await expect(chat.page.get_by_text("line 59", exact=True)).to_have_count(2)
    await expect(chat.page.get_by_text("line 59", exact=True).last).to_be_in_viewport()
    assert await chat.view.evaluate(below) <= 1

    await chat.view.hover()
    await chat.page.mouse.wheel(0, -600)
    await expect(chat.button("Jump to latest")).to_be_visible()
    top = await chat.view.evaluate("box => box.scrollTop")
    gates[1].open()
    await gates[2].reached()
    await expect(chat.page.get_by_text("line 59", exact=True)).to_have_count(3)
    assert await chat.view.evaluate("box => box.scrollTop") == top

    await chat.button("Jump to latest").click()
    await expect(chat.button("Jump to latest")).to_have_count(0)
    gates[2].open()
    await gates[3].reached()
    await expect(chat.page.get_by_text("line 59", exact=True)).to_have_count(4)
    await expect(chat.page.get_by_text("line 59", exact=True).last).to_be_in_viewport()
    gates[3].open()
    await chat.settled()
