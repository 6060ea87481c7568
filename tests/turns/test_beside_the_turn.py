"""What happens beside a turn is not lost, and nobody is left waiting (DESIGN §1, spec/02 §2.40)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.turns.support import running
from thinkwell import AbortTurn, Think, tool
from thinkwell.core.errors import NestedTurnError, StoreError
from thinkwell.journal.group_commit import GroupCommit
from thinkwell.messages.message import text_of, user_message
from thinkwell.testing import call, error
from thinkwell.tools.tool import client_tool


class Notes(Think):
    """Has a tool that writes into the conversation."""

    expose_errors = True

    @tool
    async def note(self, text: str) -> str:
        """Write a note."""
        await self.add_messages([user_message(f"n-{text}", text)])
        return "noted"


async def test_2_40_a_note_that_a_tool_adds_stays_on_the_path_before_the_answer():
    async with running(Notes, [call("note", {"text": "milk"})], "done") as stage:
        await stage.agent.run("remember milk")
        said = [text_of(message) for message in await stage.agent.get_messages()]
        assert said == ["remember milk", "milk", "done"]


async def test_2_13_a_regenerated_answer_is_a_sibling_of_the_old_one_not_its_child():
    async with running(Notes, "first", "second") as stage:
        client = await stage.connect()
        await client.ask("hi", "q1")
        await client.until_end("q1")
        asked = user_message("u-q1", "hi")
        await client.request("q2", messages=[asked], trigger="regenerate-message")
        await client.until_end("q2")
        assert [text_of(m) for m in await stage.agent.session.get_branches("u-q1")] == [
            "first",
            "second",
        ]


async def test_7_11_a_stream_that_fails_ends_with_an_error_chunk():
    async with running(Notes, [error(RuntimeError("broken"))]) as stage:
        chunks = [chunk async for chunk in stage.agent.stream("hi")]
        assert chunks[-1] == {"type": "error", "errorText": "broken"}


async def test_7_10_a_stream_that_is_stopped_ends_with_an_abort_chunk():
    def stop(_: Any) -> None:
        raise AbortTurn("enough")

    async with running(Notes, "never") as stage:
        stage.agent.add_hook("before_turn", stop)
        assert [chunk async for chunk in stage.agent.stream("hi")][-1] == {"type": "abort"}


async def test_6_8_a_request_that_cannot_be_accepted_is_answered_with_an_error(
    monkeypatch: pytest.MonkeyPatch,
):
    async def refuse(*_: Any, **__: Any) -> None:
        raise StoreError("the disk is full")

    async with running(Notes, "never") as stage:
        client = await stage.connect()
        monkeypatch.setattr(GroupCommit, "run", refuse)
        await client.ask("hi", "q1")
        (end,) = client.ends("q1")
        monkeypatch.undo()
        assert (end["error"], "disk" in end["body"]) == (True, False)


async def test_case_60_an_answer_goes_on_although_whoever_gave_it_is_cancelled():
    class Asks(Notes):
        def get_tools(self) -> Any:
            return {"locate": client_tool("locate")}

    reached, go_on = asyncio.Event(), asyncio.Event()

    async def hold(_: Any) -> None:
        reached.set()
        await go_on.wait()

    async with running(Asks, [call("locate")], "Paris it is") as stage:
        await stage.agent.run("where am I?")
        stage.agent.add_hook("after_tool_call", hold)
        answering = asyncio.ensure_future(stage.agent.add_tool_result("call-1", output="Paris"))
        await reached.wait()
        answering.cancel()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await answering
        await stage.agent.wait_until_stable()
        assert text_of(await stage.answer()) == "Paris it is"


async def test_3_4_what_another_agent_does_later_is_not_inside_the_turn_that_asked_it():
    reached = asyncio.Event()
    back: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    class Asks(Notes):
        other: Any = None

        @tool
        async def delegate(self) -> str:
            """Hand it on, and be still busy when the other comes back."""
            await self.other.submit("yours")
            await reached.wait()
            return "handed on"

    class Other(Notes):
        asker: Any = None

        async def on_chat_response(self, ctx: Any) -> None:
            reached.set()
            try:
                back.set_result((await self.asker.run("done")).text)
            except NestedTurnError as wrong:
                back.set_exception(wrong)

    async with running(Asks, [call("delegate")], "ok", "thanks") as a, running(Other, "1") as b:
        a.agent.other, b.agent.asker = b.agent, a.agent
        await a.agent.run("go")
        assert await back == "thanks"
