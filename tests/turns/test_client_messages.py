"""What a client sends that is not part of the protocol goes to the app (spec/01 §3.3, case 14)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.turns.support import running
from tests.turns.test_connections import Room, receive
from tests.turns.test_rpc import result
from thinkwell import Connection, Think, rpc
from thinkwell.agent import connections


class TestTheAppsOwnMessages:
    @pytest.mark.parametrize(
        "data", ["not json", "null", "[1]", "7", '{"type":"x"}', '{"no":"type"}', b"\x00\xff"]
    )
    async def test_3_3_what_is_not_protocol_reaches_the_app_as_it_came(self, data: str | bytes):
        async with running(Room) as stage:
            client = await stage.connect()
            await receive(client, data)
            await stage.agent.diary.until("end")
            assert stage.agent.diary == [f"begin {data!r}", f"end {data!r}"]

    async def test_they_reach_it_one_after_the_other_beside_everything_else(self):
        async with running(Room) as stage:
            client = await stage.connect()
            stage.agent.gate.clear()
            for data in "abc":
                await receive(client, data)
            assert await result(client, "echo", 1) == 1
            assert stage.agent.diary == ["begin 'a'"]
            stage.agent.gate.set()
            await stage.agent.diary.until("end 'c'")
            expected = [f"{when} {data!r}" for data in "abc" for when in ("begin", "end")]
            assert stage.agent.diary == expected

    async def test_one_that_raises_goes_to_on_error_and_the_next_one_is_read(self):
        async with running(Room) as stage:
            client = await stage.connect("a")
            await receive(client, "bad")
            await receive(client, "good")
            await stage.agent.diary.until("end 'good'")
            assert "error cannot read this a" in stage.agent.diary

    async def test_an_on_error_that_raises_breaks_nothing(self):
        class Worse(Room):
            async def on_error(self, error: Exception, connection: Connection | None) -> None:
                raise RuntimeError("and this too")

        async with running(Worse) as stage:
            client = await stage.connect()
            await receive(client, "bad")
            await receive(client, "good")
            await stage.agent.diary.until("end 'good'")

    async def test_too_many_that_wait_are_dropped(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(connections, "MOST_UNDER_WAY", 2)
        async with running(Room) as stage:
            client = await stage.connect()
            stage.agent.gate.clear()
            for data in "abc":
                await receive(client, data)
            stage.agent.gate.set()
            await stage.agent.diary.until("end 'b'")
            assert "begin 'c'" not in stage.agent.diary

    async def test_an_agent_that_does_not_listen_is_not_disturbed(self):
        class Deaf(Think):
            @rpc
            def echo(self, value: Any) -> Any:
                return value

        async with running(Deaf) as stage:
            client = await stage.connect()
            await receive(client, "hello?")
            assert await result(client, "echo", 1) == 1

    async def test_the_app_knows_whose_message_it_reads(self):
        class Knows(Room):
            async def on_client_message(self, connection: Connection, data: str | bytes) -> None:
                self.diary.append(f"{self.caller is connection} {connection.id}")

        async with running(Knows) as stage:
            await receive(await stage.connect("a"), "hi")
            await stage.agent.diary.until("True a")
