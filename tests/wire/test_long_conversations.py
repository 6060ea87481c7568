"""Whole transcripts only where they are needed (DESIGN §8.19), and what a client that declares
`thinkwell=1` is told and may leave out.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from tests.http.support import talking
from tests.wire.client import Tab, kind_of
from tests.wire.room import Room, room, text_of
from thinkwell.messages.message import UIMessage, user_message
from thinkwell.session.history import History
from thinkwell.store.base import Reader
from thinkwell.testing import Gate, text
from thinkwell.wire import client_json

BRIEF = {"thinkwell": "1"}
OWN = "own"
"""What a tab has sent itself, among what it has heard."""


def transcripts(tab: Tab) -> list[dict[str, Any]]:
    """What a tab was told to show since its connect sequence."""
    heard = tab.heard[len(tab.greeting) :]
    return [frame for frame in heard if kind_of(frame) == "chat_messages"]


def shown_by(tab: Tab) -> list[str]:
    """The texts a client shows that reads transcripts, short ones included, and updates."""
    shown: dict[str, UIMessage] = {}
    for frame in tab.heard:
        if kind_of(frame) == "chat_messages":
            ids = list(shown)
            kept = ids.index(frame["after"]) + 1 if frame.get("after") else 0
            shown = {i: shown[i] for i in ids[:kept]} | {m["id"]: m for m in frame["messages"]}
        elif kind_of(frame) in ("message_updated", OWN):
            shown[frame["message"]["id"]] = frame["message"]
    return [text_of(message) for message in shown.values()]


async def both_hear(first: Tab, second: Tab, request: str = "q1") -> None:
    for tab in (first, second):
        await tab.stream(request)


async def seed(r: Room, count: int) -> list[UIMessage]:
    messages = [user_message(f"old-{number}", f"words {number}") for number in range(count)]
    await r.agent.add_messages(messages)
    return await r.messages()


class TestStockClients:
    async def test_the_asker_of_a_plain_turn_gets_no_transcript_the_others_one_at_acceptance(self):
        async with room("Hello", "Again") as r:
            asker, other = await r.tabs()
            await asker.ask("hi")
            await both_hear(asker, other)
            await asker.ask("more", "q2", after=await r.messages())
            await both_hear(asker, other, "q2")
            assert transcripts(asker) == []
            assert [len(frame["messages"]) for frame in transcripts(other)] == [1, 3]
            assert shown_by(other) == await r.texts() == ["hi", "Hello", "more", "Again"]

    async def test_regenerating_and_editing_show_everybody_the_transcript_at_the_end(self):
        async with room("one", "two", "three") as r:
            asker, other = await r.tabs()
            await asker.ask("hi")
            await both_hear(asker, other)
            question = (await r.messages())[0]
            await asker.regenerate("q2", [question])
            await both_hear(asker, other, "q2")
            assert [text_of(m) for m in transcripts(asker)[-1]["messages"]] == ["hi", "two"]
            changed = {**question, "parts": [{"type": "text", "text": "hey"}]}
            await asker.request("q3", [changed])
            await both_hear(asker, other, "q3")
            assert shown_by(asker) == shown_by(other) == await r.texts() == ["hey", "three"]

    async def test_a_question_sent_meanwhile_ends_with_a_transcript_for_all(self):
        gate = Gate()
        async with room([text("one"), gate], "two") as r:
            asker, other = await r.tabs()
            await asker.ask("first")
            await gate.reached()
            await asker.ask("second", "q2", after=[user_message("u-q1", "first")])
            gate.open()
            await both_hear(asker, other, "q2")
            assert shown_by(asker) == shown_by(other) == await r.texts()

    async def test_a_stopped_turn_ends_with_what_is_stored(self):
        gate = Gate()
        async with room([text("some words"), gate]) as r:
            asker, other = await r.tabs()
            await asker.ask("hi")
            await gate.reached()
            await asker.cancel()
            await both_hear(asker, other)
            assert shown_by(asker) == shown_by(other) == await r.texts() == ["hi", "some words"]

    async def test_a_client_that_shows_something_else_is_shown_the_transcript(self):
        async with room("Hello") as r:
            await seed(r, 3)
            asker = await r.tab()
            await asker.ask("hi", after=[user_message("old-0", "words 0")])
            await asker.stream()
            assert shown_by(asker) == await r.texts()

    async def test_a_tab_that_never_took_the_offer_gets_the_transcript_at_the_end(self):
        gate = Gate()
        async with room([text("Hello"), gate]) as r:
            asker = await r.tab()
            await asker.ask("hi")
            await gate.reached()
            late = await r.tab()
            gate.open()
            await asker.stream()
            await late.until("chat_messages")
            assert shown_by(late) == await r.texts()

    async def test_a_long_transcript_comes_whole(self):
        async with room() as r:
            stored = await seed(r, 2000)
            tab = await r.tab()
            assert tab.greeting[0]["messages"] == stored


class TestClientsThatDeclareIt:
    async def test_they_are_told_what_is_new(self):
        async with room("Hello") as r:
            await seed(r, 1000)
            asker, other = await r.tab(**BRIEF), await r.tab(**BRIEF)
            await send_new(asker, "q1", "old-999")
            await both_hear(asker, other)
            (frame,) = transcripts(other)
            assert frame["after"] == "old-999"
            assert [text_of(message) for message in frame["messages"]] == ["new q1"]
            assert shown_by(other) == await r.texts()

    async def test_a_turn_costs_a_tab_the_same_however_long_the_conversation_is(self):
        async with room("one", "two") as r:
            await seed(r, 1000)
            tabs = [await r.tab(**BRIEF) for _ in range(3)]
            for number in ("q1", "q2"):
                last = (await r.messages())[-1]["id"]
                await send_new(tabs[0], number, last)
                for tab in tabs:
                    await tab.stream(number)
            for tab in tabs:
                assert len(json.dumps(tab.heard[len(tab.greeting) :])) < 16_000
                assert transcripts(tabs[0]) == []

    async def test_they_send_only_what_is_new(self):
        async with room("Hello") as r:
            await seed(r, 3)
            asker = await r.tab(**BRIEF)
            await send_new(asker, "q1", "old-2")
            await asker.stream()
            assert transcripts(asker) == []
            assert await r.texts() == ["words 0", "words 1", "words 2", "new q1", "Hello"]

    async def test_regenerating_needs_the_question_only_and_replaces_the_end(self):
        async with room("one", "two") as r:
            await seed(r, 600)
            asker, other = await r.tab(**BRIEF), await r.tab(**BRIEF)
            await send_new(asker, "q1", "old-599")
            await both_hear(asker, other)
            await asker.regenerate("q2", [user_message("u-q1", "new q1")])
            await both_hear(asker, other, "q2")
            for tab in (asker, other):
                assert transcripts(tab)[-1]["after"] == "u-q1"
                assert shown_by(tab)[-2:] == ["new q1", "two"]
            assert shown_by(other) == await r.texts()

    async def test_another_branch_far_above_is_shown_from_where_it_leaves(self):
        async with room("one") as r:
            await seed(r, 1500)
            tab, other = await r.tab(**BRIEF), await r.tab(**BRIEF)
            await tab.regenerate("q1", [user_message("old-700", "words 700")])
            await both_hear(tab, other, "q1")
            assert shown_by(tab) == shown_by(other) == await r.texts()
            assert transcripts(tab)[-1]["after"] == "old-700"
            assert len(await r.texts()) == 702

    async def test_a_clear_empties_them(self):
        async with room("Hello") as r:
            await seed(r, 5)
            asker, other = await r.tab(**BRIEF), await r.tab(**BRIEF)
            await asker.clear()
            await other.until("chat_clear")
            await send_new(asker, "q1", None)
            await both_hear(asker, other)
            assert await r.texts() == ["new q1", "Hello"]
            assert shown_by(other)[-2:] == ["new q1", "Hello"]


async def send_new(tab: Tab, request: str, after: str | None) -> None:
    """A chat request in the short form."""
    question = user_message(f"u-{request}", f"new {request}")
    tab.heard.append({"type": OWN, "message": question})
    body = {"messages": [question], "trigger": "submit-message"}
    init = {"method": "POST", "body": json.dumps(body)}
    await tab.send(type="cf_agent_use_chat_request", id=request, init=init, after=after)


async def test_a_long_list_of_a_stock_tab_is_a_list_of_ids_to_the_server(
    monkeypatch: pytest.MonkeyPatch,
):
    """No message that is stored becomes an object again, however long the list is."""
    async with room("Hello") as r:
        known = await seed(r, 2_000)
        tab = await r.tab()
        decoded = 0
        whole = client_json.parse_in_pieces

        def counted(*args: Any) -> Any:
            nonlocal decoded
            decoded += 1
            return whole(*args)

        monkeypatch.setattr(client_json, "parse_in_pieces", counted)
        await tab.ask("hi", after=known)
        await tab.stream("q1")
        assert (await r.texts())[-3:] == ["words 1999", "hi", "Hello"]
        assert decoded <= client_json.LAST + 2  # and the fields beside the messages


@pytest.fixture
def looked_up(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many ids were looked up inside of transactions, time by time."""
    counts: list[int] = []
    rows = History.rows

    async def counted(self: History, ids: Sequence[str], reader: Reader | None = None) -> Any:
        if reader is not None:
            counts.append(len(ids))
        return await rows(self, ids, reader)

    monkeypatch.setattr(History, "rows", counted)
    return counts


