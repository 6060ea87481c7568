"""Context blocks in turns: the prompt, the model's tools, the tail (spec/03 §20.31-39, M-042)."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.travel.support import asked, case_of
from tests.turns.support import Stage, part_of, running, until_event
from thinkwell import Principal, Session, Think, rpc, tool
from thinkwell.host.replaying import replay_case
from thinkwell.messages.message import UIMessage, tool_parts
from thinkwell.messages.model_messages import UserMessage
from thinkwell.store.sqlite import SqliteStore
from thinkwell.testing import call


class Remembering(Think):
    system_prompt = "The plain prompt."

    def configure_session(self, session: Session) -> Session:
        return (
            session.with_context("soul", "You are kind.")
            .with_context("memory", description="Facts about the user", max_tokens=1100)
            .with_cached_prompt()
        )


class Keeper(Think):
    """Has a block of each kind."""

    def configure_session(self, session: Session) -> Session:
        session.with_context("soul", "You are kind.").with_context("diary")
        session.with_context("skills", kind="loadable", description="How to do things")
        return session.with_context("facts", kind="searchable")


class ReadOnly(Think):
    def configure_session(self, session: Session) -> Session:
        return session.with_context("soul", "You are kind.")


class Plain(Think):
    pass


def outputs(message: UIMessage) -> list[Any]:
    return [part.get("output", part.get("errorText")) for part in tool_parts(message)]


async def said(stage: Stage[Any], *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    """What the model is told by these calls, each in a step of its own."""
    stage.model.add(*([call(name, given)] for name, given in calls), "Done.")
    await stage.agent.run("go on")
    return outputs(await stage.answer())


def set_context(label: str, content: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return "set_context", {"label": label, "content": content, **more}


async def test_blocks_take_the_place_of_the_plain_prompt():
    """M-042, spec/03 §5: the frozen prompt, else `get_system_prompt`."""
    async with running(Remembering, "Hi.") as stage:
        await stage.agent.run("hello")
        system = stage.model.requests[0].system
    assert "You are kind." in system
    assert "MEMORY (Facts about the user) [0% — 0/1100 tokens] [writable]" in system
    assert "The plain prompt." not in system


async def test_the_plain_prompt_holds_while_all_blocks_are_behind_the_conversation():
    class Tailed(Remembering):
        def configure_session(self, session: Session) -> Session:
            return session.with_context("now", lambda: "noon", placement="tail")

    async with running(Tailed, "Hi.") as stage:
        await stage.agent.run("hello")
        assert stage.model.requests[0].system.startswith("The plain prompt.")


async def test_read_only_blocks_bring_no_tools():
    """spec/03 §20.31"""
    async with running(ReadOnly, "Hi.") as stage:
        await stage.agent.run("hello")
        assert stage.model.requests[0].tools == ()


async def test_the_model_writes_and_is_told_how_full_the_block_is():
    """spec/03 §20.32-33"""
    async with running(Remembering) as stage:
        assert await said(
            stage,
            set_context("memory", "user likes coffee"),
            set_context("memory", "and tea", action="append"),
            set_context("soul", "Obey."),
            set_context("nope", "x"),
            set_context("memory", "word " * 2000),
        ) == [
            "Written to memory. Usage: 0% (5/1100 tokens)",
            "Written to memory. Usage: 1% (7/1100 tokens)",
            'Error: Block "soul" is readonly',
            'Error: block "nope" not found',
            'Error: Block "memory" exceeds max_tokens: 2600 > 1100',
        ]
        block = await stage.agent.session.get_context_block("memory")
        assert block is not None
        assert block.content == "user likes coffee\nand tea"
        (tool_spec,) = stage.model.requests[0].tools
        assert '- "memory" (writable): Facts about the user' in tool_spec.description
        assert tool_spec.input_schema["properties"]["label"]["enum"] == ["memory"]
        assert "metadata" not in tool_spec.input_schema["properties"]
        assert len({request.system for request in stage.model.requests}) == 1
    async with running(Keeper) as stage:
        assert await said(stage, set_context("diary", "user likes coffee")) == [
            "Written to diary. Usage: 5 tokens"
        ]


async def test_who_changed_what_in_which_turn_is_known():
    async with running(Remembering) as stage:
        await said(stage, set_context("memory", "a"))
        await stage.agent.session.replace_context_block("memory", "b")
        newest, first = await stage.agent.session.context_history("memory")
        (turn,) = stage.fields("chat:turn:start")
        assert (first.source, first.turn) == ("model", turn["request_id"])
        assert (newest.source, newest.turn) == ("code", None)
        told = stage.fields("context:changed")
        assert [(e["label"], e["version"], e["source"], e["turn"]) for e in told] == [
            ("memory", 1, "model", turn["request_id"]),
            ("memory", 2, "code", None),
        ]
        assert first.tool_call_id == part_of(await stage.answer())["toolCallId"]


async def test_code_in_a_turn_is_known_by_its_turn():
    class Hand(Remembering):
        @tool
        async def note(self, text: str) -> str:
            """Note something.

            Args:
                text: What.
            """
            await self.session.append_context_block("memory", text)
            return "noted"

    async with running(Hand) as stage:
        await said(stage, ("note", {"text": "x"}))
        (version,) = await stage.agent.session.context_history("memory")
        (turn,) = stage.fields("chat:turn:start")
        assert (version.source, version.turn) == ("code", turn["request_id"])


async def test_two_calls_of_one_step_lose_nothing_and_pass_no_limit():
    class Small(Think):
        def configure_session(self, session: Session) -> Session:
            return session.with_context("memory", max_tokens=10)

    def append(text: str) -> Any:
        return call("set_context", {"label": "memory", "content": text, "action": "append"})

    async with running(Small, [append("a"), append("b")], "Done.", suspends=True) as stage:
        await stage.agent.run("both")
        block = await stage.agent.session.get_context_block("memory")
        assert block is not None
        assert sorted(block.content.split()) == ["a", "b"]
        # Each fits alone. Both do not: the one that comes second is told so, and writes nothing.
        stage.model.add([append("five more words are here"), append("and five more words here")])
        stage.model.add("Done.")
        await stage.agent.run("again")
        answers = sorted(outputs(await stage.answer()))
        assert answers[0].startswith('Block "memory" exceeds max_tokens')
        assert answers[1].startswith("Written to memory.")
        block = await stage.agent.session.get_context_block("memory")
        assert block is not None
        assert (block.tokens <= 10, block.version) == (True, 3)


async def test_entries_are_written_loaded_and_searched():
    """spec/03 §20.34-36, §20.39"""
    async with running(Keeper) as stage:
        title = {"title": "Pirate style", "description": "Talk like one"}
        assert await said(
            stage,
            set_context("skills", "Arr.", metadata=title),
            ("load_context", {"label": "skills", "key": "pirate-style"}),
            set_context("skills", "Ahoy.", metadata={"title": "Pirate style"}),
            ("load_context", {"label": "skills", "key": "pirate-style"}),
            ("load_context", {"label": "skills", "key": "nope"}),
            ("load_context", {"label": "facts", "key": "nope"}),
            set_context("facts", "deployment is on Friday", metadata={"title": "deploy"}),
            ("search_context", {"label": "facts", "query": "when is the deployment"}),
            ("search_context", {"label": "facts", "query": "lunch"}),
        ) == [
            'Indexed "pirate-style" in skills.',
            "Arr.",
            'Indexed "pirate-style" in skills.',
            "Ahoy.",
            "Not found: nope",
            'Error: "facts" is not a skill block. Skill blocks: skills',
            'Indexed "deploy" in facts.',
            "[deploy]\ndeployment is on Friday",
            "No results found.",
        ]
        assert {t.name for t in stage.model.requests[0].tools} == {
            "set_context",
            "load_context",
            "unload_context",
            "search_context",
        }
        # What blocks hold changes no word of the tools: they stand before everything else.
        assert all(r.tools == stage.model.requests[0].tools for r in stage.model.requests)
        block = await stage.agent.session.get_context_block("skills")
        assert block is not None
        assert block.content == "- pirate-style: Pirate style"
        assert await stage.agent.session.get_loaded_skill_keys() == {"skills:pirate-style"}


async def test_entries_without_a_title_get_keys_of_their_own():
    """spec/03 §20.35"""
    async with running(Keeper) as stage:
        texts = [f"{'x' * 60} {n}" for n in range(2)]
        told = await said(stage, *(set_context("facts", t) for t in (*texts, "悬空引用")))
        keys = [re.findall(r'Indexed "(.*)" in facts', text)[0] for text in told]
        assert len(set(keys)) == 3
        assert re.fullmatch(r"entry-[a-z0-9]+", keys[2])


LOAD = ("load_context", {"label": "skills", "key": "pirate"})
UNLOAD = ("unload_context", {"label": "skills", "key": "pirate"})


async def test_an_unloaded_document_leaves_the_conversation(tmp_path: Path):
    """spec/03 §20.37: also over a restart, and in the turn that loaded it."""
    path = tmp_path / "a.db"
    async with running(Keeper, store=SqliteStore(path)) as stage:
        await stage.agent.session.set_context_entry("skills", "pirate", "Arr.")
        assert await said(stage, LOAD) == ["Arr."]
    async with running(Keeper, store=SqliteStore(path)) as stage:
        session = stage.agent.session
        assert await session.get_loaded_skill_keys() == {"skills:pirate"}
        assert await said(stage, UNLOAD, UNLOAD) == [
            'Unloaded "pirate" from skills. Context reclaimed.',
            'Skill "pirate" is not currently loaded in "skills". Loaded now: nothing.',
        ]
        assert await session.get_loaded_skill_keys() == set()
        first = (await stage.messages())[1]
        assert outputs(first) == ["[skill unloaded: pirate]"]
        assert await said(stage, LOAD, UNLOAD, LOAD) == [
            "[skill unloaded: pirate]",
            'Unloaded "pirate" from skills. Context reclaimed.',
            "Arr.",
        ]
        assert await session.get_loaded_skill_keys() == {"skills:pirate"}
        assert await session.unload_skill("skills", "pirate")
        assert not await session.unload_skill("skills", "pirate")


async def test_without_documents_no_history_is_read():
    """spec/03 §20.38"""
    async with running(Remembering, "Hi.") as stage:
        await stage.agent.run("hello")
        session: Any = stage.agent.session
        session._replies = None  # whoever reads it fails
        assert await session.get_loaded_skill_keys() == set()


async def test_a_clear_makes_the_prompt_anew_and_keeps_what_is_remembered():
    """spec/03 §20.17"""
    async with running(Remembering) as stage:
        await said(stage, set_context("memory", "likes tea"))
        stage.model.add("Hi.", "Hi again.")
        await stage.agent.run("hello")
        assert "likes tea" not in stage.model.requests[-1].system
        await stage.agent.clear_messages()
        await stage.agent.run("hello")
        assert "likes tea" in stage.model.requests[-1].system


async def test_what_is_volatile_stands_behind_the_conversation():
    class Clockmaker(Think):
        hour = 0

        def configure_session(self, session: Session) -> Session:
            session.with_context("soul", "You are kind.")
            return session.with_context("now", self.tell, placement="tail")

        def tell(self) -> str:
            self.hour += 1
            return f"It is {self.hour} o'clock."

    async with running(Clockmaker, "One.", "Two.") as stage:
        await stage.agent.run("first")
        await stage.agent.run("second")
        first, second = stage.model.requests
        assert first.system == second.system
        assert "o'clock" not in first.system
        tails = [request.messages[-1] for request in (first, second)]
        texts = [t.content[0].text for t in tails if isinstance(t, UserMessage)]  # pyright: ignore[reportAttributeAccessIssue]
        assert [re.findall(r"It is \d", text) for text in texts] == [["It is 1"], ["It is 2"]]
        # The beginning of the second request is the first one without its tail.
        assert second.messages[: len(first.messages) - 1] == first.messages[:-1]
        assert "o'clock" not in str(await stage.messages())


async def test_a_reply_that_goes_on_is_asked_to_go_on_before_the_tail():
    class Tailed(Think):
        def configure_session(self, session: Session) -> Session:
            return session.with_context("now", "noon", placement="tail")

    async with running(Tailed, "One.", "Two.") as stage:
        await stage.agent.run("first")
        await stage.agent.continue_last_turn()
        roles = [message.role for message in stage.model.requests[-1].messages]
        assert roles == ["user", "assistant", "user", "user"]


async def test_blocks_come_and_go_while_the_agent_is_awake():
    """M-058: also for an agent that began without any."""
    async with running(Plain, "Hi.") as stage:
        session = stage.agent.session
        await stage.agent.run("hello")
        assert session.memory is None
        await session.add_context("notes")
        assert await said(stage, set_context("notes", "x")) == ["Written to notes. Usage: 2 tokens"]
        assert "NOTES" in stage.model.requests[-1].system
        await session.remove_context("notes")
        stage.model.add("Hi.")
        await stage.agent.run("hello")
        assert stage.model.requests[-1].tools == ()


async def test_a_provider_that_fails_fails_the_turn_and_is_named(
    caplog: pytest.LogCaptureFixture,
):
    class Broken(Think):
        def configure_session(self, session: Session) -> Session:
            return session.with_context("soul", self.fail)

        def fail(self) -> str:
            raise ValueError("no soul")

    async with running(Broken, "Hi.") as stage:
        assert (await stage.agent.run("hello")).status == "error"
    assert any("context block 'soul'" in str(vars(line)) for line in caplog.records)


async def test_a_client_writes_no_block_unless_the_author_lets_it():
    class Open(Remembering):
        @rpc
        async def remember(self, text: str) -> None:
            """The author lets clients write."""
            await self.session.replace_context_block("memory", text)

    async with running(Open, "Hi.", "Hi.") as stage:
        client = await stage.connect(principal=Principal(id="eve"))
        for method in (
            "set_context",
            "session.replace_context_block",
            "replace_context_block",
            "context_blocks.tools",
        ):
            await client.send(type="rpc", id=method, method=method, args=["memory", "forged"])
            answer = await client.until(lambda f, m=method: f.get("id") == m)
            assert answer["success"] is False
        # A tool of the client's own under that name is not offered, and its answer is not taken.
        await client.ask(
            "hello", clientTools=[{"name": "set_context", "description": "mine", "parameters": {}}]
        )
        await client.until_end()
        assert stage.fields("tools:shadowed")[0]["winner"] == "server"
        assert await stage.agent.session.context_history("memory") == []
        await client.send(type="rpc", id="ok", method="remember", args=["mine"])
        await client.until(lambda f: f.get("id") == "ok")
        assert len(await stage.agent.session.context_history("memory")) == 1


async def test_an_agent_without_blocks_loads_none_of_it_and_asks_the_store_nothing():
    class Counting(SqliteStore):
        asked: list[str] = []

        async def fetch_one(self, query: str, params: Any, /) -> Any:
            self.asked.append(query)
            return await super().fetch_one(query, params)

    loaded = [name for name in sys.modules if "session.blocks" in name or "context_blocks" in name]
    kept = {name: sys.modules.pop(name) for name in loaded}
    try:
        async with running(Plain, "Hi.", store=Counting(":memory:")) as stage:
            await stage.agent.run("hello")
            assert await stage.agent.session.get_context_blocks() == []
        assert [name for name in sys.modules if "session.blocks" in name] == []
        assert [name for name in sys.modules if "context_blocks" in name] == []
        assert not {"read_block", "read_prompt"} & set(Counting.asked)
    finally:
        sys.modules.update(kept)


async def test_a_turn_with_blocks_reads_them_once_and_then_never():
    class Counting(SqliteStore):
        asked: list[str] = []

        async def fetch_one(self, query: str, params: Any, /) -> Any:
            self.asked.append(query)
            return await super().fetch_one(query, params)

    async with running(Remembering, "Hi.", "Hi.", store=Counting(":memory:")) as stage:
        await stage.agent.run("hello")
        Counting.asked.clear()
        await stage.agent.run("hello")
        assert not {"read_block", "read_prompt"} & set(Counting.asked)


async def test_the_prompt_is_byte_identical_after_a_restart(tmp_path: Path):
    """M-057"""
    path, seen = tmp_path / "a.db", list[str]()
    for _ in range(2):
        async with running(Remembering, store=SqliteStore(path)) as stage:
            await said(stage, set_context("memory", "more", action="append"))
            seen += [request.system for request in stage.model.requests]
    assert len(set(seen)) == 1


@pytest.mark.parametrize("failing", [True, False])
async def test_what_a_failed_commit_undid_is_not_told(
    failing: bool,
    monkeypatch: pytest.MonkeyPatch,
):
    """A write that other code of the app makes impossible is an error for the model alone."""
    from thinkwell.session.blocks import rows

    async with running(Remembering) as stage:
        if failing:
            decide, seen = rows.decide, list[int]()

            def second_look_fails(write: Any, found: Any) -> Any:
                seen.append(1)
                if len(seen) == 2:
                    raise rows.ConflictError("memory", 0, 1)
                return decide(write, found)

            monkeypatch.setattr(rows, "decide", second_look_fails)
        told = await said(stage, set_context("memory", "a"))
        assert told[0].startswith("Block" if failing else "Written")
        assert len(stage.fields("context:changed")) == (0 if failing else 1)
        assert len(await stage.agent.session.context_history("memory")) == (0 if failing else 1)
        await until_event(stage, "chat:turn:finish")


async def test_a_replay_gives_the_same_bytes_and_names_the_prompt_it_does_not_have():
    """Calls are recorded, so nothing is written; what blocks held then is not."""
    store = SqliteStore(":memory:")
    async with running(Remembering, store=store) as stage:
        await stage.agent.session.replace_context_block("memory", "known before")
        stage.model.add([call(*set_context("memory", "more", action="append"))], "Done.")
        await asked(stage, "remember", "q1")
        replay = await replay_case(await case_of(store, "q1", "remembering/x"), Remembering)
        assert replay.journal.bodies == replay.case.journal.bodies
        told = [str(each).partition("\n")[0] for each in replay.differences]
        assert told[0] == "step 0: the model is sent something else at system"
        assert len(await stage.agent.session.context_history("memory")) == 2
