"""Whatever happens to a message, the index says what the tree says (spec/03 §9, §20.58, §20.61)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.search.support import Talker, rows, said, store_at, talking, texts
from thinkwell import App, Think
from thinkwell.core import json
from thinkwell.features import Search
from thinkwell.session.search import index as index_module
from thinkwell.session.session import Session
from thinkwell.testing import ScriptedModel


def check_index(path: Path) -> None:
    """FTS5 compares every word of its index with the entries; a difference raises."""
    rows(path, "INSERT INTO search_words (search_words) VALUES ('integrity-check')")
    rows(path, "INSERT INTO search_parts (search_parts) VALUES ('integrity-check')")


async def test_a_changed_message_is_found_by_what_it_says_now(tmp_path: Path):
    """spec/03 §20.58"""
    async with talking(tmp_path / "a.db") as agent:
        first, second = await agent.fill(["the old walrus", "an answer"])
        assert len(await agent.search.find("walrus")) == 2  # the answer is about it
        await agent.session.update_message(said("the new heron", "user", first))
        assert await agent.search.find("walrus") == []
        assert [hit.id for hit in await agent.search.find("heron")] == [first, second]
        only_a_call: Any = {
            "id": first,
            "role": "user",
            "parts": [{"type": "tool-x", "toolCallId": "c", "state": "input-available"}],
        }
        await agent.session.update_message(only_a_call)
        assert await agent.search.find("heron") == []
        await agent.session.update_message(said("text again", "user", first))
        assert first in [hit.id for hit in await agent.search.find("text again")]
    check_index(tmp_path / "a.db")


async def test_a_deleted_message_is_not_found_neither_is_what_followed_it(tmp_path: Path):
    """spec/03 §20.58: its words are in the entry of the next message, too."""
    async with talking(tmp_path / "a.db") as agent:
        first, second, third = await agent.fill(["the walrus", "yes", "and now?"])
        await agent.search.find("walrus")
        await agent.session.delete_messages([first])
        assert await agent.search.find("walrus") == []
        assert [hit.id for hit in await agent.search.find("yes")] == [second, third]
        await agent.session.delete_branch(second)
        assert await agent.search.find("yes") == []
    check_index(tmp_path / "a.db")
    assert rows(tmp_path / "a.db", "SELECT * FROM search_entries") == []
    assert rows(tmp_path / "a.db", "SELECT * FROM search_leads") == []


async def test_it_is_hidden_in_the_commit_that_deletes_it(tmp_path: Path):
    """Before anything has worked off the note: no search may show what is gone."""
    async with store_at(tmp_path / "a.db") as (store, index):
        session = Session(store, "talker/a")
        await session.add_messages([said("the walrus", message_id="m1"), said("hm", "assistant")])
        assert await index.catch_up(["talker"])
        await session.delete_messages(["m1"])
        asked = index_module.Lookup(query="walrus", agent="talker/a")
        assert await index.find(asked) == []


async def test_a_clear_forgets_and_the_next_conversation_is_indexed(tmp_path: Path):
    async with talking(tmp_path / "a.db") as agent:
        await agent.fill([f"walrus {n}" for n in range(30)])
        assert len(await agent.search.find("walrus")) == 20
        await agent.clear_messages()
        assert await agent.search.find("walrus") == []
        await agent.fill(["another walrus"])
        assert texts(await agent.search.find("walrus")) == ["another walrus"]
    check_index(tmp_path / "a.db")
    assert len(rows(tmp_path / "a.db", "SELECT * FROM search_entries")) == 1


async def test_turns_are_indexed_and_a_continued_answer_again(tmp_path: Path):
    async with talking(tmp_path / "a.db") as agent:
        await agent.run("Where is the walrus?")
        assert [hit.role for hit in await agent.search.find("walrus")] == ["user", "assistant"]


async def test_a_message_that_changes_while_it_is_read_is_read_again(tmp_path: Path):
    """Texts are read in a thread; what they say may be old when they are written."""
    async with store_at(tmp_path / "a.db") as (store, index):
        session = Session(store, "talker/a")
        await session.add_messages(
            [said("the walrus", message_id="m1"), said("so", "assistant", "m2")]
        )
        read = index._make  # pyright: ignore[reportPrivateUsage]

        async def and_then_it_changes(seqs: Any) -> Any:
            made = await read(seqs)
            index._make = read  # pyright: ignore[reportPrivateUsage]
            await session.update_message(said("the heron", message_id="m1"))
            return made

        index._make = and_then_it_changes  # pyright: ignore[reportPrivateUsage]
        assert await index.catch_up(["talker"])
        asked = index_module.Lookup(query="walrus", agent="talker/a")
        assert await index.find(asked) == []
        found = await index.find(index_module.Lookup(query="heron", agent="talker/a"))
        assert [hit.id for hit in found] == ["m1", "m2"]
        assert await store.fetch_all("search_changed", {"limit": 9}) == []


async def test_a_message_that_goes_while_it_is_read_leaves_nothing(tmp_path: Path):
    async with store_at(tmp_path / "a.db") as (store, index):
        session = Session(store, "talker/a")
        await session.add_messages([said("walrus " * 3000, message_id="m1")])
        commit = index._commit  # pyright: ignore[reportPrivateUsage]

        async def and_then_it_goes(work: Any, /) -> Any:
            done = await commit(work)
            index._commit = commit  # pyright: ignore[reportPrivateUsage]
            await session.delete_messages(["m1"])
            return done

        index._commit = and_then_it_goes  # pyright: ignore[reportPrivateUsage]
        assert await index.catch_up(["talker"])
        assert await index.find(index_module.Lookup(query="walrus")) == []
    assert rows(tmp_path / "a.db", "SELECT * FROM search_entries") == []
    check_index(tmp_path / "a.db")


async def test_an_index_that_grows_a_little_at_a_time_stays_in_few_pieces(tmp_path: Path):
    """Each transaction leaves a piece, and every search looks at all of them."""
    path, most = tmp_path / "a.db", index_module.MOST_PIECES
    pieces = "SELECT COUNT(DISTINCT segid) FROM search_words_idx"

    async def few(session: Session, index: index_module.SearchIndex, change: Any) -> None:
        seen: list[int] = []
        for number in range(3 * most):
            await change(session, number)
            assert await index.catch_up(["talker"])
            seen += rows(path, pieces)[0]
        # It is merged, and not each time. To replace an entry may leave two pieces.
        assert most // 2 < max(seen) <= 2 * most + 8

    async def add(session: Session, number: int) -> None:
        await session.add_messages([said(f"walrus number{number}", message_id=f"m{number}")])

    async def edit(session: Session, number: int) -> None:
        await session.update_message(said(f"heron number{number}", message_id="m3"))

    for change in (add, edit):
        async with store_at(path) as (store, index):
            await few(Session(store, "talker/a"), index, change)
    check_index(path)


async def test_a_database_from_before_is_indexed_by_the_job(tmp_path: Path):
    class Before(Think, name="talker"):
        model: Any = ScriptedModel([])

        async def fill(self, texts: list[str]) -> None:
            await self.session.add_messages([said(text) for text in texts])

    path = tmp_path / "a.db"
    async with App(agents=[Before], store=f"sqlite:///{path}") as app:
        await app.agent(Before).fill([f"walrus number{n}" for n in range(450)])
    assert rows(path, "SELECT * FROM search_marks") == []
    async with App(agents=[Talker], store=f"sqlite:///{path}"):  # nobody asks for anything
        while rows(path, "SELECT COUNT(*) FROM search_entries")[0][0] != 450:
            await asyncio.sleep(0.05)
    check_index(path)


async def test_other_classes_are_left_alone_and_a_new_one_starts_from_its_beginning(
    tmp_path: Path,
):
    class Silent(Think):
        model: Any = ScriptedModel([])

    class Later(Silent, name="silent"):
        features = [Search()]
        search: Search

    path = tmp_path / "a.db"
    async with App(agents=[Talker, Silent], store=f"sqlite:///{path}") as app:
        await app.agent(Silent).session.append_message(said("a silent walrus"))
        await app.agent(Talker).fill(["a talking walrus"])
        assert texts(await app.agent(Talker).search.find("walrus")) == ["a talking walrus"]
    assert rows(path, "SELECT agent FROM search_entries") == [("talker/default",)]
    async with App(agents=[Talker, Later], store=f"sqlite:///{path}") as app:
        assert texts(await app.agent(Later).search.find("walrus")) == ["a silent walrus"]


async def test_a_deleted_agent_takes_its_entries_along(tmp_path: Path):
    """spec/03 §20.61, with agents for sessions: both are found, then one is gone."""
    path = tmp_path / "a.db"
    async with App(agents=[Talker], store=f"sqlite:///{path}") as app:
        for name in ("a", "b"):
            await app.agent(Talker, name).fill([f"the walrus of {name}"])
            assert len(await app.agent(Talker, name).search.find("walrus")) == 1
        await app.delete(Talker, "a")
        assert texts(await app.agent(Talker, "b").search.find("walrus")) == ["the walrus of b"]
        assert await app.agent(Talker, "a").search.find("walrus") == []
    assert [r[0] for r in rows(path, "SELECT agent FROM search_entries")] == ["talker/b"]
    check_index(path)


async def test_an_agent_that_is_being_imported_waits_for_its_turns(tmp_path: Path):
    """Its messages come before its turns, and only these say who asked."""
    async with store_at(tmp_path / "a.db") as (store, index):
        session = Session(store, "talker/new")
        await session.add_messages([said("the walrus", message_id="m1")])
        named = {"id": "talker/new", "class": "talker", "name": "new", "created_at": 0.0}
        async with store.transaction() as tx:
            await tx.execute("begin_import", {**named, "now": 1.0})
        assert await index.catch_up(["talker"])
        asked = index_module.Lookup(query="walrus")
        assert await index.find(asked) == []
        done = {"id": "talker/new", "epoch": 1, "generation": 0, "state": None}
        async with store.transaction() as tx:
            await tx.execute("end_import", done)
        assert await index.catch_up(["talker"])
        assert len(await index.find(asked)) == 1


async def test_a_message_that_cannot_be_read_stops_nobody(tmp_path: Path):
    path = tmp_path / "a.db"
    async with store_at(path) as (store, index):
        session = Session(store, "talker/a")
        await session.add_messages([said("one walrus", message_id="m1"), said("two walruses")])
        async with store.transaction() as tx:
            await tx.execute(
                "replace_message",
                {
                    "agent": "talker/a",
                    "session": "",
                    "id": "m1",
                    "role": "user",
                    "content": "{broken",
                    "bytes": 7,
                    "tokens": 1,
                },
            )
        assert await index.catch_up(["talker"])
        found = await index.find(index_module.Lookup(query="walruses", mode="all"))
        assert texts(found) == ["two walruses"]
        async with store.transaction() as tx:
            await tx.execute(
                "delete_messages", {"agent": "talker/a", "session": "", "ids": json.dumps(["m1"])}
            )
