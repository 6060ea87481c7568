"""What a parked turn tells, and whom (DESIGN §8.16). `tests/crash/test_parking.py` really kills;
here a copy of the database stands for what a dead process left.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.turns.support import running
from thinkwell import Think
from thinkwell.messages.message import text_of
from thinkwell.store.read_only import ReadOnlySqlite
from thinkwell.store.sqlite import SqliteStore
from thinkwell.testing import pause, text


class Told(Think):
    """Writes down which of its hooks were called."""

    def on_chat_error(self, error: Any, ctx: Any) -> None:
        heard.append("on_chat_error")

    def on_chunk(self, ctx: Any) -> None:
        heard.append("on_chunk")

    def on_chat_response(self, ctx: Any) -> None:
        heard.append(f"on_chat_response {ctx.status} {ctx.stop_reason}")


heard: list[str] = []


async def life(folder: Path, number: int) -> None:
    """One life of the process, whose model says nothing (in the first: one word), and its death."""
    gate = pause()
    steps = [text("Well"), gate] if number == 0 else [gate]
    async with running(Told, steps, store=SqliteStore(folder / f"{number}.db"), drain=0.0) as stage:
        if number == 0:
            client = await stage.connect()
            await client.ask("hi", "t")
            await client.until(lambda frame: "Well" in str(frame.get("body")))
        await gate.reached()
        with ReadOnlySqlite(folder / f"{number}.db") as left:
            left.copy_to(folder / f"{number + 1}.db")


async def test_it_keeps_question_and_answer_and_tells_the_bus_and_the_end_but_no_other_hook(
    tmp_path: Path,
):
    for number in range(3):
        await life(tmp_path, number)
    heard.clear()
    async with running(Told, "again", store=SqliteStore(tmp_path / "3.db")) as stage:
        assert await stage.agent.wait_until_stable(timeout=10)
        turn = await stage.agent.get_turn("t")
        assert turn is not None
        assert (turn.status, turn.stop_reason) == ("error", "parked")
        while not heard:
            await asyncio.sleep(0)
        assert heard == ["on_chat_response error parked"]
        (told,) = stage.fields("chat:turn:parked")
        assert (told["request_id"], told["places"], told["deaths"]) == ("t", ("model",), 3)
        assert stage.model.requests == []
        assert [text_of(m) for m in await stage.agent.get_messages()] == ["hi", "Well"]
        assert (await stage.agent.run("still there?")).text == "again"


async def test_whoever_comes_later_reads_that_it_was_set_aside_and_not_to_try_again(tmp_path: Path):
    for number in range(3):
        await life(tmp_path, number)
    async with running(Told, store=SqliteStore(tmp_path / "3.db")) as stage:
        assert await stage.agent.wait_until_stable(timeout=10)
        client = await stage.connect()
        await client.send(type="cf_agent_stream_resume_request")
        await client.send(type="cf_agent_stream_resume_ack", id="t")
        end = await client.until_end("t")
        assert (end["error"], "The operator can retry it." in end["body"]) == (True, True)
