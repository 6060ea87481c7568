"""What a connection is told first, who may do what, how it ends: spec/01 cases 3-7, 18, 71, 73, §2.

Most of it concerns every agent, so most agents here are no chats.
"""

from __future__ import annotations

import asyncio
from typing import Any

from tests.wire.client import Tab, kinds
from tests.wire.room import Chat, room
from thinkwell import Agent, Connection, rpc, tool
from thinkwell.testing import call, pause, text


class Counter(Agent):
    initial_state = {"n": 0}

    @rpc
    async def bump(self) -> int:
        await self.set_state({"n": self.state["n"] + 1})
        return self.state["n"]


class Silent(Agent):
    """No state."""


class Guarded(Counter):
    """The query decides about a connection."""

    def should_connection_be_readonly(self, connection: Connection, request: Any) -> bool:
        return request.query.get("may") == "look"

    async def should_send_protocol_messages(self, connection: Connection, request: Any) -> bool:
        return request.query.get("protocol") != "no"


class TestOrder:
    async def test_case_3_identity_then_one_state_then_mcp(self):
        async with room(cls=Counter) as r:
            tab = await r.tab()
            assert tab.greeting == [
                {
                    "type": "cf_agent_identity",
                    "name": "x",
                    "agent": "counter",
                    "stateFollows": True,
                },
                {"type": "cf_agent_state", "state": {"n": 0}},
                {
                    "type": "cf_agent_mcp_servers",
                    "mcp": {"servers": {}, "tools": [], "prompts": [], "resources": []},
                },
            ]
            await tab.nothing_more()

    async def test_case_4_no_state_frame_without_a_state(self):
        async with room(cls=Silent) as r:
            tab = await r.tab()
            assert kinds(tab.greeting) == ["identity", "mcp_servers"]
            assert "stateFollows" not in tab.greeting[0]

    async def test_case_5_a_class_may_keep_its_identity_to_itself(self):
        class Shy(Counter):
            send_identity_on_connect = False

        async with room(cls=Shy) as r:
            tab = await r.tab()
            assert kinds(tab.greeting) == ["state", "mcp_servers"]

    async def test_case_18_a_chat_shows_its_transcript_before_its_identity(self):
        async with room() as r:
            tab = await r.tab()
            assert kinds(tab.greeting) == ["chat_messages", "identity", "mcp_servers"]
            first = {"type": "cf_agent_chat_messages", "messages": [], "connect": True}
            assert tab.greeting[0] == first

    async def test_case_71_only_the_first_transcript_says_connect(self):
        class Stateful(Chat, name="chat"):
            initial_state = {"a": 1}

        async with room("Hello", cls=Stateful) as r:
            tab, other = await r.tabs()
            order = ["chat_messages", "identity", "state", "mcp_servers"]
            assert kinds(tab.greeting) == order
            assert tab.greeting[1]["stateFollows"] is True
            await tab.ask("hi")
            await tab.stream()
            await other.stream()
            for heard in (tab.heard, other.heard):
                first, *later = [f for f in heard if f["type"] == "cf_agent_chat_messages"]
                assert first["connect"] is True
                assert bool(later) is (heard is other.heard)  # who asked follows by the stream
                assert all("connect" not in frame for frame in later)

    async def test_2_2_the_app_comes_last(self):
        class Greeter(Counter):
            async def on_connect(self, connection: Connection, request: Any) -> None:
                connection.send("welcome")
                connection.send({"hello": request.query["who"]})

        async with room(cls=Greeter) as r:
            tab = await r.tab(who="me")
            assert await tab.hear() == {"text": "welcome"}
            assert await tab.hear() == {"hello": "me"}

    async def test_2_1_frames_sent_at_once_wait_for_the_connect_sequence(self):
        opened, go = asyncio.Event(), asyncio.Event()

        class Slow(Counter):
            async def on_connect(self, connection: Connection, request: Any) -> None:
                opened.set()
                await go.wait()
                connection.send({"type": "ready"})

        async with room(cls=Slow) as r:
            tab = await r.open()
            await tab.send(type="rpc", id="1", method="bump", args=[])
            await opened.wait()
            go.set()
            await tab.until("rpc")
            order = ["identity", "state", "mcp_servers", "ready", "state", "rpc"]
            assert kinds(tab.heard) == order


