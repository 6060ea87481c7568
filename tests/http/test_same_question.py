"""`POST chat` with a question that is known: the same turn, its stored answer, or an edit (DESIGN
§8.1, spec/01 §14).
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.http.support import DOWN, Client, Stream, file_store, talking
from thinkwell.messages.message import text_of, user_message
from thinkwell.testing import call, error, pause, text

QUESTION = user_message("u1", "hi")


async def ask(client: Client, *messages: object) -> Stream:
    answer = await client.post("chat", {"messages": list(messages or (QUESTION,))})
    assert answer.status == 200, await answer.text()
    return Stream(answer)


async def test_while_its_turn_runs_it_is_joined_from_the_start():
    gate = pause()
    async with talking([text("on "), gate, text("ce")]) as client:
        first = await ask(client)
        await gate.reached()
        second = await ask(client)
        await second.until("text-delta")
        gate.open()
        assert await first.read() == await second.read()
        assert second.text() == "on ce"
        client.model.assert_complete()


async def test_while_its_turn_waits_it_is_joined():
    gate = pause()
    async with talking([gate, text("a0")], "a1") as client:
        before = await ask(client, user_message("u0", "first"))
        await gate.reached()
        streams = [await ask(client) for _ in range(3)]
        gate.open()
        await before.read()
        for stream in streams:
            await stream.read()
            assert stream.text() == "a1"
        client.model.assert_complete()


async def test_many_at_once_are_one_turn():
    async with talking("once") as client:
        streams = await asyncio.gather(*(ask(client) for _ in range(5)))
        for stream in streams:
            await stream.read()
            assert stream.text() == "once"
        assert len(await client.stored()) == 2
        client.model.assert_complete()


async def test_after_its_turn_the_stored_answer_is_told_again(tmp_path: Path):
    """Also when the server was started anew in between."""
    store = file_store(tmp_path)
    async with talking([text("four"), call("add", {"a": 2, "b": 2})], "!", store=store) as client:
        first = await ask(client)
        await first.read()
    async with talking(store=store) as client:
        again = await ask(client)
        await again.read()
        stored = (await client.stored())[1]
        assert again.message()["id"] == stored["id"]
        assert text_of(again.message()) == text_of(stored) == "four!"
        assert again.kinds()[-1] == "finish"
        assert len(await client.stored()) == 2


async def test_an_answer_that_goes_on_is_joined_from_its_start():
    gate = pause()
    async with talking([text("Let me. "), call("ask", {})], [gate, text("done")]) as client:
        await client.say("hi")
        client.settle("call-1", state="output-available", output="yes")
        going_on = await client.submit()
        await gate.reached()
        again = await ask(client, client.shown[0])
        gate.open()
        await going_on.read()
        await again.read()
        assert text_of(again.message()) == "Let me. done"
        client.model.assert_complete()


@pytest.mark.parametrize("said", [True, False])
async def test_after_a_failure_there_is_a_new_turn(said: bool):
    failing = [text("one "), error(DOWN)] if said else [error(DOWN)]
    async with talking(failing, "better") as client:
        first = await ask(client)
        assert (await first.read())[-1]["type"] == "error"
        again = await ask(client)
        await again.read()
        assert again.text() == "better"
        assert [text_of(message) for message in await client.stored()] == ["hi", "better"]


async def test_after_a_stop_there_is_a_new_turn():
    gate = pause()
    async with talking([text("one "), gate], "better") as client:
        first = await ask(client)
        await first.until("text-delta")
        await client.post("chat/stop")
        await first.read()
        again = await ask(client)
        await again.read()
        assert again.text() == "better"


async def test_changed_parts_are_an_edit():
    async with talking("one", "two") as client:
        await (await ask(client)).read()
        changed = await ask(client, user_message("u1", "hello"))
        await changed.read()
        assert [text_of(message) for message in await client.stored()] == ["hello", "two"]


async def test_changed_parts_of_a_question_that_waits_are_asked_after_it():
    """It has no place in the tree yet that the edit could be a sibling of."""
    gate = pause()
    async with talking([gate, text("a0")], "a1", "a2") as client:
        streams = [await ask(client, user_message("u0", "first"))]
        await gate.reached()
        streams += [await ask(client), await ask(client, user_message("u1", "changed"))]
        gate.open()
        for stream in streams:
            await stream.read()
        said = [text_of(message) for message in await client.stored()]
        assert said == ["first", "a0", "hi", "a1", "changed", "a2"]
