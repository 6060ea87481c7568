"""The state of an agent and who may change it (spec/01 §2.6, §4, cases 3-9, 71)."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.turns.support import Client, running
from tests.turns.test_client_tools import idle
from tests.turns.test_rpc import failure, result
from thinkwell import Connection, HttpRequest, Principal, Think, rpc, tool
from thinkwell.core import json
from thinkwell.core.errors import ReadonlyError
from thinkwell.store.sqlite import SqliteStore
from thinkwell.testing import call, pause

READONLY = "Connection is readonly"


class Board(Think):
    """Has a state that guests cannot write; they may talk about it."""

    initial_state = {"n": 0}

    async def on_start(self) -> None:
        self.seen: list[tuple[Any, Any]] = []
        self.heard: list[tuple[Any, Any]] = []
        self.errors: list[tuple[str, str | None]] = []
        self.told = asyncio.Event()

    def should_connection_be_readonly(self, connection: Connection, request: HttpRequest) -> bool:
        return request.query.get("role") == "guest"

    def authorize(self, action: Any, principal: Any, subject: Any) -> bool:
        """A guest may do all but write."""
        return action != "state" or not subject.read_only

    def validate_state_change(self, state: Any, source: Any) -> Any:
        self.seen.append((state, source if source == "server" else source.id))
        if state == "bad":
            raise ValueError("a secret reason")

    @rpc
    async def write(self, state: Any) -> Any:
        await self.set_state(state)
        return self.state

    @rpc
    async def ask(self, question: str) -> str:
        return (await self.run(question)).text

    @tool
    async def note(self, text: str) -> str:
        """Write on the board."""
        await self.set_state({"note": text})
        return "noted"


def states(client: Client) -> list[Any]:
    return [frame["state"] for frame in client.frames if frame["type"] == "cf_agent_state"]


def refusals(client: Client) -> list[str]:
    return [f["error"] for f in client.frames if f["type"] == "cf_agent_state_error"]


class TestOnConnect:
    async def test_case_71_the_initial_state_follows_the_identity(self):
        async with running(Board) as stage:
            client = await stage.connect()
            kinds = [frame["type"] for frame in client.frames]
            assert kinds[1:] == ["cf_agent_identity", "cf_agent_state", "cf_agent_mcp_servers"]
            assert client.frames[1]["stateFollows"] is True
            assert states(client) == [{"n": 0}]

    async def test_case_4_without_a_state_there_is_no_frame_and_no_promise(self):
        class Plain(Think):
            pass

        async with running(Plain) as stage:
            client = await stage.connect()
            assert (states(client), "stateFollows" in client.frames[1]) == ([], False)
            assert stage.agent.state is None

    @pytest.mark.parametrize("value", [None, 0, "", False, [], {}])
    async def test_4_3_a_falsy_value_is_a_state_and_is_sent(self, value: Any):
        async with running(Board) as stage:
            first = await stage.connect("a")
            await stage.agent.set_state(value)
            assert states(first) == [{"n": 0}, value]
            later = await stage.connect("b")
            assert (states(later), later.frames[1].get("stateFollows")) == ([value], True)

    async def test_4_4_the_initial_state_is_stored_and_a_later_one_outlives_the_process(
        self, tmp_path: Path
    ):
        path = tmp_path / "x.db"
        async with running(Board, store=SqliteStore(path)) as stage:
            assert stored(path) == {"n": 0}
            await stage.agent.set_state({"n": 7})

        class Changed(Board, name="board"):
            initial_state = {"n": 100}

        async with running(Changed, store=SqliteStore(path)) as stage:
            assert (stage.agent.state, states(await stage.connect())) == ({"n": 7}, [{"n": 7}])

    @pytest.mark.parametrize(("cls", "expected"), [(Board, {"n": 0}), (Think, None)])
    async def test_4_5_a_broken_state_gives_way_to_the_initial_one(
        self, cls: type[Think], expected: Any, tmp_path: Path
    ):
        path = tmp_path / "x.db"

        class Kept(cls, name="kept"):
            pass

        async with running(Kept, store=SqliteStore(path)):
            pass
        store = SqliteStore(path)
        await store.open()
        async with store.transaction() as tx:
            await tx.execute("set_agent_state", {"id": "kept/x", "state": '{"n":'})
        await store.close()
        async with running(Kept, store=SqliteStore(path)) as stage:
            client = await stage.connect()
            assert states(client) == ([] if expected is None else [expected])
            assert stage.agent.state == expected

    async def test_what_is_read_is_a_copy(self):
        async with running(Board) as stage:
            stage.agent.state["n"] = 99
            assert (stage.agent.state, Board.initial_state) == ({"n": 0}, {"n": 0})


def stored(path: Path) -> Any:
    """The state as it is in the database."""
    with closing(sqlite3.connect(path)) as database:
        (row,) = database.execute("SELECT state FROM agents WHERE name = 'x'")
    return json.loads(row[0])


class TestChanges:
    async def test_case_8_a_clients_state_is_stored_and_shown_to_the_others(self):
        async with running(Board) as stage:
            mine, other = await stage.connect("a"), await stage.connect("b")
            await mine.send(type="cf_agent_state", state={"n": 1})
            assert (states(mine), states(other)) == ([{"n": 0}], [{"n": 0}, {"n": 1}])
            assert stage.agent.state == {"n": 1}
            assert stage.agent.seen == [({"n": 1}, "a")]

    async def test_4_1_a_state_the_server_sets_is_shown_to_all(self):
        async with running(Board) as stage:
            a, b = await stage.connect("a"), await stage.connect("b")
            await stage.agent.set_state({"n": 2})
            assert [states(c)[-1] for c in (a, b)] == [{"n": 2}, {"n": 2}]
            assert stage.agent.seen == [({"n": 2}, "server")]

    async def test_4_1_a_state_set_in_a_call_is_the_servers_and_shown_to_the_caller_too(self):
        async with running(Board) as stage:
            client = await stage.connect()
            assert await result(client, "write", {"n": 3}) == {"n": 3}
            assert states(client)[-1] == {"n": 3}
            assert stage.agent.seen == [({"n": 3}, "server")]

    async def test_case_9_a_refused_state_is_told_to_its_sender_without_the_reason(self):
        async with running(Board) as stage:
            mine, other = await stage.connect("a"), await stage.connect("b")
            await mine.send(type="cf_agent_state", state="bad")
            assert (refusals(mine), refusals(other)) == (["State update rejected"], [])
            assert (len(states(other)), stage.agent.state) == (1, {"n": 0})

    async def test_4_2_the_server_reads_why_its_state_was_refused(self):
        async with running(Board) as stage:
            with pytest.raises(ValueError, match="a secret reason"):
                await stage.agent.set_state("bad")
            assert stage.agent.state == {"n": 0}

    async def test_4_1_a_validator_may_be_async(self):
        class Slow(Board):
            async def validate_state_change(self, state: Any, source: Any) -> None:
                await asyncio.sleep(0)
                super().validate_state_change(state, source)

        async with running(Slow) as stage:
            client = await stage.connect()
            await client.send(type="cf_agent_state", state="bad")
            await client.send(type="cf_agent_state", state="good")
            assert (refusals(client), stage.agent.state) == (["State update rejected"], "good")

    async def test_a_validator_cannot_change_the_state_by_accident(self):
        class Meddles(Board):
            def validate_state_change(self, state: Any, source: Any) -> None:
                state["n"] = "meddled"

        async with running(Meddles) as stage:
            await stage.agent.set_state({"n": 5})
            assert stage.agent.state == {"n": 5}

    async def test_a_state_that_json_cannot_hold_is_refused(self):
        async with running(Board) as stage:
            with pytest.raises(ValueError, match="JSON cannot hold"):
                await stage.agent.set_state({"n": object()})
            assert stage.agent.state == {"n": 0}

    async def test_3_3_a_frame_without_a_state_is_no_state(self):
        async with running(Board) as stage:
            client = await stage.connect()
            await client.send(type="cf_agent_state")
            assert (refusals(client), stage.agent.state) == ([], {"n": 0})

    async def test_4_1_every_client_ends_with_the_state_that_is_stored(self, tmp_path: Path):
        path = tmp_path / "x.db"
        async with running(Board, store=SqliteStore(path), suspends=True) as stage:
            a, b, c = [await stage.connect(name) for name in "abc"]
            await asyncio.gather(
                *(tab.send(type="cf_agent_state", state={"n": n}) for n, tab in enumerate((a, b))),
                stage.agent.set_state({"n": 9}),
            )
            assert states(c)[-1] == stage.agent.state == stored(path)


class TestBeingTold:
    async def test_4_1_the_hook_runs_behind_the_change_and_knows_the_source(self):
        class Told(Board):
            async def on_state_changed(self, state: Any, source: Any) -> None:
                await self.told.wait()
                self.heard.append((state, source if source == "server" else source.id))

        async with running(Told) as stage:
            client = await stage.connect("a")
            await client.send(type="cf_agent_state", state=1)
            await stage.agent.set_state(2)
            assert (stage.agent.state, stage.agent.heard) == (2, [])
            stage.agent.told.set()
            while len(stage.agent.heard) < 2:
                await asyncio.sleep(0)
            assert sorted(stage.agent.heard) == [(1, "a"), (2, "server")]

    async def test_4_1_what_the_hook_raises_goes_to_on_error_and_changes_nothing(self):
        class Breaks(Board):
            def on_state_changed(self, state: Any, source: Any) -> None:
                raise RuntimeError("broke")

            def on_error(self, error: Exception, connection: Connection | None) -> None:
                self.errors.append((str(error), connection and connection.id))
                if len(self.errors) == 2:
                    self.told.set()

        async with running(Breaks) as stage:
            client = await stage.connect("a")
            await client.send(type="cf_agent_state", state=1)
            await stage.agent.set_state(2)
            await stage.agent.told.wait()
            assert (stage.agent.state, refusals(client)) == (2, [])
            assert stage.agent.errors == [("broke", "a"), ("broke", None)]


class TestWhoeverMayOnlyLook:
    async def test_case_7_its_state_is_refused_and_it_sees_the_others(self):
        async with running(Board) as stage:
            guest, owner = await stage.connect("g", role="guest"), await stage.connect("o")
            await guest.send(type="cf_agent_state", state=1)
            assert (refusals(guest), stage.agent.state) == ([READONLY], {"n": 0})
            assert stage.agent.seen == []
            await owner.send(type="cf_agent_state", state=2)
            assert states(guest) == [{"n": 0}, {"n": 0}, 2]

    async def test_case_7_a_call_that_changes_the_state_fails(self):
        async with running(Board) as stage:
            guest, owner = await stage.connect("g", role="guest"), await stage.connect("o")
            assert await failure(guest, "write", 1) == READONLY
            assert await result(owner, "write", 2) == 2
            assert stage.agent.state == 2

    async def test_case_7_its_turn_runs_and_its_tools_cannot_change_the_state(self):
        async with running(Board, [call("note", {"text": "hi"})], "done") as stage:
            guest = await stage.connect("g", role="guest")
            await guest.ask("write hi")
            assert (await guest.until_end())["outcome"] == "completed"
            (part,) = [p for p in (await stage.answer())["parts"] if "toolCallId" in p]
            assert (part["state"], stage.agent.state) == ("output-error", {"n": 0})

    async def test_2_6_hooks_of_its_turn_cannot_change_the_state(self):
        raised: list[Exception] = []

        class Hooked(Board):
            async def on_turn_start(self, ctx: Any) -> None:
                try:
                    await self.set_state(1)
                except ReadonlyError as error:
                    raised.append(error)

        async with running(Hooked, "hi", "hi") as stage:
            guest, owner = await stage.connect("g", role="guest"), await stage.connect("o")
            await guest.ask("hello", "q1")
            await guest.until_end("q1")
            assert (len(raised), stage.agent.state) == (1, {"n": 0})
            await owner.ask("hello", "q2")
            await owner.until_end("q2")
            assert (len(raised), stage.agent.state) == (1, 1)

    async def test_2_6_a_turn_that_its_call_starts_cannot_change_the_state(self):
        async with running(Board, [call("note", {"text": "hi"})], "done") as stage:
            guest = await stage.connect("g", role="guest")
            assert await result(guest, "ask", "write hi") == "done"
            assert stage.agent.state == {"n": 0}

    async def test_2_6_the_server_itself_may_change_it_while_a_guest_is_connected(self):
        gate = pause()
        async with running(Board, [gate, "hi"]) as stage:
            guest = await stage.connect("g", role="guest")
            await guest.ask("hello")
            await gate.reached()
            await stage.agent.set_state(4)
            gate.open()
            await guest.until_end()
            assert (stage.agent.state, states(guest)[-1]) == (4, 4)

    async def test_2_6_after_a_crash_its_turn_still_cannot_change_the_state(self, tmp_path: Path):
        gate = pause()
        path = tmp_path / "x.db"
        async with running(Board, [gate], store=SqliteStore(path), drain=0.0) as stage:
            guest = await stage.connect("g", role="guest")
            await guest.ask("write hi")
            await gate.reached()
        steps = [call("note", {"text": "hi"})], "done"
        async with running(Board, *steps, store=SqliteStore(path)) as stage:
            await idle(stage)
            assert (await stage.agent.get_turn("q1")).status == "completed"
            assert stage.agent.state == {"n": 0}

    async def test_2_6_the_continuation_of_its_turn_cannot_change_the_state(self):
        class Asks(Board):
            @tool(needs_approval=True)
            async def wipe(self) -> str:
                """Clear the board."""
                await self.set_state(None)
                return "wiped"

        async with running(Asks, [call("wipe")], "done") as stage:
            guest, owner = await stage.connect("g", role="guest"), await stage.connect("o")
            await guest.ask("wipe it")
            await guest.until_end()
            await owner.send(
                type="cf_agent_tool_approval", toolCallId="call-1", approved=True, autoContinue=True
            )
            await idle(stage)
            assert stage.agent.state == {"n": 0}

    async def test_2_7_the_flag_is_judged_anew_for_each_socket(self):
        async with running(Board) as stage:
            await stage.connect("tab", role="guest")
            again = await stage.connect("tab")
            await again.send(type="cf_agent_state", state=1)
            assert (refusals(again), stage.agent.state) == ([], 1)

    async def test_2_7_the_flag_cannot_be_reached_through_the_connections_own_state(self):
        class Remembers(Board):
            def on_connect(self, connection: Connection, request: HttpRequest) -> None:
                connection.set_state({"readonly": False, "_readonly": False})

        async with running(Remembers) as stage:
            guest = await stage.connect("g", role="guest", principal=Principal(id="ann"))
            (connection,) = stage.agent.get_connections()
            assert connection.state == {"readonly": False, "_readonly": False}
            assert connection.readonly
            await guest.send(type="cf_agent_state", state=1)
            assert refusals(guest) == [READONLY]


@pytest.mark.parametrize("value", [float("nan"), {"a": [float("inf")]}])
async def test_a_number_that_json_has_not_is_refused_instead_of_becoming_null(value: Any):
    async with running(Board) as stage:
        with pytest.raises(ValueError, match="JSON"):
            await stage.agent.set_state(value)
        assert stage.agent.state == {"n": 0}
