"""Clients are told that a turn was cut and is taken up again (spec/01 §2.4, §12.1, case 66)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.turns.support import Client, Stage, running
from tests.turns.test_client_tools import idle
from thinkwell import ChatRecovery, Think, TurnConfig
from thinkwell.messages.message import text_of
from thinkwell.store.sqlite import SqliteStore
from thinkwell.testing import Gate, pause, text

RECOVERING = "cf_agent_chat_recovering"
YES = {"type": RECOVERING, "recovering": True, "id": "q1"}
NO = {"type": RECOVERING, "recovering": False, "id": "q1"}


class Patient(Think):
    """Its first attempts stall soon; the attempt after them may take its time."""

    time_limits = {"grace": 0.0}
    stalls = 1
    patience = 0.3

    def before_turn(self, ctx: Any) -> TurnConfig:
        return TurnConfig(
            chat_stream_stall_timeout=self.patience if ctx.attempt < self.stalls else 0
        )


def hints(client: Client) -> list[dict[str, Any]]:
    return [frame for frame in client.frames if frame["type"] == RECOVERING]


async def stalled(stage: Stage[Any], gate: Gate, client_id: str = "tab") -> Client:
    """A client whose turn has stalled and stands at the gate of its next attempt."""
    client = await stage.connect(client_id)
    await client.ask("hi")
    await gate.reached()
    return client


class TestAStall:
    async def test_12_1_it_is_said_when_the_turn_begins_anew_and_taken_back_when_it_streams(self):
        gate = pause()
        async with running(Patient, [text("Hel"), pause()], [gate, "lo"]) as stage:
            client = await stalled(stage, gate)
            assert hints(client) == [YES]
            gate.open()
            await client.until_end()
            assert hints(client) == [YES, NO]
            kinds = [frame["type"] for frame in client.frames]
            last_hint = len(kinds) - kinds[::-1].index(RECOVERING)
            assert "cf_agent_use_chat_response" in kinds[last_hint:]
            assert text_of(await stage.answer()) == "Hello"

    async def test_12_1_it_is_said_once_however_often_the_turn_begins_anew(self):
        class Slower(Patient):
            stalls = 3
            patience = 0.02

        gate = pause()
        async with running(Slower, *([pause()] for _ in range(3)), [gate, "hi"]) as stage:
            client = await stalled(stage, gate)
            assert hints(client) == [YES]
            assert len(stage.fields("chat:stream:stalled")) == 3
            gate.open()
            await client.until_end()
            assert hints(client) == [YES, NO]
            recovered = stage.fields("chat:recovery:attempt")
            assert [each["attempt"] for each in recovered] == [2, 3, 4]
            assert stage.fields("chat:recovery:exhausted") == []

    async def test_12_1_a_turn_that_is_given_up_takes_it_back(self):
        class Hopeless(Patient):
            stalls = 100
            patience = 0.02
            chat_recovery = ChatRecovery(max_attempts=1)

        async with running(Hopeless, *([pause()] for _ in range(3))) as stage:
            client = await stage.connect()
            await client.ask("hi")
            end = await client.until_end()
            assert (end["error"], hints(client)) == (True, [YES, NO])

    async def test_12_1_a_stop_takes_it_back(self):
        gate = pause()
        async with running(Patient, [pause()], [gate]) as stage:
            client = await stalled(stage, gate)
            await client.send(type="cf_agent_chat_request_cancel", id="q1")
            await client.until_end()
            assert hints(client) == [YES, NO]

    async def test_12_1_a_clear_takes_it_back(self):
        gate = pause()
        async with running(Patient, [pause()], [gate], "fresh") as stage:
            client = await stalled(stage, gate)
            await client.send(type="cf_agent_chat_clear")
            assert hints(client) == [YES, NO]
            later = await stage.connect("later")
            assert hints(later) == [NO]

    async def test_a_turn_that_goes_well_says_nothing(self):
        async with running(Patient, "hi") as stage:
            client = await stage.connect()
            await client.ask("hello")
            await client.until_end()
            assert hints(client) == []


class TestWhoeverConnectsMeanwhile:
    async def test_case_66_a_cut_stream_is_offered_and_the_hint_comes_with_its_replay(
        self,
    ):
        gate = pause()
        async with running(Patient, [text("Hel"), pause()], [gate, "lo"]) as stage:
            await stalled(stage, gate, "first")
            client = await stage.connect("second")
            assert (client.frames[0]["type"], hints(client)) == ("cf_agent_stream_resuming", [])
            await client.send(type="cf_agent_stream_resume_ack", id="q1")
            assert client.frames[-2:][0]["replayComplete"] is True
            assert client.frames[-1] == YES
            gate.open()
            await client.until_end()
            assert hints(client) == [YES, NO]

    async def test_12_1_it_is_told_that_this_is_over_once_the_turn_streams_again(self):
        """It may be a page that was told the opposite before its line broke."""
        gate, wall = pause(), pause()
        async with running(Patient, [text("Hel"), pause()], [gate, text("lo"), wall]) as stage:
            first = await stalled(stage, gate, "first")
            gate.open()
            await first.until(lambda frame: frame == NO)
            client = await stage.connect("second")
            await client.send(type="cf_agent_stream_resume_ack", id="q1")
            await client.send(type="cf_agent_stream_resume_ack", id="q1")
            wall.open()
            await client.until_end()
            assert hints(client) == [NO]

    async def test_12_1_an_offer_that_is_never_taken_holds_it_back_until_the_end_at_most(self):
        gate = pause()
        async with running(Patient, [text("Hel"), pause()], [gate, "lo"]) as stage:
            client = await stalled(stage, gate)
            await client.send(type="cf_agent_stream_resume_request")
            gate.open()
            await client.until(lambda frame: frame == NO)
            assert hints(client) == [YES, NO]


class TestARestart:
    async def test_12_1_the_next_host_says_it_until_the_turn_streams(self, tmp_path: Path):
        wall, gate = pause(), pause()
        path = tmp_path / "x.db"
        async with running(Think, [text("Hel"), wall], store=SqliteStore(path), drain=0.0) as stage:
            client = await stage.connect()
            await client.ask("hi")
            await client.until(lambda frame: "text-delta" in frame.get("body", ""))
        async with running(Think, [gate, "lo"], store=SqliteStore(path)) as stage:
            await gate.reached()
            client = await stage.connect()
            assert client.frames[0] == {"type": "cf_agent_stream_resuming", "id": "q1"}
            await client.send(type="cf_agent_stream_resume_ack", id="q1")
            assert hints(client) == [YES]
            gate.open()
            await client.until_end()
            assert hints(client) == [YES, NO]
            assert text_of(await stage.answer()) == "Hello"

    async def test_2_4_before_anything_streamed_it_follows_the_transcript(self, tmp_path: Path):
        path = tmp_path / "x.db"
        async with running(Held, store=SqliteStore(path), drain=0.0) as stage:
            await (await stage.connect()).ask("hi")
            await stage.agent.gate.reached()
        async with running(Held, "hello", store=SqliteStore(path)) as stage:
            await stage.agent.gate.reached()
            client = await stage.connect()
            kinds = [frame["type"] for frame in client.frames]
            assert kinds[:3] == ["cf_agent_stream_pending", "cf_agent_chat_messages", RECOVERING]
            assert hints(client) == [YES]
            stage.agent.gate.open()
            await client.until(lambda frame: frame["type"] == "cf_agent_stream_resuming")
            await client.send(type="cf_agent_stream_resume_ack", id="q1")
            await client.until_end()

    async def test_12_1_a_turn_that_had_not_begun_is_not_recovering(self, tmp_path: Path):
        path = tmp_path / "x.db"
        async with running(Held, store=SqliteStore(path), drain=0.0) as stage:
            client = await stage.connect()
            await client.ask("first")
            await stage.agent.gate.reached()
            await client.ask("second", "q2")
        async with running(Held, "one", "two", store=SqliteStore(path)) as stage:
            client = await stage.connect()
            stage.agent.gate.open()
            await idle(stage)
            assert {hint["id"] for hint in hints(client)} == {"q1"}
            assert [text_of(m) for m in await stage.messages()] == ["first", "one", "second", "two"]


class Held(Think):
    """Holds its turns at a gate before the model is asked."""

    async def on_start(self) -> None:
        self.gate = pause()

    async def before_turn(self, ctx: Any) -> None:
        await self.gate.pass_through(ctx.abort_signal)
