"""Questions that overlap, clear, regenerate and edit: spec/01 cases 26-36 and §7-8."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.wire.client import Tab, kinds
from tests.wire.room import Chat, Room, part_of, room, with_settings
from thinkwell.messages.message import UIMessage
from thinkwell.testing import Gate, call, pause, text


def chat_with(policy: Any) -> type[Any]:
    return with_settings(Chat, message_concurrency=policy)


async def ask_up_to(gate: Gate, asker: Tab, words: str = "u1") -> None:
    """q1 runs and has said something."""
    await asker.ask(words, "q1")
    await gate.reached()
    await asker.part("q1")


async def ended(tab: Tab, *requests: str) -> None:
    """Read on until all these requests have ended."""
    missing = set(requests)
    while missing:
        missing.discard((await tab.until("use_chat_response", done=True))["id"])


class TestPolicies:
    async def test_case_26_drop_tells_only_the_asker_and_never_runs_it(self):
        gate = pause()
        async with room([text("a1"), gate], cls=chat_with("drop")) as r:
            asker, other = await r.tabs()
            await ask_up_to(gate, asker)
            await other.part("q1")
            await asker.ask("u2", "q2")
            snapshot = await asker.expect("chat_messages")
            assert [m["role"] for m in snapshot["messages"]] == ["user", "assistant"]
            end = await asker.expect("use_chat_response", id="q2", done=True, body="")
            assert end["outcome"] == "skipped"
            await asker.nothing_more()
            await other.nothing_more()
            gate.open()
            await asker.stream("q1")
            assert await r.texts() == ["u1", "a1"]
            assert len(r.model.requests) == 1

    @pytest.mark.parametrize("policy", ["latest", "merge"])
    async def test_case_27_28_only_the_newest_runs_and_all_questions_are_stored(self, policy: str):
        """Case 28 in variant B: merge keeps the messages apart, the model reads all of them."""
        gate = pause()
        async with room([text("a1"), gate], "a3", cls=chat_with(policy)) as r:
            asker = await r.tab("R")
            await ask_up_to(gate, asker)
            await asker.ask("u2", "q2")
            await asker.ask("u3", "q3")
            await asker.before_now()
            gate.open()
            await asker.until("use_chat_response", id="q3", done=True)
            assert asker.of("q1").chunk_kinds[-1] == "finish"
            skipped = asker.of("q2")
            assert (skipped.bodies, skipped.end["outcome"]) == ([], "skipped")
            assert asker.of("q3").text == "a3"
            assert await r.texts() == ["u1", "a1", "u2", "u3", "a3"]

    async def test_case_29_debounce_runs_only_the_last_one(self):
        gate = pause()
        policy = {"strategy": "debounce", "debounce_ms": 50}
        async with room([text("a1"), gate], "a3", cls=chat_with(policy)) as r:
            asker = await r.tab("R")
            await ask_up_to(gate, asker)
            await asker.ask("u2", "q2")
            await asker.ask("u3", "q3")
            gate.open()
            await ended(asker, "q1", "q2", "q3")
            assert asker.of("q2").end["outcome"] == "skipped"
            assert await r.texts() == ["u1", "a1", "u2", "u3", "a3"]

    async def test_case_29_a_debounced_question_waits_although_the_agent_is_free(self):
        gate = pause()
        policy = {"strategy": "debounce", "debounce_ms": 3_600_000}
        async with room([text("a1"), gate], cls=chat_with(policy)) as r:
            asker = await r.tab("R")
            await ask_up_to(gate, asker)
            await asker.ask("u2", "q2")
            gate.open()
            await asker.stream("q1")
            other = await r.tab("O")
            assert other.greeting[0] == {"type": "cf_agent_stream_pending", "id": "q2"}
            await asker.cancel("q2")
            await asker.clear()
            await asker.stream("q2")

    async def test_case_30_a_regenerate_is_subject_to_no_policy(self):
        gate = pause()
        async with room("a1", [text("a2"), gate], "a3", cls=chat_with("drop")) as r:
            asker = await r.tab("R")
            await asker.ask("u1", "q0")
            await asker.stream("q0")
            question = (await r.messages())[:1]
            await asker.ask("u2", "q1", after=await r.messages())
            await gate.reached()
            await asker.regenerate("q2", question)
            await asker.before_now()
            gate.open()
            await asker.until("use_chat_response", id="q2", done=True)
            assert asker.of("q2").text == "a3"


class TestRegenerate:
    async def test_case_31_the_new_answer_is_a_sibling_and_the_newest_branch_is_shown(self):
        async with room("a1", "a2") as r:
            asker, other = await r.tabs()
            await asker.ask("u1")
            await asker.stream()
            question, first = await r.messages()
            await asker.regenerate("q2", [question])
            stream = await asker.stream("q2")
            assert stream.chunks[0]["messageId"] != first["id"]
            shown = await r.messages()
            assert [m["id"] for m in shown] == [question["id"], stream.chunks[0]["messageId"]]
            await other.until("use_chat_response", id="q2", done=True)
            assert other.heard[-2]["messages"] == shown
            (kept, new) = (await asker.call("getBranches", question["id"]))[0]["result"]
            assert [kept["id"], new["id"]] == [first["id"], shown[-1]["id"]]

    async def test_8_4_one_without_any_message_is_a_normal_submit(self):
        async with room("a1", "a2") as r:
            asker = await r.tab("R")
            await asker.ask("u1")
            await asker.stream()
            await asker.regenerate("q2", [])
            assert (await asker.stream("q2")).end["done"]

    async def test_8_5_an_edited_question_starts_a_branch(self):
        """DESIGN §8.1: the edited text is a sibling of the old one, nothing is deleted."""
        async with room("a1", "a2") as r:
            asker = await r.tab("R")
            await asker.ask("u1")
            await asker.stream()
            old = (await r.messages())[0]
            changed = {**old, "parts": [{"type": "text", "text": "u1 changed"}]}
            await asker.request("q2", [changed])
            await asker.stream("q2")
            assert await r.texts() == ["u1 changed", "a2"]
            roots = (await asker.call("getBranches", None))[0]["result"]
            assert [m["parts"][0]["text"] for m in roots] == ["u1", "u1 changed"]

    async def test_8_5_switching_back_shows_the_old_branch_in_every_tab(self):
        async with room("a1", "a2") as r:
            asker, other = await r.tabs()
            await asker.ask("u1")
            await asker.stream()
            question, first = await r.messages()
            await asker.regenerate("q2", [question])
            await asker.stream("q2")
            await other.stream("q2")
            await asker.send(type="rpc", id="s", method="setActiveLeaf", args=[first["id"]])
            shown = await other.expect("chat_messages")
            assert [m["id"] for m in shown["messages"]] == [question["id"], first["id"]]
            await asker.until("rpc", id="s", success=True)
            assert shown in asker.heard[-2:]


class TestReconciling:
    async def test_case_32_an_answer_the_client_lost_is_kept(self):
        async with room("a1", "a2") as r:
            asker = await r.tab("R")
            await asker.ask("u1")
            await asker.stream()
            question = (await r.messages())[0]
            await asker.ask("u2", "q2", after=[question])
            await asker.stream("q2")
            assert await r.texts() == ["u1", "a1", "u2", "a2"]

    async def test_case_33_a_settled_call_stays_settled(self):
        async with room([call("add", {"a": 1, "b": 2})], "three", "more") as r:
            asker = await r.tab("R")
            await asker.ask("1+2")
            await asker.stream()
            question, stored = await r.messages()
            stale = json.loads(json.dumps(stored))
            part = part_of(stale)
            part["state"] = "input-available"
            del part["output"]
            await asker.ask("and?", "q2", after=[question, stale])
            await asker.stream("q2")
            assert (await r.messages())[1] == stored
            assert part_of(stored)["output"] == 3

    async def test_case_34_a_call_that_is_owned_makes_no_second_message(self):
        async with room([call("add", {"a": 1, "b": 2})], "three", "more") as r:
            asker = await r.tab("R")
            await asker.ask("1+2")
            await asker.stream()
            question, stored = await r.messages()
            made = {**stored, "id": "made-by-client"}
            await asker.ask("and?", "q2", after=[question, made])
            await asker.stream("q2")
            ids = [m["id"] for m in await r.messages()]
            assert ids[:3] == [question["id"], stored["id"], "u-q2"]
            assert "made-by-client" not in ids

    async def test_case_35_equal_answers_are_mapped_in_order(self):
        async with room("same", "same", "more") as r:
            asker = await r.tab("R")
            shown: list[UIMessage] = []
            for request in ("q1", "q2"):
                await asker.ask("again", request, after=shown)
                await asker.stream(request)
                shown = await r.messages()
            renamed = [
                {**m, "id": f"x{i}"} if m["role"] == "assistant" else m for i, m in enumerate(shown)
            ]
            await asker.ask("last", "q3", after=renamed)
            await asker.stream("q3")
            assert (await r.messages())[:4] == shown


class TestClear:
    async def test_case_36_ends_come_before_the_clear_and_nothing_is_left(self):
        gate = pause()
        async with room([text("a1"), gate]) as r:
            asker, other = await r.tabs()
            await ask_up_to(gate, asker)
            await other.part("q1")
            await asker.ask("u2", "q2")
            await other.expect("chat_messages")
            await asker.clear()
            await other.expect("use_chat_response", id="q1", done=True, body="")
            await other.expect("chat_clear")
            await other.nothing_more()
            await ended(asker, "q1", "q2")
            assert "chat_clear" not in kinds(asker.heard)
            # Chunks may have come after it had emptied its own list.
            await asker.expect("chat_messages", messages=[])
            await asker.nothing_more()
            assert await r.messages() == []
            gate.open()
            assert await r.messages() == []

    async def test_8_3_an_idle_agent_is_cleared_and_talks_again(self):
        async with room("a1", "a2") as r:
            asker, other = await r.tabs()
            await asker.ask("u1")
            await asker.stream()
            await other.stream()
            await asker.clear()
            await other.expect("chat_clear")
            await asker.expect("chat_messages", messages=[])  # frames may have crossed its clear
            await asker.nothing_more()
            assert await r.messages() == []
            await asker.ask("u2", "q2")
            assert (await asker.stream("q2")).text == "a2"
            assert await r.texts() == ["u2", "a2"]

    async def test_8_3_a_tab_that_waits_is_released_without_a_reason(self):
        gate = pause()
        policy = {"strategy": "debounce", "debounce_ms": 3_600_000}
        async with room([text("a1"), gate], cls=chat_with(policy)) as r:
            asker = await r.tab("R")
            await ask_up_to(gate, asker)
            await asker.ask("u2", "q2")
            gate.open()
            await asker.stream("q1")
            other = await r.tab("O")
            await asker.clear()
            assert await other.hear() == {"type": "cf_agent_stream_resume_none"}
            await other.expect("chat_clear")


async def test_7_8_the_list_of_a_client_is_ignored():
    """Profile B: the server owns the transcript, C6 stores nothing."""

    async with room("a1") as r:
        asker, other = await r.tabs()
        await asker.ask("u1")
        await asker.stream()
        await other.stream()
        before = await r.messages()
        await asker.send(type="cf_agent_chat_messages", messages=[])
        await asker.nothing_more()
        await other.nothing_more()
        assert await r.messages() == before


async def test_7_2_a_message_of_an_old_client_gets_parts():
    async with room("a1") as r:
        asker = await r.tab("R")
        await asker.request("q1", [{"id": "u", "role": "user", "content": "hi"}])
        await asker.stream()
        assert (await r.messages())[0]["parts"] == [{"type": "text", "text": "hi"}]


async def test_7_6_reserved_metadata_of_a_client_is_not_stored():
    async with room("a1") as r:
        asker: Tab = await r.tab("R")
        metadata = {"channel": "forged", "turnMetadata": {"a": 1}, "mine": 1}
        parts = [{"type": "text", "text": "hi"}]
        await asker.request(
            "q1", [{"id": "u", "role": "user", "parts": parts, "metadata": metadata}]
        )
        await asker.stream()
        assert (await r.messages())[0].get("metadata") == {"channel": "web", "mine": 1}


async def test_a_request_sent_twice_runs_once():
    """§7.1: the request id is the client's; a client that is not sure may say it again."""
    async with room("a1") as r:
        asker = await _asked_twice(r)
        assert asker.of("q1").end["outcome"] == "completed"
        assert len(r.model.requests) == 1


async def _asked_twice(r: Room) -> Tab:
    asker = await r.tab("R")
    await asker.ask("u1")
    await asker.stream()
    await asker.ask("u1")
    again = await asker.stream()
    assert again.end["replay"]
    asker.heard = asker.heard[: -len(again.frames)]
    return asker
