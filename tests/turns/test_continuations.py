"""What may come between an answer from outside and its continuation: questions, a clear, a crash.

spec/01 §11.9, case 62; spec/02 §3.11, §10.4; DESIGN §8.2.
"""

from __future__ import annotations

from pathlib import Path

from tests.turns.support import part_of, running
from tests.turns.test_client_tools import LOCATE, Guide, answer, ask, idle, results
from thinkwell.messages.message import text_of
from thinkwell.store.sqlite import SqliteStore
from thinkwell.testing import call, pause, text


class TestOtherThingsInBetween:
    async def test_10_4_a_new_question_settles_a_call_nobody_answered(self):
        async with running(Guide, [call("locate", {})], "Never mind") as stage:
            client = await stage.connect()
            await ask(stage, client)
            await client.ask("forget it", "q2")
            await client.until_end("q2")
            assert part_of((await stage.messages())[1])["state"] == "output-error"
            assert len(stage.fields("chat:transcript:repaired")) == 1

    async def test_design_8_2_a_continuation_whose_message_is_no_longer_last_is_skipped(self):
        gate = pause()
        async with running(Guide, [call("locate", {}), gate], "Later") as stage:
            client = await stage.connect()
            await client.ask("where?", clientTools=[LOCATE])
            await gate.reached()
            await client.ask("another question", "q2")
            await answer(client)
            gate.open()
            await client.until_end("q2")
            await idle(stage)
            messages = await stage.messages()
            assert part_of(messages[1])["output"] == "Paris"
            assert [text_of(m) for m in messages[2:]] == ["another question", "Later"]
            (finish,) = (f for f in stage.fields("chat:turn:finish") if f["continuation"])
            assert finish["status"] == "skipped"

    async def test_case_62_a_clear_takes_the_pending_continuation_along(self):
        gate = pause()
        async with running(Guide, [call("locate", {})], [gate, "Paris"]) as stage:
            client = await stage.connect()
            await ask(stage, client)
            await answer(client)
            await client.send(type="cf_agent_chat_clear")
            await idle(stage)
            assert await stage.messages() == []

    async def test_continue_last_turn_settles_an_open_call_in_the_answer_it_goes_on_with(self):
        async with running(Guide, [call("ask", {})], "anyway") as stage:
            await stage.agent.run("hi")
            result = await stage.agent.continue_last_turn()
            assert result.message == await stage.answer()
            assert part_of(await stage.answer())["state"] == "output-error"


class TestACrash:
    """spec/02 §3.11: an answer and its continuation are one transaction."""

    async def test_the_continuation_goes_on_at_the_next_start(self, tmp_path: Path):
        gate = pause()
        path = tmp_path / "x.db"
        steps = [[call("ask", {})], [text("Pa"), gate]]
        async with running(Guide, *steps, store=SqliteStore(path), drain=0.0) as stage:
            await stage.agent.run("where?")
            await stage.agent.add_tool_result("call-1", output="Paris")
            await gate.reached()

        class Again(Guide, name="guide"):
            pass

        async with running(Again, "ris", store=SqliteStore(path)) as stage:
            await idle(stage)
            answered = await stage.answer()
            assert (text_of(answered), part_of(answered)["output"]) == ("Paris", "Paris")
            assert len(await stage.messages()) == 2

    async def test_an_answer_to_a_turn_that_streams_is_read_back(self, tmp_path: Path):
        gate = pause()
        path = tmp_path / "x.db"
        steps = [[call("ask", {}), gate]]
        async with running(Guide, *steps, store=SqliteStore(path), drain=0.0) as stage:
            await stage.agent.submit("where?")
            await gate.reached()
            assert await stage.agent.add_tool_result("call-1", output="Paris")
        async with running(Guide, "You are in Paris", store=SqliteStore(path)) as stage:
            await idle(stage)
            assert part_of(await stage.answer())["output"] == "Paris"
            assert results(stage) == ["Paris"]
            assert len(stage.model.requests) == 1
