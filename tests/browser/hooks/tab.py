"""One browser tab on a bare page: what a person does there, and what they see."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Locator, Page, expect

LOST_LINE = "WebSocket connection to"
"""How Chromium complains about a socket that was cut off."""

SAY_FAST = """async ([words, pause]) => {
    const field = document.querySelector("input[aria-label=Message]");
    const { set } = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value");
    for (const said of words) {
        set.call(field, said);
        field.dispatchEvent(new InputEvent("input", { bubbles: true }));
        await new Promise((done) => setTimeout(done, pause));
        field.form.requestSubmit();
    }
}"""
"""Types and sends inside the page. React sees what is typed only through the native setter."""


class AnyTab(Protocol):
    """What a scenario does with a tab, whatever it runs in."""

    bundle: str
    problems: list[str]

    def forgive(self, *texts: str) -> None: ...
    async def connected(self) -> None: ...
    async def say(self, words: str) -> None: ...
    async def say_fast(self, *words: str, pause: int = 0) -> None: ...
    async def write(self, words: str) -> None: ...
    async def press(self, name: str) -> None: ...
    async def shows(self, *bubbles: str) -> None: ...
    async def rests_with(self, *bubbles: str) -> None: ...
    async def says_last(self, words: str) -> None: ...
    async def mentions(self, words: str, times: int) -> None: ...
    async def offers(self, button: str, times: int) -> None: ...
    async def alarms(self) -> None: ...
    async def label_is(self, name: str, text: str) -> None: ...
    async def status_is(self, status: str) -> None: ...
    async def becomes(self, condition: str) -> None: ...
    async def run(self, script: str, argument: Any = None) -> Any: ...
    async def reload(self) -> None: ...
    async def close(self) -> None: ...


class Tab:
    """A tab. Every error the page shows on its console counts as a problem of the test."""

    def __init__(self, page: Page, bundle: str) -> None:
        self.page = page
        self.bundle = bundle
        self.problems: list[str] = []
        self._forgiven: tuple[str, ...] = ()
        page.on("pageerror", lambda error: self._complain(str(error)))
        page.on("console", self._on_console)

    def forgive(self, *texts: str) -> None:
        """Complaints with one of these texts are part of the scenario, e.g. a lost line."""
        self._forgiven += texts

    def _on_console(self, line: ConsoleMessage) -> None:
        if line.type == "error":
            self._complain(line.text)

    def _complain(self, text: str) -> None:
        if not any(forgiven in text for forgiven in self._forgiven):
            self.problems.append(text)

    @property
    def bubbles(self) -> Locator:
        return self.page.locator("article")

    @property
    def answers(self) -> Locator:
        return self.page.locator("article[data-role=assistant]")

    @property
    def status(self) -> Locator:
        return self.page.get_by_label("Status")

    async def connected(self) -> None:
        """Wait until the page knows whom it talks to; a page without a socket knows at once."""
        await expect(
            self.page.locator("#root[data-connected], #root [data-connected]")
        ).to_have_count(1)

    async def say(self, words: str) -> None:
        await self.write(words)
        await self.press("Send")

    async def say_fast(self, *words: str, pause: int = 0) -> None:
        """Say one thing after another, with a `pause` in milliseconds, faster than `say` can."""
        await self.run(SAY_FAST, [words, pause])

    async def write(self, words: str) -> None:
        """Type into the field without sending."""
        await self.page.get_by_label("Message").fill(words)

    async def press(self, name: str) -> None:
        # Not `click()`: that waits for frames, which a tab behind another one draws once a second.
        await self.page.get_by_role("button", name=name, exact=True).dispatch_event("click")

    async def shows(self, *bubbles: str) -> None:
        """Exactly these bubbles, in this order, and nothing twice."""
        await expect(self.bubbles).to_have_text(list(bubbles))

    async def rests_with(self, *bubbles: str) -> None:
        """Exactly these bubbles, and nothing goes on any more."""
        await expect(self.status).to_have_text("ready")
        await self.shows(*bubbles)
        # Once more, because the two above are two moments.
        await expect(self.status).to_have_text("ready")

    async def says_last(self, words: str) -> None:
        """The last bubble ends with these words."""
        await expect(self.bubbles.last).to_have_text(re.compile(re.escape(words.strip()) + r"\s*$"))

    async def mentions(self, words: str, times: int) -> None:
        """So many bubbles have these words."""
        await expect(self.bubbles.filter(has_text=words)).to_have_count(times)

    async def offers(self, button: str, times: int) -> None:
        """There are so many buttons of that name."""
        buttons = self.page.get_by_role("button", name=button, exact=True)
        await expect(buttons).to_have_count(times)

    async def alarms(self) -> None:
        """It shows an error."""
        await expect(self.page.get_by_role("alert")).to_be_visible()

    async def label_is(self, name: str, text: str) -> None:
        await expect(self.page.get_by_label(name)).to_have_text(text)

    async def status_is(self, status: str) -> None:
        await expect(self.status).to_have_text(status)

    async def becomes(self, condition: str) -> None:
        """Wait until this is true in the page."""
        await self.page.wait_for_function(condition)

    async def reload(self) -> None:
        await self.page.reload()

    async def close(self) -> None:
        await self.page.close()

    async def run(self, script: str, argument: Any = None) -> Any:
        """Run a script in the page and give its value."""
        return await self.page.evaluate(script, argument)


def new_tabs(browser: Browser) -> Callable[[str, str], Awaitable[Tab]]:
    """Opens tabs that share cookies and storage; they end with the connection to the browser."""
    contexts: list[BrowserContext] = []

    async def open_tab(bundle: str, url: str) -> Tab:
        if not contexts:
            contexts.append(await browser.new_context())
        tab = Tab(await contexts[0].new_page(), bundle)
        await tab.page.goto(url)
        return tab

    return open_tab