class TestIdsOfALongListAreLookedUpOutsideOfTheWriteTransaction:
    async def test_over_a_socket(self, looked_up: list[int]):
        async with room("Hello") as r:
            known = await seed(r, 1_500)
            tab = await r.tab()
            looked_up.clear()
            await tab.ask("hi", after=known)
            await tab.stream("q1")
            assert (await r.texts())[-3:] == ["words 1499", "hi", "Hello"]
            assert sum(looked_up) <= 2  # the question, and where it goes

    async def test_over_http_where_nobody_watches(self, looked_up: list[int]):
        async with talking("Hello") as client:
            known = [user_message(f"old-{number}", f"words {number}") for number in range(1_500)]
            await client.app.agent(client.app.agents[0], "x").add_messages(known)
            client.shown = known
            looked_up.clear()
            await client.say("hi")
            assert [text_of(each) for each in await client.stored()][-2:] == ["hi", "Hello"]
            assert sum(looked_up) <= 2

    async def test_a_flood_of_new_ones_is_refused_before_any_is_looked_up(
        self, looked_up: list[int]
    ):
        async with room("Hello") as r:
            tab = await r.tab()
            looked_up.clear()
            await tab.request("q1", [user_message(f"m{n}", "words") for n in range(600)])
            end = (await tab.stream("q1")).end
            assert end["error"]
            assert looked_up == []
