"""Ways in, the queue, nesting and clearing (spec/02 §2, §3; AC48, AC50-AC53, AC57, AC58)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.turns.recorder import Recorder, recording
from tests.turns.support import loosely, running
from thinkwell import Think, tool
from thinkwell.core.errors import ParentNotFoundError, SubmissionConflictError, TurnNotFoundError
from thinkwell.messages.message import UIMessage, text_of, user_message
from thinkwell.messages.model_messages import TextContent, UserMessage
from thinkwell.store.sqlite import SqliteStore
from thinkwell.testing import ScriptedModel, call, pause, text


class Plain(Think):
    time_limits = {"grace": 0.0}


def texts(messages: list[UIMessage]) -> list[str]:
    return [text_of(message) for message in messages]


class TestTheQueue:
    async def test_ac53_a_question_asked_meanwhile_is_answered_afterwards(self):
        gate = pause()
        async with running(Plain, [text("a1"), gate], "a2") as stage:
            client = await stage.connect()
            await client.ask("u1", "q1")
            await gate.reached()
            await client.ask("u2", "q2")
            gate.open()
            await client.until_end("q2")
            assert texts(await stage.messages()) == ["u1", "a1", "u2", "a2"]
            last = stage.model.requests[1].messages[-1]
            assert last == UserMessage((TextContent("u2"),))

    async def test_design_8_1_an_accepted_question_is_shown_before_its_turn(self):
        gate = pause()
        async with running(Plain, [text("a1"), gate], "a2") as stage:
            client, other = await stage.connect("one"), await stage.connect("two")
            await client.ask("u1", "q1")
            await gate.reached()
            await client.ask("u2", "q2")
            assert texts(other.transcript())[-1] == "u2"
            assert texts(await stage.messages()) == ["u1"]
            gate.open()
            await client.until_end("q2")

    async def test_3_1_a_turn_that_fails_leaves_the_slot_free(self):
        async with running(Plain, lambda _: 1 / 0, "fine") as stage:
            first, second = await asyncio.gather(stage.agent.run("1"), stage.agent.run("2"))
            assert (first.status, second.text) == ("error", "fine")

    async def test_two_agents_run_beside_each_other(self):
        gate = pause()
        async with running(Plain, [gate, "slow"]) as stage:
            slow = asyncio.ensure_future(stage.agent.run("hi"))
            await gate.reached()
            async with running(Plain, "fast") as other:
                assert (await other.agent.run("hi")).text == "fast"
            gate.open()
            assert (await slow).text == "slow"


class TestChaining:
    async def test_ac48_a_response_hook_may_start_the_next_turn_and_wait_for_it(self):
        async with running(Plain, "one", "two") as stage:
            chained: list[Any] = []

            async def again(ctx: Any) -> None:
                if not chained:
                    chained.append(None)
                    chained[0] = await ctx.agent.save_messages([user_message("u2", "more")])

            stage.agent.add_hook("on_chat_response", again)
            first = await stage.agent.run("hi")
            assert (first.text, chained[0].text) == ("one", "two")
            assert texts(await stage.messages()) == ["hi", "one", "more", "two"]

    @pytest.mark.parametrize("verb", ["run", "save_messages", "stream"])
    async def test_ac50_a_tool_that_waits_for_its_own_agent_gets_a_tool_error(self, verb: str):
        class Nests(Plain):
            expose_errors = True

            @tool
            async def nest(self) -> str:
                """Calls its own agent."""
                await blocking(self, verb)
                return "never"

        async with running(Nests, [call("nest")], "ok") as stage:
            assert (await stage.agent.run("hi")).status == "completed"
            (part,) = [p for p in (await stage.answer())["parts"] if "toolCallId" in p]
            assert part["state"] == "output-error"
            assert all(word in part["errorText"] for word in (verb, "submit", "add_messages"))

    async def test_ac50_submit_and_add_messages_work_inside_a_tool(self):
        class Nests(Plain):
            @tool
            async def nest(self) -> str:
                """Leaves work for later."""
                await self.add_messages([user_message("note", "a note")])
                return (await self.submit("later", submission_id="s1")).status

        async with running(Nests, [call("nest")], "ok", "answered later") as stage:
            await stage.agent.run("hi")
            while (await stage.agent.get_turn("s1")).status != "completed":
                stage.log.remove("settled completed")
                await stage.log.until("settled completed")
            assert {"later", "answered later"} <= set(texts(await stage.messages()))
            assert await stage.agent.session.get_message("note") is not None

    @pytest.mark.parametrize("event", ["before_turn", "before_step", "before_tool_call"])
    async def test_3_3_a_hook_inside_the_turn_may_not_wait_for_it_either(self, event: str):
        async def nest(ctx: Any) -> None:
            with pytest.raises(Exception, match="submit"):
                await ctx.agent.run("x")

        async with recording(Recorder, [call("a")], "ok") as stage:
            loosely(stage.agent).add_hook(event, nest)
            assert (await stage.agent.run("hi")).status == "completed"
            assert stage.fields("hook:error") == []

    async def test_3_3_a_turn_of_another_agent_is_not_inside(self):
        async with running(Plain, "from the other") as other:

            class Asks(Plain):
                @tool
                async def ask(self) -> str:
                    """Asks another agent."""
                    return (await other.agent.run("hi")).text

            async with running(Asks, [call("ask")], "ok") as stage:
                await stage.agent.run("hi")
                (part,) = [p for p in (await stage.answer())["parts"] if "toolCallId" in p]
                assert part["output"] == "from the other"

    async def test_ac51_a_background_task_of_a_tool_may_wait_once_the_turn_has_ended(self):
        ended = asyncio.Event()
        background: list[asyncio.Task[Any]] = []

        class Spawns(Plain):
            @tool
            async def spawn(self) -> str:
                """Leaves a task behind."""

                async def later() -> Any:
                    await ended.wait()
                    return await self.save_messages([user_message("u2", "later")])

                background.append(asyncio.ensure_future(later()))
                return "spawned"

        async with running(Spawns, [call("spawn")], "ok", "late answer") as stage:
            await stage.agent.run("hi")
            ended.set()
            assert (await background[0]).text == "late answer"


class TestClear:
    async def test_ac52_what_waits_is_stale_and_what_runs_keeps_nothing(self):
        gate = pause()
        async with recording(Recorder, [text("half"), gate]) as stage:
            turns = [asyncio.ensure_future(stage.agent.run("a"))]
            await gate.reached()
            turns += [asyncio.ensure_future(stage.agent.run(name)) for name in "bc"]
            await stage.log.until("accepted")
            while stage.log.count("accepted") < 3:
                await asyncio.sleep(0)
            await stage.agent.clear_messages()
            results = [await turn for turn in turns]
            assert [r.status for r in results] == ["skipped"] * 3
            assert await stage.messages() == []
            assert stage.log.count("before_turn") == 1
            assert not [line for line in stage.log if line.startswith("on_chat_response")]
            assert len(stage.model.requests) == 1

    async def test_01_18_36_the_ends_go_out_before_the_clear(self):
        gate = pause()
        async with running(Plain, [text("half"), gate]) as stage:
            asker, other = await stage.connect("one"), await stage.connect("two")
            await asker.ask("a", "q1")
            await gate.reached()
            await asker.ask("b", "q2")
            await asker.send(type="cf_agent_chat_clear")
            kinds = [f["type"].removeprefix("cf_agent_") for f in other.frames]
            assert kinds[-1] == "chat_clear"
            assert [len(other.ends(q)) for q in ("q1", "q2")] == [1, 0]
            assert [len(asker.ends(q)) for q in ("q1", "q2")] == [1, 1]
            assert "cf_agent_chat_clear" not in [f["type"] for f in asker.frames]
            assert await stage.messages() == []

    async def test_after_a_clear_the_next_turn_starts_from_nothing(self):
        async with running(Plain, "one", "two") as stage:
            await stage.agent.run("before")
            await stage.agent.clear_messages()
            await stage.agent.run("after")
            assert texts(await stage.messages()) == ["after", "two"]
            assert len(stage.model.requests[1].messages) == 1

    async def test_a_tool_may_clear_its_own_conversation(self):
        class Clears(Plain):
            @tool
            async def forget(self) -> str:
                """Forgets everything."""
                await self.clear_messages()
                return "gone"

        async with running(Clears, [call("forget")]) as stage:
            assert (await stage.agent.run("hi")).status == "skipped"
            assert await stage.messages() == []

    @pytest.mark.parametrize("suspends", [False, True])
    async def test_a_turn_accepted_while_the_clear_commits_ends_for_good(self, suspends: bool):
        async with running(Plain, "answer", "next", suspends=suspends) as stage:
            submitted, _ = await asyncio.gather(
                stage.agent.submit("hi"), stage.agent.clear_messages()
            )
            assert (await stage.agent.run("again")).status == "completed"
            turn = await stage.agent.get_turn(submitted.request_id)
            assert turn.status in ("completed", "skipped")
            assert ("hi" in texts(await stage.messages())) == (turn.status == "completed")

    @pytest.mark.parametrize("suspends", [False, True])
    async def test_a_clear_right_after_acceptance_leaves_nothing(self, suspends: bool):
        async with running(Plain, "answer", "next", suspends=suspends) as stage:
            submitted = await stage.agent.submit("hi")
            await stage.agent.clear_messages()
            assert await stage.messages() == []
            assert (await stage.agent.get_turn(submitted.request_id)).status == "skipped"

    async def test_3_7_a_clear_at_any_moment_leaves_nothing(self):
        for moment in range(0, 60, 3):
            async with running(Plain, "a", "b", suspends=True) as stage:
                turns = [asyncio.ensure_future(stage.agent.run(name)) for name in "ab"]
                for _ in range(moment):
                    await asyncio.sleep(0)
                await stage.agent.clear_messages()
                ends = [(await turn).status for turn in turns]
                assert set(ends) <= {"completed", "skipped"}
                assert await stage.messages() == [], f"after {moment} iterations"

    async def test_a_hook_that_clears_does_not_wait_for_turns_that_wait_for_it(self):
        async def clear_once(ctx: Any) -> None:
            await ctx.agent.clear_messages()

        async with running(Plain, "never") as stage:
            dispose = stage.agent.add_hook("before_turn", clear_once)
            first = asyncio.ensure_future(stage.agent.run("a"))
            second = asyncio.ensure_future(stage.agent.run("b"))
            results = [(await first).status, (await second).status]
            assert results == ["skipped", "skipped"]
            dispose()
            assert await stage.messages() == []

    async def test_after_two_clears_at_once_an_accepted_turn_survives_a_restart(
        self, tmp_path: Path
    ):
        gate = pause()

        class Remembers(Plain):
            model = ScriptedModel([[gate], "answered at last"])

        async with running(Remembers, store=SqliteStore(tmp_path / "x.db"), drain=0) as stage:
            await asyncio.gather(stage.agent.clear_messages(), stage.agent.clear_messages())
            submitted = await stage.agent.submit("hi")
            await gate.reached()
        async with running(Remembers, store=SqliteStore(tmp_path / "x.db")) as stage:
            await stage.log.until("settled")
            assert (await stage.agent.get_turn(submitted.request_id)).status == "completed"


class TestSubmissions:
    async def test_ac57_the_same_key_gives_the_same_turn(self):
        async with running(Plain, "once") as stage:
            first = await stage.agent.submit("hi", idempotency_key="k")
            again = await stage.agent.submit("hi", idempotency_key="k")
            assert (first.accepted, again.accepted) == (True, False)
            assert first.request_id == again.request_id
            await stage.log.until("settled completed")
            assert texts(await stage.messages()) == ["hi", "once"]

    async def test_2_35_an_id_and_a_key_of_different_turns_conflict(self):
        async with running(Plain, "one", "two") as stage:
            await stage.agent.submit("a", submission_id="s1", idempotency_key="k1")
            await stage.agent.submit("b", submission_id="s2", idempotency_key="k2")
            with pytest.raises(SubmissionConflictError):
                await stage.agent.submit("c", submission_id="s1", idempotency_key="k2")
            with pytest.raises(SubmissionConflictError):
                await stage.agent.submit("c", submission_id="s1", idempotency_key="k3")

    async def test_a_key_with_another_input_conflicts_until_a_clear_erases_the_input(self):
        async with running(Plain, "one") as stage:
            first = await stage.agent.submit("a", idempotency_key="k")
            await stage.log.until("settled completed")
            with pytest.raises(SubmissionConflictError, match="another input"):
                await stage.agent.submit("b", idempotency_key="k")
            await stage.agent.clear_messages()
            again = await stage.agent.submit("b", idempotency_key="k")
            assert (again.accepted, again.request_id) == (False, first.request_id)

    async def test_2_34_a_submission_needs_a_message(self):
        async with running(Plain) as stage:
            with pytest.raises(ValueError, match="submit"):
                await stage.agent.submit([])

    async def test_an_unknown_turn_is_an_error_that_names_it(self):
        async with running(Plain) as stage:
            with pytest.raises(TurnNotFoundError, match="nobody"):
                await stage.agent.get_turn("nobody")


class TestMessages:
    async def test_ac58_an_unknown_parent_raises_and_stores_nothing(self):
        async with running(Plain) as stage:
            with pytest.raises(ParentNotFoundError):
                await stage.agent.add_messages([user_message("u", "x")], parent_id="nobody")
            assert await stage.messages() == []

    async def test_ac58_append_leaves_a_known_message_as_it_is_and_upsert_does_not(self):
        async with running(Plain) as stage:
            await stage.agent.add_messages([user_message("u", "old")])
            await stage.agent.add_messages([user_message("u", "new")])
            assert texts(await stage.messages()) == ["old"]
            await stage.agent.add_messages([user_message("u", "new")], mode="upsert")
            assert texts(await stage.messages()) == ["new"]

    async def test_2_40_added_messages_are_shown_to_clients(self):
        async with running(Plain) as stage:
            client = await stage.connect()
            await stage.agent.add_messages([user_message("u", "hello")])
            assert texts(client.transcript()) == ["hello"]

    async def test_2_25_a_function_makes_the_input_inside_the_slot(self):
        async with running(Plain, "one", "two") as stage:
            await stage.agent.run("first")
            result = await stage.agent.save_messages(
                lambda history: [*history, user_message("u2", f"{len(history)} so far")]
            )
            assert result.text == "two"
            assert texts(await stage.messages()) == ["first", "one", "2 so far", "two"]

    async def test_2_25_a_function_that_raises_fails_the_turn(self):
        def broken(_: Any) -> Any:
            raise RuntimeError("no input today")

        async with running(Plain, "fine") as stage:
            result = await stage.agent.save_messages(broken)
            assert (result.status, result.error) == ("error", "no input today")
            assert (await stage.agent.run("hi")).text == "fine"


async def blocking(agent: Think, verb: str) -> Any:
    """Wait for a turn in one of the three ways."""
    match verb:
        case "run":
            return await agent.run("x")
        case "save_messages":
            return await agent.save_messages([user_message("n", "x")])
        case _:
            return [chunk async for chunk in agent.stream("x")]
