"""How the page reads: markdown, accessibility, colours, keyboard, width."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser.page_support import ChatPage, chatting
from thinkwell.testing import Gate, call, reasoning, text

pytestmark = pytest.mark.browser

AXE = Path(__file__).parents[2] / "studio" / "node_modules" / "axe-core" / "axe.min.js"
CODE = "def greet(name):\n    return f'Hello {name}'  # to everybody"
MARKDOWN = f"""\
## A title

Some **bold** words, `code` and [a link](https://example.com/).

- one
- two

```python
{CODE}
```

| City | Sky |
|---|---|
| Oslo | grey |

![a picture](https://example.com/picture.png)
"""

WOVEN = """\
1. Install it:

   ```sh
   pip install

   this
   ```

2. Read [the manual][m].

3. Done.

```
[x]: not a link

- not a list
```

[m]: https://example.com/manual
"""


@pytest.fixture
async def chat(page: Page) -> AsyncIterator[ChatPage]:
    async with chatting(page) as chat:
        yield chat


async def show_everything(chat: ChatPage) -> None:
    """A conversation with something of every kind in it, which waits for an approval."""
    weather = call("get_weather", {"city": "Oslo"})
    chat.model.add([reasoning("hm"), weather, call("fails")], MARKDOWN)
    await chat.say("show me")
    await expect(chat.page.get_by_role("cell", name="Oslo")).to_be_visible()
    await chat.settled()
    chat.model.add("again")
    await chat.button("Regenerate").click()
    await expect(chat.answers.get_by_role("group", name="Versions")).to_have_text("2/2")
    await chat.button("Previous version").click()
    await expect(chat.answers.get_by_role("group", name="Versions")).to_have_text("1/2")
    await chat.answers.locator("summary").first.click()
    chat.model.add([call("delete_report", {"title": "Q3"})])
    await chat.say("delete it")
    await expect(chat.button("Approve")).to_be_visible()


async def findings(page: Page) -> list[str]:
    """What axe-core calls serious or critical."""
    await page.evaluate(AXE.read_text())
    found: dict[str, Any] = await page.evaluate("axe.run(document)")
    assert found["passes"], "axe-core has looked at nothing"
    return [
        f"{each['id']}: {node['html']} {node['failureSummary']}"
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_axe_has_no_serious_finding(chat: ChatPage, theme: Any, width: int):
    await chat.page.emulate_media(color_scheme=theme, reduced_motion="reduce")
    await chat.page.set_viewport_size({"width": width, "height": 844})
    assert await findings(chat.page) == []
    await show_everything(chat)
    await expect(chat.page.locator("html")).to_have_attribute("data-theme", theme)
    assert await findings(chat.page) == []
    if width < 800:
        await chat.button("Conversations").click()
        await expect(chat.page.get_by_role("complementary")).to_be_visible()
        assert await findings(chat.page) == []


async def test_markdown_becomes_headings_lists_tables_and_code(chat: ChatPage):
    await chat.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    chat.model.add(MARKDOWN)
    await chat.say("show me")
    await chat.settled()
    answer = chat.answers
    await expect(answer.get_by_role("heading", name="A title")).to_be_visible()
    await expect(answer.get_by_role("listitem")).to_have_text(["one", "two"])
    await expect(answer.get_by_role("cell", name="grey")).to_be_visible()
    await expect(answer.locator(".language")).to_have_text("python")
    await expect(answer.locator("pre .t-word").first).to_have_text("def")
    await answer.get_by_role("button", name="Copy code").click()
    await expect(answer.get_by_role("button", name="Copied")).to_be_visible()
    assert await chat.page.evaluate("navigator.clipboard.readText()") == CODE


async def test_markdown_that_is_cut_into_blocks_stays_whole(chat: ChatPage):
    """The page parses block by block: lists, their code, and links defined elsewhere."""
    chat.model.add(WOVEN)
    await chat.say("show me")
    await chat.settled()
    answer = chat.answers
    await expect(answer.locator("ol")).to_have_count(1)
    await expect(answer.locator("ol > li")).to_have_count(3)
    await expect(answer.locator("ol .code code")).to_have_text("pip install\n\nthis")
    link = answer.get_by_role("link", name="the manual")
    await expect(link).to_have_attribute("href", "https://example.com/manual")
    await expect(answer.locator(".code code").last).to_have_text("[x]: not a link\n\n- not a list")


async def test_a_picture_from_elsewhere_is_only_a_link(chat: ChatPage):
    """The page asks no other server for anything: it would tell what is being read."""
    asked: list[str] = []
    chat.page.on("request", lambda request: asked.append(request.url))
    chat.model.add(MARKDOWN)
    await chat.say("show me")
    await expect(chat.answers.get_by_role("link", name="a picture")).to_be_visible()
    await chat.settled()
    assert [url for url in asked if "example.com" in url] == []
    await expect(chat.answers.locator("img")).to_have_count(0)


async def test_an_answer_is_copied_as_markdown(chat: ChatPage):
    await chat.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    chat.model.add("some **bold** words")
    await chat.say("hello")
    await chat.settled()
    await chat.answers.get_by_role("button", name="Copy answer").click()
    await expect(chat.answers.get_by_role("button", name="Copied")).to_be_visible()
    assert await chat.page.evaluate("navigator.clipboard.readText()") == "some **bold** words"


async def test_the_colours_follow_the_system_until_the_reader_chooses(chat: ChatPage):
    html = chat.page.locator("html")
    await chat.page.emulate_media(color_scheme="dark")
    await expect(html).to_have_attribute("data-theme", "dark")
    await chat.page.get_by_role("radio", name="Light").check()
    await expect(html).to_have_attribute("data-theme", "light")
    await chat.page.reload()
    await expect(html).to_have_attribute("data-theme", "light")
    await chat.page.get_by_role("radio", name="Like the system").check()
    await expect(html).to_have_attribute("data-theme", "dark")


async def test_everything_works_from_the_keyboard(chat: ChatPage):
    keyboard = chat.page.keyboard
    gate = Gate()
    chat.model.add([text("an endless story"), gate, text("never")], "an answer")
    await expect(chat.field).to_be_focused()
    await keyboard.type("first line")
    await keyboard.press("Shift+Enter")
    await keyboard.type("second line")
    await keyboard.press("Enter")
    await expect(chat.asked.locator(".bubble")).to_have_text("first line\nsecond line")
    await gate.reached()
    await keyboard.press("Escape")
    await chat.settled()
    await expect(chat.field).to_be_focused()
    await chat.button("Regenerate").focus()
    await keyboard.press("Enter")
    await expect(chat.page.get_by_text("an answer")).to_be_visible()
    await chat.settled()
    chat.model.add([call("delete_report", {"title": "Q3"})], "gone")
    await chat.say("delete it")
    await expect(chat.button("Approve")).to_be_visible()
    while not await chat.button("Approve").evaluate("button => button.matches(':focus-visible')"):
        await keyboard.press("Shift+Tab")
    await keyboard.press("Space")
    await expect(chat.page.get_by_text("gone", exact=True)).to_be_visible()
    await chat.settled()


async def test_on_a_phone_nothing_is_wider_than_the_screen(chat: ChatPage):
    await chat.page.set_viewport_size({"width": 390, "height": 844})
    long_word = "Donaudampfschifffahrtsgesellschaft" * 4
    chat.model.add(f"{MARKDOWN}\n\n{long_word}\n\n```\n{'x' * 300}\n```")
    await chat.say(long_word)
    await chat.settled()
    assert await chat.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert await chat.view.evaluate("box => box.scrollWidth") <= 390


async def test_the_page_works_where_the_app_is_mounted(browser: Browser):
    """spec/01 §1.1: any path, nothing else configured."""
    page = await (await browser.new_context()).new_page()
    async with chatting(page, mounted_at="/deep/down") as chat:
        await chat.exchange("hello", "from below")
        await page.reload()
        await expect(chat.answers.locator(".prose")).to_have_text("from below")
