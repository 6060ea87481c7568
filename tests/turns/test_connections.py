"""How a connection opens, what the agent's own code may do with it, how it closes.

spec/01 §1.3.1, §2.1-2.8, §3.3, cases 3-6.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.turns.support import Client, Log, Stage, running
from tests.turns.test_rpc import call, result
from thinkwell import Agent, Connection, HttpRequest, Principal, Think, rpc
from thinkwell.host.client import AgentAddress
from thinkwell.host.host import Host
from thinkwell.store.sqlite import SqliteStore
from thinkwell.testing import ScriptedModel, pause

IDENTITY, STATE, MCP = "cf_agent_identity", "cf_agent_state", "cf_agent_mcp_servers"
CHAT = "cf_agent_chat_messages"


class Room(Think):
    """Writes down what happens to its connections."""

    async def on_start(self) -> None:
        self.diary = Log()
        self.gate = asyncio.Event()
        self.gate.set()

    def get_connection_tags(self, connection: Connection, request: HttpRequest) -> Sequence[str]:
        return [tag for tag in request.query.get("tags", "").split(",") if tag]

    def should_send_protocol_messages(self, connection: Connection, request: HttpRequest) -> bool:
        return request.query.get("quiet") is None

    def on_connect(self, connection: Connection, request: HttpRequest) -> Any:
        connection.send({"type": "welcome", "to": connection.id})

    async def on_close(self, connection: Connection, code: int, reason: str) -> None:
        self.diary.append(f"closed {connection.id} {code} {reason}")

    async def on_client_message(self, connection: Connection, data: str | bytes) -> None:
        self.diary.append(f"begin {data!r}")
        await self.gate.wait()
        if data == "bad":
            raise RuntimeError("cannot read this")
        self.diary.append(f"end {data!r}")

    async def on_error(self, error: Exception, connection: Connection | None) -> None:
        self.diary.append(f"error {error} {connection and connection.id}")

    @rpc
    async def echo(self, value: Any) -> Any:
        return value


def kinds(client: Client) -> list[str]:
    return [frame["type"] for frame in client.frames]


async def receive(client: Client, data: str | bytes) -> None:
    assert client.connection is not None
    await client.connection.receive(data)


async def close(client: Client, code: int = 1000, reason: str = "") -> None:
    assert client.connection is not None
    await client.connection.close(code, reason)


@asynccontextmanager
async def running_plain(cls: type[Agent]) -> AsyncIterator[Stage[Any]]:
    """An agent without chat."""
    host = Host([cls], SqliteStore(":memory:"))
    await host.start()
    try:
        activation = await host.agent(AgentAddress(cls.agent_class, "x"))
        agent: Any = activation.agent
        yield Stage(host, agent, ScriptedModel(), Log())
    finally:
        await host.stop()


class TestTheOrderOfThings:
    async def test_2_2_a_chat_agent_tells_chat_identity_servers_and_then_asks_the_app(self):
        async with running(Room) as stage:
            client = await stage.connect()
            assert kinds(client) == [CHAT, IDENTITY, MCP, "welcome"]
            assert client.frames[1] == {"type": IDENTITY, "name": "x", "agent": "room"}

    async def test_case_3_an_agent_without_chat_begins_with_its_identity(self):
        class Counter(Agent):
            initial_state = 0

            @rpc
            async def increase(self) -> int:
                await self.set_state(self.state + 1)
                return self.state

        async with running_plain(Counter) as stage:
            client = await stage.connect()
            assert kinds(client) == [IDENTITY, STATE, MCP]
            assert await result(client, "increase") == 1
            assert client.frames[-2:][0] == {"type": STATE, "state": 1}

    async def test_3_3_chat_frames_of_an_agent_without_chat_are_the_apps_own(self):
        got: list[Any] = []

        class Plain(Agent):
            def on_client_message(self, connection: Connection, data: str | bytes) -> None:
                got.append(data)

            @rpc
            def done(self) -> None:
                pass

        async with running_plain(Plain) as stage:
            client = await stage.connect()
            await client.send(type="cf_agent_chat_clear")
            await call(client, "done")
            assert got == ['{"type":"cf_agent_chat_clear"}']

    async def test_2_4_a_stream_that_runs_is_offered_before_the_identity(self):
        gate = pause()
        async with running(Room, ["a", gate]) as stage:
            asker = await stage.connect("a")
            await asker.ask("hi")
            await asker.until(lambda frame: "text-delta" in frame.get("body", ""))
            client = await stage.connect("b")
            assert kinds(client) == ["cf_agent_stream_resuming", IDENTITY, MCP, "welcome"]
            gate.open()

    async def test_2_3_the_flags_are_decided_before_anything_is_told(self):
        class Curious(Room):
            async def should_connection_be_readonly(
                self, connection: Connection, request: HttpRequest
            ) -> bool:
                connection.send({"type": "from the judge"})
                return True

        async with running(Curious) as stage:
            client = await stage.connect()
            assert kinds(client)[0] == "from the judge"
            assert [c.readonly for c in stage.agent.get_connections()] == [True]

    async def test_case_5_an_agent_may_keep_its_identity_to_itself(self):
        class Nameless(Room):
            send_identity_on_connect = False
            initial_state = 1

        async with running(Nameless) as stage:
            assert kinds(await stage.connect()) == [CHAT, STATE, MCP, "welcome"]

    async def test_2_1_what_a_client_sends_is_handled_after_the_sequence(self):
        class Slow(Room):
            async def on_connect(self, connection: Connection, request: HttpRequest) -> None:
                await self.gate.wait()

        async with running(Slow) as stage:
            stage.agent.gate.clear()
            opening = asyncio.ensure_future(stage.connect())
            while not stage.agent.get_connections():
                await asyncio.sleep(0)
            assert not opening.done()
            stage.agent.gate.set()
            assert await result(await opening, "echo", 1) == 1

    async def test_2_2_a_connection_that_on_connect_refuses_is_not_there(self):
        class Refuses(Room):
            def on_connect(self, connection: Connection, request: HttpRequest) -> None:
                if request.query.get("who") == "stranger":
                    raise PermissionError("not today")

        async with running(Refuses, "hi") as stage:
            with pytest.raises(PermissionError, match="not today"):
                await stage.connect("s", who="stranger")
            assert stage.agent.get_connections() == []
            await stage.agent.diary.until("error not today s")
            client = await stage.connect("f", who="friend")
            await client.ask("hello")
            await client.until_end()

    async def test_a_client_that_gives_up_while_on_connect_runs_is_not_there(self):
        class Slow(Room):
            async def on_connect(self, connection: Connection, request: HttpRequest) -> None:
                await self.gate.wait()

        async with running(Slow) as stage:
            stage.agent.gate.clear()
            opening = asyncio.ensure_future(stage.connect())
            while not stage.agent.get_connections():
                await asyncio.sleep(0)
            opening.cancel()
            await asyncio.wait([opening])
            assert stage.agent.get_connections() == []

    async def test_2_3_a_judge_that_raises_lets_nobody_in(self):
        class Broken(Room):
            def should_connection_be_readonly(
                self, connection: Connection, request: HttpRequest
            ) -> bool:
                raise RuntimeError("no list of guests")

        async with running(Broken) as stage:
            with pytest.raises(RuntimeError, match="no list"):
                await stage.connect()
            assert stage.agent.get_connections() == []


class TestWhoWantsNoProtocol:
    async def test_case_6_it_gets_chat_calls_and_the_apps_messages_but_no_protocol(self):
        class Stateful(Room):
            initial_state = 0

        async with running(Stateful, "hi") as stage:
            quiet, normal = await stage.connect("q", quiet="1"), await stage.connect("n")
            assert kinds(quiet) == [CHAT, "welcome"]
            await stage.agent.set_state(1)
            assert await result(quiet, "echo", 5) == 5
            await normal.ask("hello")
            await normal.until_end()
            await quiet.until_end()
            stage.agent.broadcast({"type": "note"})
            assert {IDENTITY, STATE, MCP}.isdisjoint(kinds(quiet))
            assert (kinds(quiet)[-1], STATE in kinds(normal)) == ("note", True)

    async def test_2_5_it_may_send_anything(self):
        class Stateful(Room):
            initial_state = 0

        async with running(Stateful) as stage:
            quiet, normal = await stage.connect("q", quiet="1"), await stage.connect("n")
            await quiet.send(type="cf_agent_state", state=7)
            assert (stage.agent.state, normal.frames[-1]["state"]) == (7, 7)


class TestConnections:
    async def test_2_7_tags_find_connections_and_the_id_is_the_first_one(self):
        async with running(Room) as stage:
            await stage.connect("a", tags="red,blue")
            await stage.connect("b", tags="blue")
            agent = stage.agent
            assert [c.tags for c in agent.get_connections()] == [
                ("a", "red", "blue"),
                ("b", "blue"),
            ]
            assert [c.id for c in agent.get_connections("blue")] == ["a", "b"]
            assert [c.id for c in agent.get_connections("a")] == ["a"]
            assert agent.get_connections("green") == []

    @pytest.mark.parametrize("tags", [",".join("abcdefghij"), "x" * 257])
    async def test_2_7_too_many_or_too_long_tags_are_refused(self, tags: str):
        async with running(Room) as stage:
            with pytest.raises(ValueError, match="tag"):
                await stage.connect(tags=tags)
            assert stage.agent.get_connections() == []

    async def test_2_7_nine_tags_of_256_characters_are_allowed(self):
        tags = [letter * 256 for letter in "abcdefghi"]
        async with running(Room) as stage:
            await stage.connect("me", tags=",".join(tags))
            assert stage.agent.get_connections()[0].tags == ("me", *tags)

    async def test_a_connection_knows_who_it_is_and_how_it_came(self):
        async with running(Room) as stage:
            ann = Principal(id="ann", claims={"role": "admin"})
            await stage.connect("a", principal=ann, token="t1")
            (connection,) = stage.agent.get_connections()
            assert (connection.principal, connection.request.query) == (ann, {"token": "t1"})
            assert (connection.state, connection.readonly) == (None, False)

    async def test_the_app_may_keep_something_with_a_connection_until_it_closes(self):
        async with running(Room) as stage:
            client = await stage.connect("a")
            (connection,) = stage.agent.get_connections()
            connection.set_state({"page": 3})
            assert stage.agent.get_connections()[0].state == {"page": 3}
            await close(client)
            await stage.connect("a")
            assert stage.agent.get_connections()[0].state is None

    async def test_broadcast_takes_text_or_data_and_leaves_some_out(self):
        async with running(Room) as stage:
            a, b = await stage.connect("a"), await stage.connect("b")
            stage.agent.broadcast('{"type":"text"}')
            stage.agent.broadcast({"type": "data"}, without=["a"])
            assert (kinds(a)[-1], kinds(b)[-2:]) == ("text", ["text", "data"])

    async def test_the_app_may_close_a_connection_with_a_code_that_ends_it(self):
        async with running(Room) as stage:
            client = await stage.connect()
            stage.agent.get_connections()[0].close(4001, "over")
            assert client.closed == (4001, "over")


class TestReplacement:
    """§1.3.1: a client keeps its id over reconnects; its newest socket counts."""

    async def test_the_newest_socket_of_an_id_gets_what_is_sent(self):
        async with running(Room) as stage:
            old, new = await stage.connect("tab"), await stage.connect("tab")
            before = len(old.frames)
            stage.agent.broadcast({"type": "note"})
            assert (len(old.frames), kinds(new)[-1]) == (before, "note")
            assert len(stage.agent.get_connections()) == 1

    async def test_the_old_sockets_late_end_does_not_take_the_new_one_along(self):
        async with running(Room) as stage:
            old, new = await stage.connect("tab"), await stage.connect("tab")
            await close(old, 1006)
            await stage.agent.diary.until("closed tab 1006")
            assert [c.id for c in stage.agent.get_connections()] == ["tab"]
            stage.agent.broadcast({"type": "note"})
            assert kinds(new)[-1] == "note"

    async def test_an_answer_goes_to_the_socket_that_asked(self):
        async with running(Room) as stage:
            old, new = await stage.connect("tab"), await stage.connect("tab")
            assert await result(old, "echo", 1) == 1
            assert "rpc" not in kinds(new)


class TestClosing:
    async def test_2_8_the_app_hears_code_and_reason_and_the_turn_goes_on(self):
        gate = pause()
        async with running(Room, [gate, "hi"]) as stage:
            client = await stage.connect("a")
            await client.ask("hello")
            await gate.reached()
            await close(client, 4000, "bye")
            await stage.agent.diary.until("closed a 4000 bye")
            assert stage.agent.get_connections() == []
            gate.open()
            await stage.agent.wait_until_stable()
            assert (await stage.agent.get_turn("q1")).status == "completed"

    async def test_what_on_close_raises_goes_to_on_error(self):
        class Breaks(Room):
            async def on_close(self, connection: Connection, code: int, reason: str) -> None:
                raise RuntimeError("cannot let go")

        async with running(Breaks) as stage:
            await close(await stage.connect("a"))
            await stage.agent.diary.until("error cannot let go a")

    async def test_a_message_to_a_connection_that_has_gone_is_no_error(self):
        async with running(Room) as stage:
            client = await stage.connect("a")
            (connection,) = stage.agent.get_connections()
            await close(client)
            await stage.agent.diary.until("closed a 1000")
            connection.send({"type": "unheard"})
            connection.close()

    async def test_a_host_that_stops_right_after_a_close_leaves_nothing_behind(self):
        async with running(Room) as stage:
            await close(await stage.connect("a"))
