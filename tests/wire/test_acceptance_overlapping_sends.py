"""Questions that overlap answers: every one of them and its answer stay on the path (DESIGN §8.13).

A client sends its whole list, with as much of a growing answer as it has seen. Here the frames are
sent as a client behind a slow line sends them: `q2` before it has heard of `q1`'s answer, `q3`
while that streams.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.http.support import Client, talking
from tests.wire.room import room
from thinkwell.messages.message import UIMessage, text_of, user_message
from thinkwell.testing import pause, text

MANY = 20


def growing(start: dict[str, Any], said: str) -> UIMessage:
    """A client's copy of an answer that still streams."""
    parts = [{"type": "step-start"}, {"type": "text", "text": said, "state": "streaming"}]
    return {"id": start["messageId"], "role": "assistant", "parts": parts}


async def test_a_question_before_the_first_start_and_one_while_the_answer_streams():
    first, words = pause(), pause()
    async with room([first, text("a"), words, text("1")], "a2", "a3") as r:
        tab = await r.tab("R")
        u1, u2, u3 = (user_message(f"u{n}", f"q{n}") for n in (1, 2, 3))
        await tab.request("q1", [u1])
        await first.reached()
        await tab.request("q2", [u1, u2])
        first.open()
        stream = await tab.part("q1")
        partial = growing(stream.chunks[0], "a")
        await tab.request("q3", [u1, u2, partial, u3])
        await tab.before_now()
        words.open()
        await tab.until("use_chat_response", id="q3", done=True)
        assert await r.texts() == ["q1", "a1", "q2", "a2", "q3", "a3"]


async def test_a_question_below_a_copy_of_the_growing_answer():
    """The copy is a reference: it is neither stored nor does the question hang below it."""
    words = pause()
    async with room([text("a"), words, text("1")], "a2", "a3") as r:
        tab, other = await r.tabs()
        u1, u2, u3 = (user_message(f"u{n}", f"q{n}") for n in (1, 2, 3))
        await tab.request("q1", [u1])
        stream = await tab.part("q1")
        partial = growing(stream.chunks[0], "a")
        await tab.request("q2", [u1, partial, u2])
        await other.request("q3", [u1, {**partial, "id": "made-here"}, u2, u3])
        await other.before_now()
        words.open()
        await other.until("use_chat_response", id="q3", done=True)
        assert await r.texts() == ["q1", "a1", "q2", "a2", "q3", "a3"]


@pytest.mark.parametrize("heard", [0, 1, 2])
async def test_many_questions_close_together_are_all_answered_in_order(heard: int):
    """`heard`: how many answers of which the client has seen the beginning it repeats."""
    words = pause()
    steps = [[text("a"), words, text("0")], *(f"a{n}" for n in range(1, MANY))]
    async with room(*steps) as r:
        tab = await r.tab("R")
        shown: list[UIMessage] = [user_message("u0", "q0")]
        await tab.request("q0", shown)
        stream = await tab.part("q0")
        for number in range(1, MANY):
            if number % 7 < heard:
                shown = [m for m in shown if m["role"] == "user"]
                shown.append(growing(stream.chunks[0], "a"))
            shown.append(user_message(f"u{number}", f"q{number}"))
            await tab.request(f"q{number}", shown)
        await tab.before_now()
        words.open()
        await tab.until("use_chat_response", id=f"q{MANY - 1}", done=True)
        assert await r.texts() == [f"{who}{n}" for n in range(MANY) for who in "qa"]


async def test_over_http_a_question_below_a_copy_of_the_growing_answer():
    first, words = pause(), pause()
    async with talking([first, text("a"), words, text("1")], "a2", "a3") as client:
        one = await client.send("q1")
        await first.reached()
        two = await client.send("q2")
        first.open()
        await one.until("text-end")
        client.shown.append(growing(one.chunks[0], "a"))
        three = await client.send("q3")
        words.open()
        for stream in (one, two, three):
            await stream.read()
        assert await texts(client) == ["q1", "a1", "q2", "a2", "q3", "a3"]


async def test_over_http_many_questions_close_together_are_all_answered_in_order():
    words = pause()
    steps = [[text("a"), words, text("0")], *(f"a{n}" for n in range(1, MANY))]
    async with talking(*steps) as client:
        streams = [await client.send("q0")]
        await streams[0].until("text-end")
        for number in range(1, MANY):
            if number % 3 == 0:
                client.shown = [m for m in client.shown if m["role"] == "user"]
                client.shown.append(growing(streams[0].chunks[0], "a"))
            streams.append(await client.send(f"q{number}"))
        words.open()
        await asyncio.gather(*(stream.read() for stream in streams))
        assert await texts(client) == [f"{who}{n}" for n in range(MANY) for who in "qa"]


async def test_several_messages_nobody_knows_are_all_new_in_order():
    async with room("both", "more") as r:
        tab = await r.tab("R")
        listed = [user_message("u1", "one"), user_message("u2", "two")]
        await tab.request("q1", listed)
        await tab.stream("q1")
        assert await r.texts() == ["one", "two", "both"]


async def test_a_list_from_before_a_clear_stays_deleted_whatever_is_asked_after_it():
    async with room("a1", "a2", "a3") as r:
        tab, other = await r.tabs()
        await tab.ask("old")
        await tab.stream()
        old = await r.messages()
        await other.clear()
        await other.before_now()
        for number in (2, 3):
            old.append(user_message(f"u{number}", f"new {number}"))
            await tab.request(f"q{number}", old)
            await tab.stream(f"q{number}")
        assert await r.texts() == ["new 2", "a2", "new 3", "a3"]


async def texts(client: Client) -> list[str]:
    return [text_of(message) for message in await client.stored()]
