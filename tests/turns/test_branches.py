"""Calls of every chat agent: branches of the conversation and how an answer was made.

DESIGN §8.1 (`getBranches`, `setActiveLeaf`), spec/01 §8.4-8.5.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.turns.support import Client, Stage, running
from tests.turns.test_approvals import decide
from tests.turns.test_client_tools import LOCATE, answer, idle
from tests.turns.test_rpc import failure, result
from thinkwell import Think, tool
from thinkwell.core.ids import new_id
from thinkwell.messages.message import UIMessage, text_of, user_message
from thinkwell.store.sqlite import SqliteStore
from thinkwell.testing import call, error, pause, reasoning, text


class Tree(Think):
    """A chat with a tool."""

    @tool
    async def add(self, a: int, b: int) -> int:
        """Add."""
        return a + b

    @tool(needs_approval=True)
    async def sign(self) -> str:
        """Sign."""
        return "signed"


async def ask(client: Client, request_id: str = "q1", **body: Any) -> str:
    """Ask one question and wait; the id of the answer."""
    await client.ask(f"question {request_id}", request_id, **body)
    await client.until_end(request_id)
    return client.transcript()[-1]["id"]


async def regenerate(client: Client, request_id: str, *messages: UIMessage) -> str:
    """Let the last of these messages be answered once more; the id of the new answer."""
    await client.request(request_id, messages=list(messages), trigger="regenerate-message")
    await client.until_end(request_id)
    return client.transcript()[-1]["id"]


async def branches(client: Client, message_id: str | None) -> list[str]:
    found = await result(client, "getBranches", message_id, id=new_id())
    return [message["id"] for message in found]


async def switch(client: Client, message_id: str) -> None:
    assert await result(client, "setActiveLeaf", message_id, id=new_id()) is None


async def details(client: Client, message_id: str) -> Any:
    return await result(client, "getTurnDetails", message_id, id=new_id())


def shown(client: Client) -> list[str]:
    return [text_of(message) for message in client.transcript()]


class TestGetBranches:
    async def test_8_4_answers_to_one_question_are_its_branches_oldest_first(self):
        async with running(Tree, "one", "two", "three") as stage:
            client = await stage.connect()
            first = await ask(client)
            question = client.transcript()[0]
            second = await regenerate(client, "q2", question)
            third = await regenerate(client, "q3", question)
            assert await branches(client, question["id"]) == [first, second, third]
            assert shown(client) == ["question q1", "three"]

    async def test_null_gives_the_beginnings_of_the_conversation(self):
        async with running(Tree, "one", "two") as stage:
            client = await stage.connect()
            assert await branches(client, None) == []
            await ask(client)
            assert await branches(client, None) == ["u-q1"]
            await client.request("q2", messages=[user_message("u-q1", "asked differently")])
            await client.until_end("q2")
            roots = await result(client, "getBranches", None)
            assert [text_of(root) for root in roots] == ["question q1", "asked differently"]

    async def test_without_an_argument_it_gives_the_beginnings_too(self):
        async with running(Tree, "one") as stage:
            client = await stage.connect()
            await ask(client)
            assert [root["id"] for root in await result(client, "getBranches")] == ["u-q1"]

    async def test_an_unknown_message_and_a_leaf_have_none(self):
        async with running(Tree, "one") as stage:
            client = await stage.connect()
            leaf = await ask(client)
            assert (await branches(client, leaf), await branches(client, "nope")) == ([], [])

    async def test_an_id_must_be_text(self):
        async with running(Tree) as stage:
            assert "message_id" in await failure(await stage.connect(), "getBranches", 7)

    async def test_it_may_be_asked_while_a_turn_runs(self):
        gate = pause()
        async with running(Tree, "one", [text("tw"), gate]) as stage:
            client = await stage.connect()
            first = await ask(client)
            question = client.transcript()[0]
            await client.request("q2", messages=[question], trigger="regenerate-message")
            await gate.reached()
            assert await branches(client, question["id"]) == [first]
            gate.open()
            await client.until_end("q2")
            assert len(await branches(client, question["id"])) == 2

    async def test_reasoning_that_clients_must_not_see_is_not_shown(self):
        class Discreet(Tree):
            send_reasoning = False

        async with running(Discreet, [reasoning("secret plan"), "one"]) as stage:
            client = await stage.connect()
            answer_id = await ask(client)
            (branch,) = await result(client, "getBranches", "u-q1")
            await switch(client, answer_id)
            assert [part["type"] for part in branch["parts"]] == ["step-start", "text"]
            assert "secret" not in str(client.frames)
            assert "secret plan" in str(await stage.answer())


class TestSetActiveLeaf:
    async def test_every_tab_shows_the_branch_and_the_next_question_goes_on_there(self):
        async with running(Tree, "one", "two", "three") as stage:
            client, other = await stage.connect("a"), await stage.connect("b")
            first = await ask(client)
            await regenerate(client, "q2", client.transcript()[0])
            await switch(client, first)
            assert shown(client) == shown(other) == ["question q1", "one"]
            assert "connect" not in other.frames[-1]
            await ask(client, "q3")
            assert shown(other) == ["question q1", "one", "question q3", "three"]
            assert "two" not in str(stage.model.requests[-1].messages)

    async def test_the_newest_leaf_below_the_message_is_taken(self):
        async with running(Tree, "one", "deeper", "other") as stage:
            client = await stage.connect()
            first = await ask(client)
            await ask(client, "q2")
            other = await regenerate(client, "q3", client.transcript()[0])
            await switch(client, first)
            assert shown(client) == ["question q1", "one", "question q2", "deeper"]
            await switch(client, "u-q1")
            assert shown(client)[-1] == "other"
            await switch(client, other)
            assert shown(client) == ["question q1", "other"]

    async def test_8_5_an_edited_question_can_be_undone(self):
        async with running(Tree, "one", "two") as stage:
            client = await stage.connect()
            await ask(client)
            await client.request("q2", messages=[user_message("u-q1", "asked differently")])
            await client.until_end("q2")
            assert shown(client) == ["asked differently", "two"]
            await switch(client, "u-q1")
            assert shown(client) == ["question q1", "one"]

    async def test_the_choice_outlives_the_process(self, tmp_path: Path):
        path = tmp_path / "x.db"
        async with running(Tree, "one", "two", store=SqliteStore(path)) as stage:
            client = await stage.connect()
            first = await ask(client)
            await regenerate(client, "q2", client.transcript()[0])
            await switch(client, first)
        async with running(Tree, store=SqliteStore(path)) as stage:
            assert shown(await stage.connect()) == ["question q1", "one"]

    async def test_an_unknown_message_changes_nothing(self):
        async with running(Tree, "one") as stage:
            client = await stage.connect()
            await ask(client)
            before = len(client.frames)
            assert "'nope'" in await failure(client, "setActiveLeaf", "nope")
            assert (len(client.frames), shown(client)) == (before + 1, ["question q1", "one"])

    async def test_it_is_refused_while_a_turn_runs(self):
        gate = pause()
        async with running(Tree, "one", "two", [gate, "three"]) as stage:
            client = await stage.connect()
            first = await ask(client)
            await regenerate(client, "q2", client.transcript()[0])
            await client.ask("more", "q3")
            await gate.reached()
            assert "turn" in await failure(client, "setActiveLeaf", first)
            gate.open()
            await client.until_end("q3")
            assert shown(client) == ["question q1", "two", "more", "three"]

    async def test_design_8_2_an_answer_that_waits_on_the_other_branch_does_not_go_on(self):
        async with running(Tree, "one", [call("sign")]) as stage:
            client = await stage.connect()
            first = await ask(client)
            await regenerate(client, "q2", client.transcript()[0])
            await switch(client, first)
            await decide(client, approved=True)
            await idle(stage)
            assert shown(client) == ["question q1", "one"]


class TestGetTurnDetails:
    async def test_it_tells_steps_tokens_and_times(self):
        step = [call("add", {"a": 1, "b": 2}), call("add", {"a": 3, "b": 4})]
        async with running(Tree, step, "done") as stage:
            client = await stage.connect()
            told = await details(client, await ask(client))
            assert (told["requestId"], told["status"], told["steps"]) == ("q1", "completed", 2)
            usage = {k: v for k, v in told["usage"].items() if v is not None}
            assert usage == {"inputTokens": 20, "outputTokens": 10, "totalTokens": 30}
            assert told["tools"].keys() == {"call-1", "call-2"}
            assert all(tool["durationMs"] >= 0 for tool in told["tools"].values())
            assert (told["durationMs"] >= 0, told["startedAt"] > 0) == (True, True)

    async def test_each_answer_has_its_own(self):
        async with running(Tree, "one", [call("add", {"a": 1, "b": 2})], "two") as stage:
            client = await stage.connect()
            first = await ask(client)
            second = await regenerate(client, "q2", client.transcript()[0])
            assert [(await details(client, m))["steps"] for m in (first, second)] == [1, 2]
            assert [(await details(client, m))["requestId"] for m in (first, second)] == [
                "q1",
                "q2",
            ]

    async def test_design_8_2_what_continuations_did_is_counted_in(self):
        async with running(Tree, [call("locate", {})], [call("sign")], "done") as stage:
            client = await stage.connect()
            message_id = await ask(client, clientTools=[LOCATE])
            await answer(client)
            await idle(stage)
            await decide_on(client, stage)
            told = await details(client, message_id)
            assert (told["steps"], told["usage"]["totalTokens"]) == (3, 45)
            assert (told["status"], told["requestId"] == "q1") == ("completed", False)
            assert told["tools"].keys() == {"call-2"}

    async def test_design_8_2_a_continuation_that_was_skipped_does_not_count(self):
        gate = pause()
        async with running(Tree, [call("locate", {}), gate], "later") as stage:
            client = await stage.connect()
            await client.ask("where?", clientTools=[LOCATE])
            await gate.reached()
            await client.ask("something else", "q2")
            await answer(client)
            gate.open()
            await client.until_end("q2")
            await idle(stage)
            told = await details(client, (await stage.messages())[1]["id"])
            assert (told["requestId"], told["status"], told["steps"]) == ("q1", "completed", 1)

    @pytest.mark.parametrize("message_id", ["u-q1", "nope"])
    async def test_a_message_that_no_turn_wrote_has_none(self, message_id: str):
        async with running(Tree, "one") as stage:
            client = await stage.connect()
            await ask(client)
            assert await details(client, message_id) is None

    async def test_it_may_be_asked_while_the_turn_runs(self):
        gate = pause()
        async with running(Tree, [text("on"), gate]) as stage:
            client = await stage.connect()
            await client.ask("hi")
            await client.until(lambda frame: "text-delta" in frame.get("body", ""))
            message_id = client.chunks()[0]["messageId"]
            told = await details(client, message_id)
            assert (told["requestId"], told["status"]) == ("q1", "running")
            gate.open()
            await client.until_end()
            assert (await details(client, message_id))["status"] == "completed"

    async def test_a_turn_that_failed_says_so(self):
        async with running(Tree, [text("on"), error(RuntimeError("broke"))]) as stage:
            client = await stage.connect()
            assert (await details(client, await ask(client)))["status"] == "error"


async def decide_on(client: Client, stage: Stage[Any]) -> None:
    """Allow the call that waits, and wait for what follows."""
    await decide(client, approved=True, toolCallId="call-2")
    await idle(stage)