class TestOptOut:
    """§2.5: `N` takes no protocol frames, `P` does."""

    async def test_case_6_no_identity_state_or_mcp_but_answers_to_calls(self):
        async with room(cls=Guarded) as r:
            silent, normal = await r.open("N", protocol="no"), await r.tab("P")
            await silent.nothing_more()
            await r.agent.set_state({"n": 5})
            await normal.expect("state", state={"n": 5})
            await silent.nothing_more()
            (answer,) = await silent.call("bump")
            assert answer["result"] == 6
            await normal.expect("state", state={"n": 6})

    async def test_2_5_chat_frames_and_messages_of_the_app_come_all_the_same(self):
        class GuardedChat(Chat, name="chat"):
            initial_state = {"n": 0}

            def should_send_protocol_messages(self, connection: Connection, request: Any) -> bool:
                return False

            @rpc
            async def shout(self) -> None:
                self.broadcast("all of you")

        async with room("Hello", cls=GuardedChat) as r:
            tab = await r.open()
            await tab.expect("chat_messages")
            await tab.nothing_more()
            await tab.ask("hi")
            assert (await tab.stream()).text == "Hello"
            await tab.send(type="rpc", id="1", method="shout", args=[])
            assert await tab.hear() == {"text": "all of you"}
            await tab.expect("rpc", id="1", success=True)

    async def test_2_5_its_own_state_is_taken_and_shown_to_the_others(self):
        async with room(cls=Guarded) as r:
            silent, normal = await r.open("N", protocol="no"), await r.tab("P")
            await silent.set_state({"n": 9})
            await normal.expect("state", state={"n": 9})
            await silent.nothing_more()


class TestReadonly:
    async def test_case_7_it_may_not_change_the_state(self):
        async with room(cls=Guarded) as r:
            looker, normal = await r.tab("R", may="look"), await r.tab("P")
            await looker.set_state({"n": 9})
            await looker.expect("state_error", error="Connection is readonly")
            await normal.nothing_more()
            assert (await r.tab()).greeting[1]["state"] == {"n": 0}

    async def test_case_7_nor_through_a_call(self):
        async with room(cls=Guarded) as r:
            looker = await r.tab("R", may="look")
            (answer,) = await looker.call("bump")
            assert (answer["success"], answer["error"]) == (False, "Connection is readonly")
            assert (await r.tab()).greeting[1]["state"] == {"n": 0}

    async def test_case_7_if_it_may_chat_its_turn_may_still_not_write_state(self):
        class ReadonlyChat(Chat, name="chat"):
            initial_state = {"n": 0}
            expose_errors = True

            def should_connection_be_readonly(self, connection: Connection, request: Any) -> bool:
                return True

            def authorize(self, action: Any, principal: Any, subject: Any) -> bool:
                return action == "send"

            @tool
            async def bump(self) -> str:
                """Count."""
                await self.set_state({"n": 1})
                return "counted"

        async with room([call("bump")], "done", cls=ReadonlyChat) as r:
            tab = await r.tab("R")
            await tab.ask("hi")
            stream = await tab.stream()
            (failed,) = [c for c in stream.chunks if c["type"] == "tool-output-error"]
            assert "Connection is readonly" in failed["errorText"]
            assert stream.end["outcome"] == "completed"
            assert (await r.tab()).greeting[2]["state"] == {"n": 0}

    async def test_2_6_it_receives_everything(self):
        async with room(cls=Guarded) as r:
            looker, normal = await r.tab("R", may="look"), await r.tab("P")
            await normal.set_state({"n": 1})
            await looker.expect("state", state={"n": 1})

    async def test_2_7_flags_are_judged_anew_for_every_socket_and_not_kept_in_its_state(self):
        class Careless(Guarded):
            def on_connect(self, connection: Connection, request: Any) -> None:
                connection.set_state({"readonly": False})

        async with room(cls=Careless) as r:
            looker = await r.tab("same", may="look")
            (answer,) = await looker.call("bump")
            assert answer["error"] == "Connection is readonly"
            again = await r.tab("same")
            await again.send(type="rpc", id="1", method="bump", args=[])
            await again.expect("state", state={"n": 1})
            await again.expect("rpc", id="1", success=True)


