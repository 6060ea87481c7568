"""Calls that a person has to allow (spec/01 §11.4, §11.12, cases 58-59; spec/02 §7.9, §9.10,
AC34-AC36).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.turns.recorder import Recorder, hooks, recording
from tests.turns.support import Client, Log, Stage, part_of, running
from tests.turns.test_client_tools import continuation_of, idle, results, updates
from thinkwell import AbortTurn, Allow, Block, ToolContext, tool
from thinkwell.messages.message import text_of
from thinkwell.store.sqlite import SqliteStore
from thinkwell.testing import call, pause

DELETE = call("delete", {"path": "a"})


def asks_for_root(args: Any, ctx: ToolContext) -> bool:
    return args["path"] == "/"


def breaks(args: Any, ctx: ToolContext) -> bool:
    raise RuntimeError("policy broke")


class Careful(Recorder):
    """Its tools want to be allowed."""

    @tool(needs_approval=True)
    async def delete(self, path: str) -> str:
        """Delete a file."""
        self.log.append(f"ran delete {path}")
        return f"deleted {path}"

    @tool(needs_approval=asks_for_root)
    async def wipe(self, path: str) -> str:
        """Delete a folder."""
        self.log.append(f"ran wipe {path}")
        return f"wiped {path}"

    @tool(needs_approval=breaks)
    async def doubtful(self) -> str:
        """Nobody knows."""
        self.log.append("ran doubtful")
        return "done"

    @tool(needs_approval=True)
    async def sweep(self) -> AsyncIterator[str]:
        """Says how far it is."""
        yield "one"
        yield "two"

    @tool(needs_approval=True)
    async def give_up(self) -> AsyncIterator[str]:
        """Ends the turn in the middle."""
        yield "one"
        raise AbortTurn("no more")


OUTPUTS = ["tool-output-available"] * 3


async def decide(client: Client, *, approved: bool, **fields: Any) -> None:
    frame = {"toolCallId": "call-1", "approved": approved, "autoContinue": True, **fields}
    await client.send(type="cf_agent_tool_approval", **frame)


async def ask(stage: Stage[Recorder]) -> Client:
    client = await stage.connect()
    await client.ask("clean up")
    await client.until_end()
    return client


class TestAsking:
    async def test_ac34_the_turn_ends_and_nothing_has_run(self):
        async with recording(Careful, [DELETE]) as stage:
            client = await ask(stage)
            part = part_of(await stage.answer())
            assert part["state"] == "approval-requested"
            assert "ran delete a" not in stage.log
            (asked,) = (c for c in client.chunks() if c["type"] == "tool-approval-request")
            assert part["approval"]["id"] == asked["approvalId"]
            assert (await stage.agent.get_turn("q1")).stop_reason == "approval"
            assert await stage.agent.has_pending_interaction()

    @pytest.mark.parametrize(
        ("path", "state"), [("/", "approval-requested"), ("a", "output-available")]
    )
    async def test_9_10_a_predicate_decides_by_the_input(self, path: str, state: str):
        async with recording(Careful, [call("wipe", {"path": path})], "done") as stage:
            await stage.agent.run("clean up")
            assert part_of(await stage.answer())["state"] == state

    async def test_9_10_a_predicate_that_raises_is_a_tool_error(self):
        async with recording(Careful, [call("doubtful", {})], "sorry") as stage:
            result = await stage.agent.run("go")
            assert result.text == "sorry"
            assert part_of(await stage.answer())["state"] == "output-error"
            assert "ran doubtful" not in stage.log

    async def test_ac30_a_tool_beside_it_runs_in_the_same_turn(self):
        async with recording(Careful, [DELETE, call("a", {"n": 1})]) as stage:
            await ask(stage)
            assert part_of(await stage.answer(), "call-2")["output"] == "a1"


class TestAllowing:
    async def test_ac34_the_tool_runs_once_before_the_first_step(self):
        async with recording(Careful, [DELETE], "gone") as stage:
            client = await ask(stage)
            stage.log.clear()
            await decide(client, approved=True)
            await idle(stage)
            wanted = ("before_turn", "before_tool_call", "ran", "after_tool_call", "before_step")
            order = [line for line in hooks(stage.log) if line.split(" ")[0] in wanted]
            assert order[:5] == [
                "before_turn",
                "before_tool_call delete",
                "ran delete a",
                "after_tool_call delete executed",
                "before_step 0",
            ]
            assert results(stage) == ["deleted a"]

    async def test_case_58_the_result_is_an_update_and_a_chunk_of_the_continuation(self):
        """DESIGN §8.14: between `start` and the first step. The call comes first once more, for
        clients that read a continuation into an empty message (spec/01 F20).
        """
        async with recording(Careful, [DELETE], "gone") as stage:
            client = await ask(stage)
            other = await stage.connect("other")
            asked = part_of(await stage.answer())["approval"]["id"]
            await decide(client, approved=True)
            request_id = await continuation_of(client)
            await other.until_end(request_id)
            states = [part_of(message)["state"] for message in updates(other)]
            assert states == ["approval-responded", "output-available"]
            approval = part_of(updates(other)[0])["approval"]
            assert approval == {"id": asked, "approved": True}
            told = other.chunks(request_id)
            assert [chunk["type"] for chunk in told[:4]] == [
                "start",
                "tool-input-available",
                "tool-output-available",
                "start-step",
            ]
            assert (told[1]["input"], told[2]["output"]) == ({"path": "a"}, "deleted a")
            assert not any("toolCallId" in chunk for chunk in told[4:])
            messages = await stage.messages()
            assert (len(messages), text_of(messages[1])) == (2, "gone")

    async def test_ac36_before_tool_call_is_the_last_gate(self):
        class Blocking(Careful, name="careful"):
            async def before_tool_call(self, ctx: Any) -> Any:
                return Block("not today") if ctx.phase == "approved" else None

        async with recording(Blocking, [DELETE], "ok") as stage:
            client = await ask(stage)
            await decide(client, approved=True)
            await idle(stage)
            assert results(stage) == ["not today"]
            assert "ran delete a" not in stage.log

    async def test_9_10_the_input_is_validated_again(self):
        class Rewriting(Careful, name="careful"):
            async def before_tool_call(self, ctx: Any) -> Any:
                return Allow({"wrong": 1}) if ctx.phase == "approved" else None

        async with recording(Rewriting, [DELETE], "ok") as stage:
            client = await ask(stage)
            await decide(client, approved=True)
            await idle(stage)
            assert part_of(await stage.answer())["state"] == "output-error"
            assert "ran delete a" not in stage.log

    async def test_a_tool_that_is_gone_by_then_is_an_error_for_the_model(self):
        async with recording(Careful, [DELETE], "ok") as stage:
            await ask(stage)
            agent: Any = stage.agent
            agent._turns.parts.own_tools.pop("delete")
            await stage.agent.respond_to_approval("call-1", True)
            await idle(stage)
            assert part_of(await stage.answer())["state"] == "output-error"

    async def test_both_of_two_are_run_in_one_continuation(self):
        async with recording(Careful, [DELETE, call("delete", {"path": "b"})], "gone") as stage:
            await ask(stage)
            await stage.agent.respond_to_approval("call-1", True)
            await idle(stage)
            assert len(stage.model.requests) == 1
            await stage.agent.respond_to_approval("call-2", True)
            await idle(stage)
            assert results(stage) == ["deleted a", "deleted b"]
            assert len(stage.model.requests) == 2

    async def test_an_approval_while_the_turn_streams_runs_in_its_continuation(self):
        class Slow(Careful, name="careful"):
            @tool
            async def slow(self) -> str:
                """Waits until the call beside it is allowed."""
                while not await self.respond_to_approval("call-1", True):
                    pass
                return "slow"

        async with recording(Slow, [DELETE, call("slow", {})], "gone") as stage:
            result = await stage.agent.run("go")
            await idle(stage)
            assert result.stop_reason == "approval"
            assert stage.log.count("ran delete a") == 1
            assert results(stage) == ["deleted a", "slow"]

    async def test_a_result_that_grows_is_told_as_it_does(self):
        async with recording(Careful, [call("sweep", {})], "swept") as stage:
            client = await ask(stage)
            other = await stage.connect("other")
            await decide(client, approved=True)
            request_id = await continuation_of(client)
            await other.until_end(request_id)
            told = [c for c in other.chunks(request_id) if "toolCallId" in c]
            assert [c["type"] for c in told] == ["tool-input-available", *OUTPUTS]
            assert [c.get("preliminary", False) for c in told[1:]] == [True, True, False]
            assert part_of(await stage.answer())["preliminary"] is False

    async def test_a_turn_that_a_tool_ends_leaves_no_result_that_waits_for_more(self):
        async with recording(Careful, [call("give_up", {})]) as stage:
            await ask(stage)
            await stage.agent.respond_to_approval("call-1", True)
            await idle(stage)
            assert part_of(await stage.answer())["state"] == "output-error"


class TestRefusing:
    async def test_ac35_the_reason_reaches_the_model_and_nothing_runs(self):
        async with recording(Careful, [DELETE], "ok then") as stage:
            await ask(stage)
            await stage.agent.respond_to_approval("call-1", False, reason="too risky")
            await idle(stage)
            assert results(stage) == ["too risky"]
            assert part_of(await stage.answer())["state"] == "output-denied"
            assert "ran delete a" not in stage.log
            assert "after_tool_call delete denied" in stage.log

    async def test_case_59_over_the_socket(self):
        async with recording(Careful, [DELETE], "ok then") as stage:
            client = await ask(stage)
            await decide(client, approved=False, reason="too risky")
            await idle(stage)
            part = part_of(updates(client)[-1])
            assert (part["state"], part["approval"]["approved"]) == ("output-denied", False)
            assert results(stage) == ["too risky"]

    async def test_3_12_the_first_decision_stays(self):
        async with recording(Careful, [DELETE], "ok then") as stage:
            await ask(stage)
            assert await stage.agent.respond_to_approval("call-1", False, auto_continue=False)
            assert not await stage.agent.respond_to_approval("call-1", True)
            assert len(stage.model.requests) == 1


async def test_a_new_message_withdraws_a_waiting_approval_and_says_that_nothing_ran():
    async with recording(Careful, [DELETE], "something else") as stage:
        await stage.agent.run("delete it")
        await stage.agent.run("never mind")
        part = part_of((await stage.messages())[1])
        assert (part["state"], part["errorText"]) == (
            "output-error",
            "Not run: the conversation went on before anybody allowed it.",
        )
        assert not await stage.agent.respond_to_approval(part["toolCallId"], approved=True)


class TestACrash:
    async def test_an_approved_call_runs_at_the_next_start_if_it_had_not_begun(
        self, tmp_path: Path
    ):
        path, gate, log = tmp_path / "x.db", pause(), Log()

        class Held(Careful, name="careful"):
            async def before_turn(self, ctx: Any) -> Any:
                if ctx.continuation:
                    await gate.pass_through(ctx.abort_signal)

        Held.log = Careful.log = log
        async with running(Held, [DELETE], store=SqliteStore(path), drain=0.0) as stage:
            await stage.agent.run("clean up")
            await stage.agent.respond_to_approval("call-1", True)
            await gate.reached()
        async with running(Careful, "gone", store=SqliteStore(path)) as stage:
            await idle(stage)
            assert log.count("ran delete a") == 1
            assert results(stage) == ["deleted a"]
            assert text_of(await stage.answer()) == "gone"
