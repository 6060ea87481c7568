"""Whose words are found by whom, and what is left of somebody who is erased (spec/03 §9)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.operate.canary import found
from tests.search.support import Talker, rows, store_at, texts
from tests.search.test_keeping import check_index
from tests.turns.support import Stage, running
from tests.wire.serving import serving
from thinkwell import App, Connection, HttpRequest, Principal, Think
from thinkwell.features import Search
from thinkwell.messages.message import text_of, user_message
from thinkwell.session.search import index as index_module
from thinkwell.session.search.find import Lookup
from thinkwell.session.search.index import SearchIndex
from thinkwell.testing import ScriptedModel, call

ANN, BOB = Principal(id="ann"), Principal(id="bob")
WORD = "zanzibarquokka"
"""A word that nothing else has, in no stem and in no piece."""


class Room(Think):
    """One conversation of several people; each of them may search."""

    features = [Search(clients=True)]
    search: Search

    def should_connection_be_readonly(self, connection: Connection, request: HttpRequest) -> bool:
        return request.query.get("look") == "1"

    def authorize(self, action: Any, principal: Any, subject: Any) -> bool:
        if principal is not None and principal.id == "eve":
            return False
        return super().authorize(action, principal, subject)


async def ask(stage: Stage[Any], who: Principal | None, text: str, number: int) -> None:
    client = await stage.connect(f"tab-{number}", principal=who)
    await client.ask(text, f"q{number}")
    await client.until_end(f"q{number}")


async def look(stage: Stage[Any], who: Principal | None, query: str, **filters: Any) -> Any:
    """What a client gets of `searchHistory`."""
    looking = {"look": "1"} if filters.pop("readonly", False) else {}
    client = await stage.connect(f"look-{len(stage.log)}", principal=who, **looking)
    await client.send(type="rpc", id="r", method="searchHistory", args=[query, filters])
    answer = await client.until(lambda frame: frame["type"] == "rpc")
    return [hit["text"] for hit in answer["result"]] if answer["success"] else answer["error"]


async def test_in_a_shared_conversation_each_finds_only_their_own(tmp_path: Path):
    async with running(Room, "Fine, Ann.", "Fine, Bob.", "Fine again, Ann.") as stage:
        await ask(stage, ANN, "the walrus of Ann", 1)
        await ask(stage, BOB, "the walrus of Bob", 2)
        await ask(stage, ANN, "another walrus of Ann", 3)
        for _ in range(2):
            assert sorted(await look(stage, BOB, "walrus")) == ["Fine, Bob.", "the walrus of Bob"]
            found_by_ann = await look(stage, ANN, "walrus")
            assert "the walrus of Bob" not in found_by_ann
            assert "Fine, Bob." not in found_by_ann
            assert "another walrus of Ann" in found_by_ann
        assert await look(stage, Principal(id="zoe"), "walrus") == []
        assert await look(stage, None, "walrus") == []
        # Not even by a word that stands before one's own message.
        assert await look(stage, ANN, "bob") == []
        # The app's own code finds everything, or what one person may.
        assert len(await stage.agent.search("walrus", mode="all")) == 3
        assert len(await stage.agent.search("walrus", mode="all", principal=BOB)) == 1
        assert len(await stage.agent.search("walrus", mode="all", principal="ann")) == 2


async def test_while_the_index_catches_up_nobody_finds_what_others_said(
    monkeypatch: pytest.MonkeyPatch,
):
    """The search itself may be what indexes the first message of somebody else."""
    catch_up, backlog = SearchIndex.catch_up, True

    async def slowly(index: SearchIndex, classes: Any, *_: Any) -> bool:
        return True if backlog else await catch_up(index, classes, 1)

    monkeypatch.setattr(index_module, "SLICE", 2)
    monkeypatch.setattr(SearchIndex, "catch_up", slowly)
    async with running(Room, "Fine, Ann.", "Fine, Bob.") as stage:
        await ask(stage, ANN, "the walrus of Ann", 1)
        await ask(stage, BOB, "the walrus of Bob", 2)
        backlog, found_by_ann = False, []
        for _ in range(4):
            found_by_ann = await look(stage, ANN, "walrus")
            assert "the walrus of Bob" not in found_by_ann
            assert "Fine, Bob." not in found_by_ann
        assert "the walrus of Ann" in found_by_ann
        assert "the walrus of Bob" in await look(stage, BOB, "walrus")


async def test_who_is_alone_finds_also_what_the_app_has_written():
    async with running(Room, "Yes.") as stage:
        await stage.agent.session.append_message(user_message("seed", "the walrus rule"))
        await ask(stage, ANN, "hello", 1)
        assert "the walrus rule" in await look(stage, ANN, "walrus rule")
        assert await look(stage, BOB, "walrus rule") == []


async def test_nobody_gets_at_anothers_message_by_giving_their_own_its_id():
    """The first turn that brought a message has asked it; a later one only names it."""
    async with running(Room, "One.", "Two.", "Three.") as stage:
        bob = await stage.connect("bob", principal=BOB)
        await bob.request("q1", messages=[user_message("m-bob", "the walrus of Bob")])
        await bob.until_end("q1")
        ann = await stage.connect("ann", principal=ANN)
        await ann.request("q2", messages=[user_message("m-bob", "mine")], trigger="submit-message")
        await ann.until_end("q2")
        assert "the walrus of Bob" not in await look(stage, ANN, "walrus")
        assert "the walrus of Bob" in await look(stage, BOB, "walrus")


async def test_clients_search_only_if_the_author_and_authorize_let_them():
    class Closed(Room):
        features = [Search()]

    async with running(Room, "Yes.") as stage:
        await ask(stage, ANN, "the walrus", 1)
        assert await look(stage, Principal(id="eve"), "walrus") == "Not allowed"
        # Looking is what a read-only client may do.
        assert "the walrus" in await look(stage, ANN, "walrus", readonly=True)
        assert "no date" in await look(stage, ANN, "walrus", after="tomorrow")
        assert "limit" in await look(stage, ANN, "walrus", limit=10_000)
    async with running(Closed) as stage:
        assert "searchHistory" in await look(stage, ANN, "walrus")


async def test_the_model_searches_for_the_person_who_asks():
    steps = [
        "Noted.",
        "Noted.",
        [call("search_history", {"query": "walrus"})],
        "It is in the cellar.",
    ]
    async with running(Room, *steps) as stage:
        await ask(stage, ANN, "the walrus is in the cellar", 1)
        await ask(stage, BOB, "my walrus is a secret", 2)
        await ask(stage, ANN, "where is it?", 3)
        answer = await stage.answer()
        (part,) = [p for p in answer["parts"] if p["type"] == "tool-search_history"]
        said = [hit["text"] for hit in part["output"]]
        assert "the walrus is in the cellar" in said
        assert not any("secret" in text for text in said)
        assert text_of(answer) == "It is in the cellar."


async def test_what_a_search_returned_is_not_found_by_the_next():
    steps = [[call("search_history", {"query": "walrus"})], "I do not know."]
    async with running(Room, *steps) as stage:
        await ask(stage, ANN, "hello there", 1)
        assert await stage.agent.search("nothing found", mode="all") == []


async def test_a_person_is_found_over_all_agents_and_nobody_else(tmp_path: Path):
    class Far(Talker, name="far"):
        features = [Search(reach="principal", clients=True)]

    path = tmp_path / "a.db"
    app = App(agents=[Far], store=f"sqlite:///{path}", auth=lambda request, _: who(request))
    async with serving(app) as url:
        for name, user in (("one", "ann"), ("two", "ann"), ("three", "bob")):
            await post(url, f"far/{name}", user, f"the walrus of {user} in {name}")
        find = app.agent(Far, "one").search.find_everywhere
        assert sorted(texts(await find("walrus", principal="ann", mode="all"))) == [
            "the walrus of ann in one",
            "the walrus of ann in two",
        ]
        assert texts(await find("walrus", principal=BOB, mode="all")) == [
            "the walrus of bob in three"
        ]
        assert texts(await app.agent(Far, "one").search.find("walrus", mode="all")) == [
            "the walrus of ann in one"
        ]


def who(request: Any) -> Principal | None:
    name = request.headers.get("x-user")
    return None if name is None else Principal(id=name)


async def post(url: str, agent: str, user: str, text: str) -> None:
    import aiohttp

    async with (
        aiohttp.ClientSession() as http,
        http.post(
            f"{url}/agents/{agent}/run", json={"input": text}, headers={"x-user": user}
        ) as got,
    ):
        assert got.status == 200, await got.text()


class Parrot(Think):
    """Says again what it is told."""

    features = [Search(clients=True)]
    search: Search
    model: Any = ScriptedModel([])


async def test_of_somebody_who_is_erased_no_word_is_left_in_the_index(tmp_path: Path):
    path = tmp_path / "a.db"
    words = [f"You said {WORD}" if n % 2 == 0 else "You said heron" for n in range(12)]
    cls = type("Parrot", (Parrot,), {"model": ScriptedModel(words)}, name="parrot")
    app = App(agents=[cls], store=f"sqlite:///{path}", auth=lambda request, _: who(request))
    async with serving(app) as url:
        for _ in range(6):
            await post(url, "parrot/team", "ann", f"remember {WORD} and file-{WORD}.txt")
            await post(url, "parrot/team", "bob", "remember the heron")
        agent = app.agent(cls, "team")
        assert len(await agent.search.find(WORD, mode="all")) == 12
        assert WORD[:8] in "".join(vocabulary(path))
        await app.erase("ann")
        assert await agent.search.find(WORD) == []
        assert len(await agent.search.find("heron", mode="all")) == 12
        assert found(path, WORD) == set()
        assert not any(WORD[:8] in term for term in vocabulary(path))
        assert not any("zan" in term for term in vocabulary(path, "search_parts"))
    for piece in (WORD, WORD[:10], "ann"):
        assert not any(piece in str(row) for row in rows(path, "SELECT * FROM search_entries"))
    assert WORD[:10].encode() not in path.read_bytes()
    check_index(path)


def vocabulary(path: Path, table: str = "search_words") -> list[str]:
    """Every term in every piece of the index, as the file has it."""
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(path)) as file:
        file.execute(f"CREATE VIRTUAL TABLE temp.v USING fts5vocab(main, {table}, row)")
        return [row[0] for row in file.execute("SELECT term FROM v")]


async def test_an_erasure_at_rest_does_the_same(tmp_path: Path):
    from tests.operate.test_erasing import in_thread

    path = tmp_path / "a.db"
    words = [f"You said {WORD}", "You said heron"] * 3
    cls = type("Parrot", (Parrot,), {"model": ScriptedModel(words)}, name="parrot")
    app = App(agents=[cls], store=f"sqlite:///{path}", auth=lambda request, _: who(request))
    async with serving(app) as url:
        for _ in range(3):
            await post(url, "parrot/team", "ann", f"remember {WORD}")
            await post(url, "parrot/team", "bob", "remember the heron")
        assert len(await app.agent(cls, "team").search.find(WORD, mode="all")) == 6
    await in_thread(path, "principals", "erase", "ann", "--yes")
    assert found(path, WORD) == set()
    assert not any(WORD[:8] in term for term in vocabulary(path))
    async with store_at(path) as (_store, index):
        assert len(await index.find(Lookup(query="heron", mode="all"))) == 6
    await asyncio.sleep(0)


async def test_an_agent_without_search_runs_no_statement_for_it(tmp_path: Path):
    """What a turn did not ask for costs nothing."""

    class Plain(Think):
        model: Any = ScriptedModel(["Yes."])

    seen: list[str] = []
    from thinkwell.store.sqlite_link import SqliteLink

    original = SqliteLink._sql  # pyright: ignore[reportPrivateUsage]

    def note(self: Any, query: str) -> str:
        seen.append(query)
        return original(self, query)

    SqliteLink._sql = note  # pyright: ignore[reportPrivateUsage]
    try:
        async with running(Plain, "Yes.") as stage:
            await stage.agent.run("hello")
            await stage.agent.clear_messages()
        assert seen
        assert [query for query in seen if "search" in query or query == "index_again"] == []
        seen.clear()
        async with running(Room, "Yes.") as stage:  # and one with it none in the turn itself
            await asyncio.sleep(0)
            seen.clear()
            await stage.agent.run("hello")
            in_turn = [query for query in seen if query in ("add_search_entry", "search_ahead")]
        assert in_turn == []
    finally:
        SqliteLink._sql = original  # pyright: ignore[reportPrivateUsage]