class TestIds:
    async def test_1_3_1_the_newest_socket_of_an_id_replaces_the_old_one(self):
        async with room("Hello") as r:
            old = await r.tab("same")
            new = await r.tab("same")
            await new.ask("hi")
            await new.stream()
            await old.nothing_more()

    async def test_1_3_1_an_old_socket_that_closes_late_takes_nothing_along(self):
        async with room("Hello", cls=Counter) as r:
            old = await r.tab("same")
            new = await r.tab("same")
            await old.close()
            await r.agent.set_state({"n": 3})
            await new.expect("state", state={"n": 3})

    async def test_1_3_1_without_an_id_the_server_makes_one(self):
        class Naming(Counter):
            @rpc
            async def ids(self) -> list[str]:
                return [connection.id for connection in self.get_connections()]

        async with room(cls=Naming) as r:
            tab = await r.tab("")
            (answer,) = await tab.call("ids")
            (made,) = answer["result"]
            assert made

    async def test_case_1_the_id_of_the_query_is_the_connections(self):
        class Naming(Counter):
            def on_connect(self, connection: Connection, request: Any) -> None:
                connection.send({"id": connection.id, "tags": list(connection.tags)})

        async with room(cls=Naming) as r:
            tab = await r.tab("p1")
            assert await tab.hear() == {"id": "p1", "tags": ["p1"]}

    async def test_2_7_tags_find_a_connection_and_there_are_at_most_ten(self):
        class Tagged(Counter):
            def get_connection_tags(self, connection: Connection, request: Any) -> list[str]:
                return [f"t{i}" for i in range(int(request.query["tags"]))]

            @rpc
            async def find(self, tag: str) -> list[str]:
                return [connection.id for connection in self.get_connections(tag)]

        async with room(cls=Tagged) as r:
            tab = await r.tab("p1", tags="9")
            for tag, found in (("p1", ["p1"]), ("t8", ["p1"]), ("t9", [])):
                assert (await tab.call("find", tag))[0]["result"] == found
            refused = await r.open("p2", tags="10")
            assert list(await refused.hear()) == ["error"]
            assert await refused.closed() == 1011


class TestTheEnd:
    async def test_case_73_the_server_may_close_for_good(self):
        """1008 and 4000-4999 stop the client's reconnecting (§1.3.3)."""
        for code in (1008, 4001):

            class Closing(Counter, name="closing"):
                def on_connect(self, connection: Connection, request: Any) -> None:
                    connection.close(code, "enough")  # noqa: B023 - used at once

            async with room(cls=Closing) as r:
                tab = await r.tab()
                assert await tab.closed() == code

    async def test_case_73_after_another_close_the_same_id_gets_a_full_connect_sequence(self):
        class Closing(Counter):
            @rpc
            async def leave(self) -> None:
                assert self.caller is not None
                self.caller.close(1011, "come back")

        async with room(cls=Closing) as r:
            tab = await r.tab("p1")
            await tab.send(type="rpc", id="1", method="leave", args=[])
            assert await tab.closed() == 1011
            again = await r.tab("p1")
            assert again.greeting == tab.greeting

    async def test_1_3_7_an_error_while_connecting_is_told_and_closes_with_1011(self):
        class Broken(Counter):
            def on_connect(self, connection: Connection, request: Any) -> None:
                raise RuntimeError("secret")

        async with room(cls=Broken) as r:
            tab = await r.open()
            said = await tab.until(lambda frame: "error" in frame)
            assert list(said) == ["error"]
            assert "secret" not in said["error"]
            assert await tab.closed() == 1011

    async def test_1_3_7_a_close_is_answered_with_the_same_code(self):
        async with room(cls=Counter) as r:
            tab = await r.tab()
            await tab.socket.close(code=4007, message=b"bye")
            assert tab.socket.close_code == 4007

    async def test_on_close_hears_the_code_and_the_connection_is_gone(self):
        gone: asyncio.Queue[Any] = asyncio.Queue()

        class Watching(Counter):
            def on_close(self, connection: Connection, code: int, reason: str) -> None:
                gone.put_nowait((connection.id, code, reason, self.get_connections()))

        async with room(cls=Watching) as r:
            tab = await r.tab("p1")
            await tab.socket.close(code=4007, message=b"bye")
            async with asyncio.timeout(30):
                assert await gone.get() == ("p1", 4007, "bye", [])

    async def test_2_8_an_offer_dies_with_its_socket(self):
        gate = pause()
        async with room([text("w1 "), gate, text("w2")]) as r:
            asker = await r.tab("R")
            await asker.ask("hi")
            await asker.part()
            offered = await r.tab("O")
            await offered.close()
            again: Tab = await r.tab("O")
            await again.ack("q1")
            gate.open()
            await again.until("use_chat_response", id="q1", done=True)
            assert again.of("q1").text == "w1 w2"
