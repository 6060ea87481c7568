"""Nothing that is stored breaks the page, and nothing that is said keeps it from answering."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.browser.page_support import Backstage, ChatPage, app_with, chatting
from tests.wire.serving import serving
from thinkwell.messages.message import UIMessage, user_message
from thinkwell.testing import text

pytestmark = pytest.mark.browser
QUIET = "A part of this message cannot be shown."
PARTS: dict[str, Any] = {
    "null": None,
    "a string": "words",
    "a list": [{"type": "text"}],
    "no type": {"text": "words"},
    "text without text": {"type": "text"},
    "text that is an object": {"type": "text", "text": {"a": 1}},
    "reasoning without text": {"type": "reasoning", "text": None},
    "a file without a kind": {"type": "file", "url": "data:,"},
    "a file named by an object": {
        "type": "file",
        "mediaType": "text/plain",
        "url": "data:,",
        "filename": {"a": 1},
    },
    "a source without an address": {"type": "source-url", "sourceId": "s"},
    "a call without an id": {"type": "tool-x", "state": "output-available", "input": {}},
    "a call in no state": {"type": "tool-x", "toolCallId": "c", "state": "strange"},
    "an approval without its id": {
        "type": "tool-x",
        "toolCallId": "c",
        "state": "approval-requested",
        "input": {},
    },
    "a dynamic call without a name": {
        "type": "dynamic-tool",
        "toolCallId": "c",
        "state": "output-available",
    },
}


async def store_answer(path: Path, parts: list[Any]) -> None:
    """An answer as an older version, an import or a damaged disk may have left it."""
    app = app_with(Backstage(), f"sqlite:///{path}")
    async with app:
        agent: Any = app.agent(app.agents[0], "default")
        await agent.add_messages(
            [user_message("q", "asked"), assistant_message("a", "in its place")]
        )
    content = {"id": "a", "role": "assistant", "parts": parts}
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE messages SET content = ? WHERE id = 'a'", [json.dumps(content)])


def assistant_message(message_id: str, words: str) -> UIMessage:
    return {"id": message_id, "role": "assistant", "parts": [{"type": "text", "text": words}]}


FOR_THE_PAGE = (
    "a file without a kind",
    "a file named by an object",
    "a source without an address",
    "a call in no state",
    "an approval without its id",
    "a dynamic call without a name",
)


@asynccontextmanager
async def served(page: Page, path: Path) -> AsyncIterator[ChatPage]:
    backstage = Backstage()
    app = app_with(backstage, f"sqlite:///{path}")
    async with app, serving(app) as url:
        await page.goto(url)
        yield ChatPage(page, backstage)
        await page.goto("about:blank")


@pytest.mark.parametrize("kind", [*PARTS, "all at once"])
async def test_a_malformed_part_does_not_break_the_page(page: Page, tmp_path: Path, kind: str):
    """The server leaves out what is no part at all; what only the page minds is a quiet line."""
    path = tmp_path / "malformed.db"
    broken = [PARTS[kind]] if kind in PARTS else [*PARTS.values()]
    await store_answer(path, [*broken, {"type": "text", "text": "sound words"}])
    async with served(page, path) as chat:
        await expect(chat.page.get_by_text("sound words", exact=True)).to_be_visible()
        await chat.settled()
        if kind in FOR_THE_PAGE:
            await expect(chat.answers.get_by_text(QUIET)).to_be_visible()
        await chat.exchange("still there?", "of course")


async def test_parts_that_arrive_malformed_are_quiet_lines(page: Page, tmp_path: Path):
    """Whatever a server sends: the page reads every message before the hook does."""
    path = tmp_path / "malformed.db"
    await store_answer(path, [{"type": "text", "text": "sound words"}])
    answer = {"id": "a", "role": "assistant", "parts": [*PARTS.values()]}
    await page.route("**/get-messages*", lambda route: route.fulfill(json=[answer]))
    await page.route_web_socket("**/agents/**", lambda socket: None)
    async with served(page, path) as chat:
        await expect(chat.answers.get_by_text(QUIET)).to_have_count(len(PARTS))


@pytest.mark.parametrize("marks", ["*_", "[", ">", "```a", "*a_\n"])
async def test_100_kb_of_marks_are_shown_and_the_page_still_answers(page: Page, marks: str):
    async with chatting(page) as chat:
        chat.model.add([text(marks * (100_000 // len(marks)))])
        await chat.say("go")
        await chat.settled()
        await chat.exchange("still there?", "of course")
