"""Large answers and large lists: what clients saw is stored, whatever its size (spec/03 §11)."""

from __future__ import annotations

import pytest

from tests.turns.support import folded, running
from thinkwell import Think
from thinkwell.messages.message import text_of, user_message
from thinkwell.models.base import TextDelta, TextStart
from thinkwell.store.sqlite import SqliteStore
from thinkwell.testing import text
from thinkwell.turn.run import model_call

PIECE = "Nine megabytes of words, all of them seen by the client. " * 1_000
PIECES = 160


class Plain(Think):
    pass


class TestStoredWhole:
    async def test_nine_megabytes_are_stored_as_they_were_told(self, tmp_path):
        path = tmp_path / "thinkwell.db"
        long = text(*([PIECE] * PIECES))
        async with running(Plain, [long], "and on", store=SqliteStore(path)) as stage:
            client = await stage.connect()
            await client.ask("Tell me everything")
            await client.until_end()
            told = text_of(folded(client.chunks()))
            assert len(told) > 9_000_000
            assert text_of(await stage.answer()) == told
        async with running(Plain, "and on", store=SqliteStore(path)) as stage:
            assert text_of(await stage.answer()) == told
            late = await stage.connect("late")
            assert text_of(late.transcript()[-1]) == told

    async def test_the_model_reads_it_shortened(self):
        async with running(Plain, [text(*([PIECE] * PIECES))], "and on") as stage:
            await stage.agent.run("Tell me everything")
            await stage.agent.run("And?")
            sent = repr(stage.model.requests[-1].messages)
            assert "Nine megabytes" in sent
            assert len(sent) < 20_000


class TestTheLimit:
    @pytest.fixture(autouse=True)
    def small(self, monkeypatch):
        monkeypatch.setattr(model_call, "MAX_STREAM", 20_000)

    async def test_the_answer_ends_with_length_and_nothing_told_is_lost(self):
        async with running(Plain, [text(*["word " * 100] * 100)]) as stage:
            client = await stage.connect()
            await client.ask("Tell me everything")
            await client.until_end()
            told = folded(client.chunks())
            stored = await stage.answer()
            assert (text_of(told), told["parts"][-1]["state"]) == (text_of(stored), "done")
            assert 10_000 < len(text_of(stored)) < 20_000
            turn = await stage.agent.get_turn("q1")
            assert turn is not None
            assert (turn.status, turn.stop_reason) == ("completed", "length")

    async def test_a_continuation_counts_what_is_there(self):
        steps = [text(*["word " * 100] * 30)], [TextStart("t"), TextDelta("t", "w " * 900)] * 9
        async with running(Plain, *steps) as stage:
            await stage.agent.run("Tell me everything")
            result = await stage.agent.continue_last_turn()
            assert result is not None
            assert result.stop_reason == "length"


class TestHowMuchAtOnce:
    async def test_more_new_messages_than_one_transaction_should_take_are_refused(self):
        """Storing them would hold up every other agent."""
        async with running(Plain, "fine") as stage:
            client = await stage.connect()
            await client.request("q1", messages=[user_message(f"u{n}", "x") for n in range(501)])
            end = await client.until_end("q1")
            assert "501 new messages" in end["body"]
            assert await stage.messages() == []
            await client.request("q2", messages=[user_message(f"u{n}", "x") for n in range(3)])
            await client.until_end("q2")
            assert len(await stage.messages()) == 4
