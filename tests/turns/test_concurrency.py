"""What becomes of a question that comes while the agent is busy; regenerate, edit, clear, steer.

spec/01 §8 and cases 26-31, 36; spec/02 §2.13, §3.5-3.8, AC52-AC54, AC97; DESIGN §8.1, §8.8.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.turns.support import Client, Stage, name_of, running
from thinkwell import Think, tool
from thinkwell.core.errors import ConfigurationError
from thinkwell.core.principal import Principal
from thinkwell.journal.turns import TurnRecord
from thinkwell.messages.message import UIMessage, text_of, user_message
from thinkwell.store.sqlite import SqliteStore
from thinkwell.testing import call, pause, text
from thinkwell.turn.ask.policy import read_policy


class Plain(Think):
    time_limits = {"grace": 0.0}

    @tool
    async def look(self) -> str:
        """Look."""
        return "seen"


def agent_with(policy: Any) -> type[Plain]:
    class Busy(Plain, name="busy"):
        message_concurrency = policy

    return Busy


async def idle(stage: Stage[Any]) -> None:
    await stage.agent._turns.wait_until_idle()


async def find(stage: Stage[Any], request_id: str) -> TurnRecord | None:
    return await stage.agent._turns.find(request_id)


async def texts(stage: Stage[Any]) -> list[str]:
    return [text_of(message) for message in await stage.messages()]


async def ask_meanwhile(stage: Stage[Any], client: Client, gate: Any, *more: str) -> None:
    """q1 runs up to the gate; the rest is sent; then the gate opens and all ends."""
    await client.ask("u1", "q1")
    await gate.reached()
    for request_id in more:
        await client.ask(request_id.replace("q", "u"), request_id)
    gate.open()
    await idle(stage)


class TestPolicies:
    async def test_case_26_drop_stores_nothing_and_gives_the_transcript_back(self):
        gate = pause()
        async with running(agent_with("drop"), [text("a1"), gate]) as stage:
            client, other = await stage.connect(), await stage.connect("other")
            await client.ask("u1", "q1")
            await gate.reached()
            seen = len(other.frames)
            await client.ask("u2", "q2")
            snapshot, end = client.frames[-2:]
            assert [text_of(m) for m in snapshot["messages"]] == ["u1", "a1"]
            assert (end["id"], end["done"], end["body"]) == ("q2", True, "")
            assert len(other.frames) == seen
            gate.open()
            await idle(stage)
            assert await texts(stage) == ["u1", "a1"]

    @pytest.mark.parametrize("policy", ["latest", "merge"])
    async def test_case_27_28_ac54_only_the_newest_runs_and_sees_all_questions(self, policy: str):
        """Merge keeps the messages apart: variant B of case 28."""
        gate = pause()
        async with running(agent_with(policy), [text("a1"), gate], "a3") as stage:
            client = await stage.connect()
            await ask_meanwhile(stage, client, gate, "q2", "q3")
            assert await texts(stage) == ["u1", "a1", "u2", "u3", "a3"]
            assert len(stage.model.requests) == 2
            (end,) = client.ends("q2")
            assert (end["body"], end["outcome"]) == ("", "skipped")
            assert client.chunks("q2") == []

    async def test_a_question_that_was_taken_over_is_shown_all_the_time(self):
        gate = pause()
        async with running(agent_with("latest"), [text("a1"), gate], "a3") as stage:
            client, other = await stage.connect(), await stage.connect("other")
            await client.ask("u1", "q1")
            await gate.reached()
            await client.ask("u2", "q2")
            await client.ask("u3", "q3")
            assert [text_of(m) for m in other.transcript()] == ["u1", "u2", "u3"]
            gate.open()
            await idle(stage)

    @pytest.mark.parametrize(
        "policy", ["latest", "merge", {"strategy": "debounce", "debounce_ms": 30}]
    )
    async def test_nobodys_question_becomes_part_of_somebody_elses_turn(self, policy: Any):
        gate = pause()
        async with running(agent_with(policy), [text("a1"), gate], "a2", "a4") as stage:
            ann = await stage.connect("a", principal=Principal(id="ann"))
            sam = await stage.connect("s", principal=Principal(id="sam"))
            await ann.ask("u1", "q1")
            await gate.reached()
            await sam.ask("u2", "q2")
            await ann.ask("u3", "q3")
            await ann.ask("u4", "q4")
            gate.open()
            await idle(stage)
            assert await texts(stage) == ["u1", "a1", "u2", "a2", "u3", "u4", "a4"]
            asked = {q: await find(stage, q) for q in ("q2", "q4")}
            assert {q: r and r.principal and r.principal.id for q, r in asked.items()} == {
                "q2": "sam",
                "q4": "ann",
            }

    async def test_case_29_debounce_runs_the_last_one_after_a_quiet_time(self):
        gate = pause()
        policy = {"strategy": "debounce", "debounce_ms": 30}
        async with running(agent_with(policy), [text("a1"), gate], "a3") as stage:
            client = await stage.connect()
            await ask_meanwhile(stage, client, gate, "q2", "q3")
            assert await texts(stage) == ["u1", "a1", "u2", "u3", "a3"]
            record = await find(stage, "q3")
            assert record is not None
            assert record.not_before is not None
            assert (record.started_at or 0) >= record.not_before

    async def test_case_29_a_debounced_turn_first_in_line_is_taken_over_too(self):
        gate = pause()
        policy = {"strategy": "debounce", "debounce_ms": 3_600_000}
        async with running(agent_with(policy), [text("a1"), gate]) as stage:
            client = await stage.connect()
            await client.ask("u1", "q1")
            await gate.reached()
            await client.ask("u2", "q2")
            gate.open()
            await client.until_end("q1")
            await client.ask("u3", "q3")
            await client.until_end("q2")
            record = await find(stage, "q3")
            assert record is not None
            assert [m["id"] for m in record.input] == ["u-q2", "u-q3"]

    async def test_3_8_the_first_question_always_runs_at_once(self):
        policy = {"strategy": "debounce", "debounce_ms": 3_600_000}
        async with running(agent_with(policy), "a1") as stage:
            client = await stage.connect()
            await client.ask("u1", "q1")
            await client.until_end("q1")

    async def test_8_1_two_tabs_at_the_same_moment_overlap(self):
        async with running(agent_with("drop"), "a1", suspends=True) as stage:
            one, two = await stage.connect("one"), await stage.connect("two")
            await asyncio.gather(one.ask("u1", "q1"), two.ask("u2", "q2"))
            await idle(stage)
            assert len(stage.model.requests) == 1

    async def test_a_crash_while_a_question_waits_keeps_all_of_it(self, tmp_path: Path):
        gate, path = pause(), tmp_path / "x.db"
        busy = agent_with("latest")
        async with running(busy, [gate], store=SqliteStore(path), drain=0.0) as stage:
            client = await stage.connect()
            await client.ask("u1", "q1")
            await gate.reached()
            await client.ask("u2", "q2")
            await client.ask("u3", "q3")
        async with running(busy, "a1", "a3", store=SqliteStore(path)) as stage:
            await idle(stage)
            assert await texts(stage) == ["u1", "a1", "u2", "u3", "a3"]

    @pytest.mark.parametrize("wrong", [-1, "soon", None, True])
    def test_3_8_an_invalid_quiet_time_is_the_default(self, wrong: Any):
        policy = read_policy({"strategy": "debounce", "debounce_ms": wrong})
        assert policy.debounce == 0.75

    def test_an_unknown_policy_is_named(self):
        with pytest.raises(ConfigurationError, match="newest"):
            read_policy("newest")

    async def test_3_8_a_reset_makes_the_next_question_the_first(self):
        gate = pause()
        async with running(agent_with("drop"), [gate], "a2") as stage:
            client = await stage.connect()
            await client.ask("u1", "q1")
            await gate.reached()
            await stage.agent.reset_turn_state()
            await client.ask("u2", "q2")
            await client.until_end("q2")
            assert (await texts(stage))[-2:] == ["u2", "a2"]


class TestSteering:
    async def test_design_8_8_the_running_turn_stops_at_its_next_step(self):
        gate = pause()
        async with running(Plain, [call("look", {}), gate], "on it") as stage:
            client = await stage.connect()
            await client.ask("u1", "q1")
            await gate.reached()
            await client.ask("u2", "q2")
            submission = await stage.agent.steer("wait")
            gate.open()
            await idle(stage)
            first = await stage.agent.get_turn("q1")
            assert (first.status, first.stop_reason) == ("completed", "steered")
            assert (await stage.agent.get_turn(submission.request_id)).status == "completed"
            said = [text_of(m) for m in await stage.messages() if m["role"] == "user"]
            assert said == ["u1", "wait", "u2"]

    async def test_two_are_answered_in_the_order_they_came(self):
        gate = pause()
        async with running(Plain, [call("look", {}), gate], "a2", "a3") as stage:
            running_turn = asyncio.ensure_future(stage.agent.run("u1"))
            await gate.reached()
            await stage.agent.steer("first")
            await stage.agent.steer("second")
            gate.open()
            await running_turn
            await idle(stage)
            assert (await texts(stage))[-4:] == ["first", "a2", "second", "a3"]

    async def test_the_policy_steers_with_every_question_of_a_client(self):
        gate = pause()
        async with running(agent_with("steer"), [call("look", {}), gate], "a2") as stage:
            client = await stage.connect()
            await ask_meanwhile(stage, client, gate, "q2")
            assert (await stage.agent.get_turn("q1")).stop_reason == "steered"
            assert (await texts(stage))[-2:] == ["u2", "a2"]

    async def test_an_answer_without_tools_just_ends(self):
        gate = pause()
        async with running(Plain, [text("a1"), gate], "a2") as stage:
            running_turn = asyncio.ensure_future(stage.agent.run("u1"))
            await gate.reached()
            await stage.agent.steer("u2")
            gate.open()
            assert (await running_turn).stop_reason == "end"
            await idle(stage)
            assert await texts(stage) == ["u1", "a1", "u2", "a2"]

    async def test_after_a_crash_the_interrupted_turn_is_still_first(self, tmp_path: Path):
        gate, path = pause(), tmp_path / "x.db"
        step = [text("a1"), gate]
        async with running(Plain, step, store=SqliteStore(path), drain=0.0) as stage:
            await stage.agent.submit("u1")
            await gate.reached()
            await stage.agent.steer("u2")
        async with running(Plain, " go on", "a2", store=SqliteStore(path)) as stage:
            await idle(stage)
            assert await texts(stage) == ["u1", "a1 go on", "u2", "a2"]


class TestClear:
    async def test_case_36_ends_go_out_before_the_clear_and_nothing_is_stored(self):
        gate = pause()
        async with running(Plain, [text("a1"), gate]) as stage:
            client, other = await stage.connect(), await stage.connect("other")
            await client.ask("u1", "q1")
            await gate.reached()
            await other.until(lambda frame: "text-start" in str(frame.get("body")))
            await client.ask("u2", "q2")
            await client.send(type="cf_agent_chat_clear")
            names = [name_of(frame) for frame in other.frames]
            assert names.index("done") < names.index("chat_clear")
            assert (len(client.ends("q1")), len(client.ends("q2"))) == (1, 1)
            assert "chat_clear" not in [name_of(frame) for frame in client.frames]
            assert not any(frame.get("id") == "q2" for frame in other.frames)
            await idle(stage)
            assert await stage.messages() == []

    async def test_ac52_turns_that_wait_end_without_hooks(self):
        gate = pause()
        async with running(Plain, [gate]) as stage:
            heard: list[str] = []
            stage.agent.add_hook("on_turn_start", lambda ctx: heard.append(ctx.request_id))
            client = await stage.connect()
            await client.ask("u1", "q1")
            await gate.reached()
            await client.ask("u2", "q2")
            await client.ask("u3", "q3")
            await stage.agent.clear_messages()
            await idle(stage)
            assert (heard, await stage.messages()) == (["q1"], [])
            assert (await stage.agent.get_turn("q3")).status == "skipped"

    async def test_3_6_the_clients_tools_are_forgotten(self):
        async with running(Plain, "a1", "a2") as stage:
            client = await stage.connect()
            await client.ask("u1", "q1", clientTools=[{"name": "locate"}])
            await client.until_end("q1")
            await client.send(type="cf_agent_chat_clear")
            await client.ask("u2", "q2")
            await client.until_end("q2")
            offered = [[spec.name for spec in r.tools] for r in stage.model.requests]
            assert offered == [["look", "locate"], ["look"]]


async def regenerate(client: Client, *messages: UIMessage) -> None:
    await client.request("r1", messages=list(messages), trigger="regenerate-message")


class TestBranches:
    async def test_case_31_ac97_a_regenerated_answer_is_a_sibling(self):
        async with running(Plain, "a1", "a2") as stage:
            client = await stage.connect()
            await client.ask("u1", "q1")
            await client.until_end("q1")
            question, old = await stage.messages()
            await regenerate(client, question)
            await client.until_end("r1")
            assert await texts(stage) == ["u1", "a2"]
            branches = await stage.agent.session.get_branches(question["id"])
            assert [text_of(branch) for branch in branches] == ["a1", "a2"]
            assert client.chunks("r1")[0]["messageId"] != old["id"]

    async def test_case_30_no_policy_applies_to_it(self):
        gate = pause()
        async with running(agent_with("drop"), [text("a1"), gate], "a2") as stage:
            client = await stage.connect()
            await client.ask("u1", "q1")
            await gate.reached()
            await regenerate(client, user_message("u-q1", "u1"))
            gate.open()
            await client.until_end("r1")
            assert await texts(stage) == ["u1", "a2"]

    async def test_design_8_1_an_edited_question_is_a_sibling_on_the_active_path(self):
        async with running(Plain, "a1", "a2", "a3") as stage:
            client = await stage.connect()
            await client.ask("u1", "q1")
            await client.ask("u2", "q2")
            await client.until_end("q2")
            first, answer, second, _ = await stage.messages()
            edited: Any = {**second, "parts": [{"type": "text", "text": "better"}]}
            await client.request("e1", messages=[first, answer, edited])
            end = await client.until_end("e1")
            assert await texts(stage) == ["u1", "a1", "better", "a3"]
            assert end["messageIds"] == [second["id"]]
            branches = await stage.agent.session.get_branches(answer["id"])
            assert [text_of(branch) for branch in branches] == ["u2", "better"]

    async def test_design_8_1_the_first_question_can_be_edited(self):
        async with running(Plain, "a1", "a2") as stage:
            client = await stage.connect()
            await client.ask("u1", "q1")
            await client.until_end("q1")
            await client.request("e1", messages=[user_message("u-q1", "better")])
            await client.until_end("e1")
            assert await texts(stage) == ["better", "a2"]
            assert text_of(client.transcript()[0]) == "better"

    async def test_a_known_question_sent_again_unchanged_is_answered_anew(self):
        async with running(Plain, "a1", "a2") as stage:
            client = await stage.connect()
            await client.ask("u1", "q1")
            await client.until_end("q1")
            await client.request("q2", messages=[user_message("u-q1", "u1")])
            await client.until_end("q2")
            assert await texts(stage) == ["u1", "a2"]
