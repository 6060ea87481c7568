"""Who asks: known to every hook and tool, stored with the turn (DESIGN §4 Identity)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.turns.support import Stage, loosely, running
from tests.turns.test_approvals import decide
from tests.turns.test_client_tools import LOCATE, answer, idle
from tests.turns.test_rpc import result
from thinkwell import Principal, Think, ToolContext, rpc, tool
from thinkwell.hooks.registry import EVENTS
from thinkwell.store.sqlite import SqliteStore
from thinkwell.testing import call, error, pause

ANN = Principal(id="ann", claims={"roles": ["admin"], "tenant": {"id": 7}})
BOB = Principal(id="bob")
OF_A_TURN = [event for event in EVENTS if not event.startswith("on_scope")]


class Desk(Think):
    """Writes down on whose behalf it works."""

    time_limits = {"grace": 0.0}

    async def on_start(self) -> None:
        self.seen: dict[str, list[Principal | None]] = {}
        for event in OF_A_TURN:
            loosely(self).add_hook(event, lambda *args, event=event: self.note(event, args[-1]))

    def note(self, event: str, ctx: Any) -> None:
        self.seen.setdefault(event, []).append(ctx.principal)

    def authorize(self, action: Any, principal: Any, subject: Any) -> bool:
        return True  # here anybody may answer for anybody

    def authorize_turn(self, ctx: Any) -> Any:
        self.note("authorize_turn", ctx)
        return True

    @tool
    async def look(self, ctx: ToolContext) -> str:
        """Look around."""
        self.note("tool", ctx)
        return "seen"

    @tool
    def look_in_a_thread(self, ctx: ToolContext) -> str:
        """Look around."""
        self.note("tool", ctx)
        return "seen"

    @tool(needs_approval=True)
    async def sign(self, ctx: ToolContext) -> str:
        """Sign."""
        self.note("tool", ctx)
        return "signed"

    @tool
    async def pass_on(self) -> str:
        """Start another turn."""
        await self.submit("and this", submission_id="next")
        return "passed on"

    @rpc
    async def ask(self, question: str) -> str:
        return (await self.run(question)).request_id

    @rpc
    async def later(self, question: str) -> str:
        return (await self.submit(question)).request_id


async def owner_of(stage: Stage[Any], request_id: str) -> Principal | None:
    """Whose turn it is, as stored."""
    record = await stage.agent._turns.find(request_id)
    assert record is not None
    return record.principal


async def told(stage: Stage[Any]) -> None:
    """Wait until the hooks of the end have run."""
    await stage.agent.wait_until_stable()
    while "on_chat_response" not in stage.agent.seen:
        await asyncio.sleep(0)


class TestWhoeverIsConnected:
    async def test_every_hook_and_tool_of_a_turn_knows_who_asked(self):
        steps = [call("look"), call("look_in_a_thread"), call("nope")], "done"
        async with running(Desk, *steps) as stage:
            client = await stage.connect(principal=ANN)
            await client.ask("hi")
            await client.until_end()
            await told(stage)
            seen = stage.agent.seen
            not_here = {"on_chat_abort", "on_chat_error", "on_chat_recovery", "classify_chat_error"}
            assert {*OF_A_TURN, "authorize_turn", "tool"} - seen.keys() == not_here
            assert {
                event for event, who in seen.items() if set(map(id_of, who)) != {"ann"}
            } == set()
            assert (len(seen["tool"]), seen["tool"][0]) == (2, ANN)

    async def test_the_hooks_of_a_failure_know_it_too(self):
        async with running(Desk, [error(RuntimeError("no model"))]) as stage:
            client = await stage.connect(principal=ANN)
            await client.ask("hi")
            await client.until_end()
            await told(stage)
            assert stage.agent.seen["on_chat_error"] == [ANN]
            assert set(map(id_of, stage.agent.seen["classify_chat_error"])) == {"ann"}

    async def test_the_hooks_of_a_stop_know_it_too(self):
        gate = pause()
        async with running(Desk, [gate]) as stage:
            client = await stage.connect(principal=ANN)
            await client.ask("hi")
            await gate.reached()
            await client.send(type="cf_agent_chat_request_cancel", id="q1")
            await client.until_end()
            await told(stage)
            assert stage.agent.seen["on_chat_abort"] == [ANN]

    async def test_a_request_that_cannot_run_is_explained_with_its_sender_known(self):
        async with running(Desk) as stage:
            client = await stage.connect(principal=ANN)
            await client.request("q1", messages="none")
            await client.until_end()
            assert stage.agent.seen == {"on_chat_error": [ANN]}

    async def test_it_is_stored_with_the_turn_claims_and_all(self):
        async with running(Desk, "hi", "hi", "hi") as stage:
            for request_id, who in (("q1", ANN), ("q2", BOB), ("q3", None)):
                client = await stage.connect(request_id, principal=who)
                await client.ask("hello", request_id)
                await client.until_end(request_id)
                assert await owner_of(stage, request_id) == who


class TestLater:
    async def test_a_continuation_belongs_to_whoever_asked_not_to_whoever_answered(self):
        async with running(Desk, [call("locate", {})], "in Paris") as stage:
            ann = await stage.connect("a", principal=ANN)
            bob = await stage.connect("b", principal=BOB)
            await ann.ask("where?", clientTools=[LOCATE])
            await ann.until_end()
            stage.agent.seen.clear()
            await answer(bob)
            await told(stage)
            assert set(map(id_of, stage.agent.seen["before_turn"])) == {"ann"}

    async def test_an_approved_tool_runs_for_whoever_asked(self):
        async with running(Desk, [call("sign")], "done") as stage:
            ann = await stage.connect("a", principal=ANN)
            bob = await stage.connect("b", principal=BOB)
            await ann.ask("sign it")
            await ann.until_end()
            await decide(bob, approved=True)
            await idle(stage)
            assert stage.agent.seen["tool"] == [ANN]

    async def test_a_turn_keeps_it_over_a_restart(self, tmp_path: Path):
        gate = pause()
        path = tmp_path / "x.db"
        async with running(Desk, [gate], store=SqliteStore(path), drain=0.0) as stage:
            client = await stage.connect(principal=ANN)
            await client.ask("hi")
            await gate.reached()
        async with running(Desk, [call("look")], "hi", store=SqliteStore(path)) as stage:
            await told(stage)
            assert stage.agent.seen["tool"] == [ANN]
            assert stage.agent.seen["on_chat_response"] == [ANN]


class TestWhoStartsATurn:
    """A turn that is started on somebody's behalf is theirs."""

    @pytest.mark.parametrize("method", ["ask", "later"])
    async def test_a_turn_started_in_a_call_is_the_callers(self, method: str):
        async with running(Desk, "hi") as stage:
            client = await stage.connect(principal=ANN)
            request_id = await result(client, method, "hello")
            assert await owner_of(stage, request_id) == ANN
            await idle(stage)

    async def test_a_turn_started_in_a_tool_is_of_whoever_asked_for_the_first_one(self):
        async with running(Desk, [call("pass_on")], "done", "and done") as stage:
            client = await stage.connect(principal=ANN)
            await client.ask("hi")
            await client.until_end()
            assert await owner_of(stage, "next") == ANN
            await idle(stage)

    async def test_a_turn_started_in_a_hook_of_the_end_is_of_whoever_asked(self):
        class Chained(Desk):
            async def on_chat_response(self, ctx: Any) -> None:
                if ctx.request_id == "q1":
                    await self.submit("and this", submission_id="next")
                    self.passed_on.set()

            async def on_start(self) -> None:
                await super().on_start()
                self.passed_on = asyncio.Event()

        async with running(Chained, "done", "and done") as stage:
            client = await stage.connect(principal=ANN)
            await client.ask("hi")
            await stage.agent.passed_on.wait()
            assert await owner_of(stage, "next") == ANN
            await idle(stage)

    async def test_a_turn_the_program_starts_is_nobodys(self):
        async with running(Desk, "hi") as stage:
            await stage.connect(principal=ANN)
            started = await stage.agent.run("hello")
            assert await owner_of(stage, started.request_id) is None


def id_of(principal: Principal | None) -> str | None:
    return None if principal is None else principal.id
