"""Blocks that agents share: whose they are, who reads them, writes that cross (spec/03 §19.3)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.context.support import rows
from tests.context.test_in_turns import outputs
from tests.operate.canary import CANARY, found
from tests.operate.test_erasing import in_thread
from tests.search.support import store_at
from tests.wire.serving import serving
from thinkwell import App, Principal, Session, Think, tool
from thinkwell.errors import SessionError
from thinkwell.host.deletions import delete_unserved
from thinkwell.host.erasure import Erasure, digest_of
from thinkwell.messages.message import UIMessage
from thinkwell.store.base import commit_alone
from thinkwell.testing import ScriptedModel, call


class Aide(Think):
    """Knows a person in all its agents, and everybody what the class knows."""

    model: Any = ScriptedModel([])

    def get_model(self) -> Any:
        return self.model

    def configure_session(self, session: Session) -> Session:
        session.with_context("own")
        session.with_context("me", scope="principal", description="About the person")
        session.with_context("house", scope="class", writable=True)
        session.with_context("rules", scope="class")
        return session.with_cached_prompt()

    @tool
    async def jot(self, text: str) -> str:
        """Have the author's own code write blocks, without saying for whom."""
        await self.session.append_context_block("own", text)
        await self.session.append_context_block("rules", text)
        return "jotted"


def who(request: Any, _route: Any) -> Principal | None:
    name = request.headers.get("x-user")
    return None if name is None else Principal(id=name)


class Room:
    """An app with one script, and people who ask."""

    def __init__(self, path: Path) -> None:
        self.model = ScriptedModel([])
        self.path = path
        cls: Any = type("Aide", (Aide,), {"model": self.model}, name="aide")
        self.app = App(agents=[cls], store=f"sqlite:///{path}", auth=who)
        self.url = ""

    async def ask(self, agent: str, user: str, *steps: Any) -> list[Any]:
        """One turn; what its calls gave."""
        self.model.add(*steps, "Done.")
        headers = {"x-user": user}
        async with (
            aiohttp.ClientSession() as http,
            http.post(
                f"{self.url}/agents/aide/{agent}/run", json={"input": "go"}, headers=headers
            ) as got,
        ):
            assert got.status == 200, await got.text()
            message: UIMessage = (await got.json())["message"]
        return outputs(message)

    @property
    def system(self) -> str:
        return self.model.requests[-1].system

    def session(self, agent: str) -> Session:
        return self.app.agent("aide", agent).session


def write(label: str, content: str, **more: Any) -> Any:
    return [call("set_context", {"label": label, "content": content, **more})]


@pytest.fixture
async def room(tmp_path: Path):
    made = Room(tmp_path / "a.db")
    async with serving(made.app) as made.url:
        yield made


async def test_a_person_is_known_in_all_their_agents_and_to_nobody_else(room: Room):
    await room.ask("one", "ann", write("me", "ann's secret"))
    await room.ask("two", "ann")
    assert "ann's secret" in room.system
    await room.ask("two", "bob")
    assert "ann's secret" not in room.system
    assert "ME (About the person)" in room.system
    # The same conversation: each is shown their own, by a prompt of their own.
    await room.ask("two", "bob", write("me", "bob's secret"))
    await room.session("two").refresh_system_prompt(principal="bob")
    await room.ask("two", "bob")
    assert "bob's secret" in room.system
    await room.ask("two", "ann")
    assert "ann's secret" in room.system
    assert "bob's secret" not in room.system
    kept = rows(room.path, "SELECT agent, principal FROM prompts ORDER BY agent, principal")
    assert kept == [("aide/one", "ann"), ("aide/two", "ann"), ("aide/two", "bob")]


async def test_nobody_in_particular_has_no_such_block(room: Room):
    await room.ask("one", "ann", write("me", "ann's secret"))
    room.model.add(write("me", "forged"), "Done.")
    result = await room.app.agent("aide", "one").run("go")
    assert outputs(result.message) == ['Error: block "me" not found']
    assert "ann's secret" not in room.system
    assert "ME (" not in room.system
    (tool,) = [t for t in room.model.requests[-1].tools if t.name == "set_context"]
    assert tool.input_schema["properties"]["label"]["enum"] == ["own", "house"]
    with pytest.raises(SessionError, match='principal="their id"'):
        await room.session("one").replace_context_block("me", "x")


async def test_a_name_that_looks_like_somebody_elses_place_is_nobody_else(room: Room):
    """Ids are whatever `auth` says: they must not lead into other rows."""
    await room.ask("one", "ann", write("me", "ann's secret"))
    for name in ("ann/", "ANN", "../ann", "%", "ann%", "/principal/ann", "class/aide"):
        await room.ask("one", name)
        assert "ann's secret" not in room.system


async def test_what_the_class_shares_everybody_reads_and_the_model_only_if_allowed(room: Room):
    assert await room.ask("one", "ann", write("rules", "No smoking.")) == [
        'Error: Block "rules" is readonly'
    ]
    await room.session("one").replace_context_block("rules", "No smoking.")
    await room.ask("two", "bob")
    assert "No smoking." in room.system


async def test_a_write_over_what_the_model_has_not_seen_is_told_and_not_lost(room: Room):
    await room.ask("one", "ann")
    await room.ask("two", "bob", write("house", "by two"))
    told = await room.ask("one", "ann", write("house", "by one"), write("house", "by both"))
    assert told[0].startswith('Error: block "house" was changed by another agent')
    assert "by two" in told[0]
    assert told[1].startswith("Written to house")
    # To append loses nothing, so nobody is asked.
    assert (await room.ask("two", "bob", write("house", "again", action="append")))[0] == (
        "Written to house. Usage: 4 tokens"
    )
    seen = await room.session("one").context_history("house")
    assert [(v.content, v.agent, v.principal) for v in seen] == [
        ("by both\nagain", "aide/two", "bob"),
        ("by both", "aide/one", "ann"),
        ("by two", "aide/two", "bob"),
    ]


async def test_it_is_told_after_a_restart_too(tmp_path: Path):
    for agent, told in (("one", "Written"), ("two", "Written"), ("one", "Error")):
        room = Room(tmp_path / "a.db")
        async with serving(room.app) as room.url:
            if agent == "one":  # the prompt of its first life is the one it has
                (answer,) = await room.ask(agent, "ann", write("house", "by one"))
            else:
                (answer,) = await room.ask(agent, "bob", write("house", "more", action="append"))
        assert answer.startswith(told)


async def test_of_two_that_write_at_once_one_is_told(room: Room):
    """Both have looked; the commits come one after the other."""
    await room.ask("one", "ann")
    await room.ask("two", "bob")
    room.model.add(write("house", "x"), write("house", "y"), "Done.", "Done.")

    async def one(agent: str, user: str) -> None:
        async with (
            aiohttp.ClientSession() as http,
            http.post(
                f"{room.url}/agents/aide/{agent}/run",
                json={"input": "go"},
                headers={"x-user": user},
            ) as got,
        ):
            assert got.status == 200

    await asyncio.gather(one("one", "ann"), one("two", "bob"))
    seen = await room.session("one").context_history("house")
    messages = [
        part
        for agent in ("one", "two")
        for message in (await room.app.agent("aide", agent).get_messages())[-1:]
        for part in outputs(message)
    ]
    written = [text for text in messages if text.startswith("Written")]
    assert len(written) == len(seen)
    assert len(messages) == 2


# Leaving


async def filled(path: Path) -> None:
    """Ann and Bob share a room; Ann has one of her own; the class knows something of both."""
    ann = f"ann-{CANARY}"
    room = Room(path)
    async with serving(room.app) as room.url:
        await room.ask("team", "bob", write("own", "bob was here"))
        await room.ask("team", ann, write("own", f"{CANARY} too", action="append"))
        await room.ask("team", "bob", write("own", "bob again", action="append"))
        await room.ask("alone", ann, write("own", CANARY))
        await room.ask("alone", ann, write("me", CANARY))
        await room.ask("bobs", "bob", write("me", "bob himself"))
        await room.session("bobs").replace_context_block("house", "bob's house")
        await room.ask("alone", ann, write("house", CANARY, action="append"))
        for agent, user in (("team", ann), ("team", "bob"), ("bobs", "bob")):
            await room.session(agent).refresh_system_prompt(principal=user)


async def test_an_erasure_leaves_nothing_of_a_person_in_any_block(tmp_path: Path):
    path = tmp_path / "a.db"
    await filled(path)
    assert {"context_blocks", "prompts"} <= found(path, CANARY)
    await in_thread(path, "principals", "erase", f"ann-{CANARY}", "--yes")
    assert found(path, CANARY) == set()
    kept = rows(path, "SELECT agent, label, content FROM context_blocks ORDER BY agent, label")
    assert kept == [
        ("/class/aide", "house", "bob's house"),
        ("/principal/bob", "me", "bob himself"),
        ("aide/team", "own", "bob was here"),
    ]
    assert rows(path, "SELECT COUNT(*) FROM prompts") == [(0,)]
    room = Room(path)
    async with serving(room.app) as room.url:
        await room.ask("bobs", "bob")
        assert "bob's house" in room.system


@pytest.mark.parametrize("served", [False, True])
async def test_an_erasure_reaches_the_requests_of_agents_that_were_shown_a_block(
    tmp_path: Path, *, served: bool
):
    """What one writes into a block of the class is in the journals of everybody's agents."""
    path, ann = tmp_path / "a.db", f"ann-{CANARY}"
    room = Room(path)
    async with serving(room.app) as room.url:
        await room.session("bobs").replace_context_block("house", "bob's house")
        await room.ask("alone", ann, write("house", CANARY, action="append"))
        for agent in ("bobs", "zoes"):
            await room.ask(agent, "bob")
            assert CANARY in room.system
        if served:
            await room.app.erase(ann)
            assert found(path, CANARY) == set()
            await room.ask("bobs", "bob")
            assert CANARY not in room.system
            assert "bob's house" in room.system
    if not served:
        assert {"blobs", "context_blocks"} <= found(path, CANARY)
        await in_thread(path, "principals", "erase", ann, "--yes")
    assert found(path, CANARY) == set()
    assert rows(path, "SELECT label, content, version FROM context_blocks") == [
        ("house", "bob's house", 1)
    ]
    assert len(rows(path, "SELECT id FROM turns")) == (3 if served else 2)


async def test_an_erasure_that_finds_a_reader_busy_comes_back_for_it(tmp_path: Path):
    """Blocks lead to those who were shown them, so they go last; their text goes first."""
    path, ann = tmp_path / "a.db", f"ann-{CANARY}"
    room = Room(path)
    async with serving(room.app) as room.url:
        await room.session("bobs").replace_context_block("house", "bob's house")
        await room.ask("alone", ann, write("house", CANARY, action="append"))
        for agent in ("bobs", "zoes"):
            await room.ask(agent, "bob")
    slept, busy = list[str](), {"aide/bobs"}
    async with store_at(path) as (store, _index):

        @asynccontextmanager
        async def asleep(agent_id: str, _principal: str) -> AsyncGenerator[bool]:
            slept.append(agent_id)
            yield agent_id not in busy

        async def delete(agent_id: str) -> None:
            await delete_unserved(store, agent_id, now=0)

        erasure = Erasure(
            store,
            partial(commit_alone, store),
            asleep=asleep,
            delete=delete,
            forget_blobs=lambda _: None,
        )
        assert not await erasure.run(digest_of(ann))
        assert slept == ["aide/bobs", "aide/zoes"]
        current = "SELECT content FROM context_blocks ORDER BY version DESC LIMIT 1"
        assert rows(path, current) == [("bob's house",)]
        busy.clear()
        assert await erasure.run(digest_of(ann))
        assert slept == ["aide/bobs", "aide/zoes", "aide/bobs"]
    assert found(path, CANARY) == set()
    assert rows(path, "SELECT content FROM context_blocks") == [("bob's house",)]


async def test_what_code_writes_in_a_turn_counts_as_of_whoever_asked_for_it(tmp_path: Path):
    path, ann = tmp_path / "a.db", f"ann-{CANARY}"
    room = Room(path)
    async with serving(room.app) as room.url:
        await room.session("team").replace_context_block("own", "of the app")
        for user, text in (("bob", "bob's"), (ann, CANARY)):
            await room.ask("team", user, [call("jot", {"text": text})])
    written = "SELECT label, version, principal, turn IS NULL FROM context_blocks ORDER BY 1, 2"
    assert rows(path, written) == [
        ("own", 1, None, 1),
        ("own", 2, "bob", 0),
        ("own", 3, ann, 0),
        ("rules", 1, "bob", 0),
        ("rules", 2, ann, 0),
    ]
    await in_thread(path, "principals", "erase", ann, "--yes")
    assert found(path, CANARY) == set()
    assert rows(path, "SELECT label, content FROM context_blocks ORDER BY label, version") == [
        ("own", "of the app"),
        ("own", "of the app\nbob's"),
        ("rules", "bob's"),
    ]


async def test_an_export_of_a_person_has_what_they_had_written(tmp_path: Path):
    path = tmp_path / "a.db"
    await filled(path)
    said = await in_thread(path, "principals", "export", f"ann-{CANARY}")
    lines = [json.loads(line) for line in said.splitlines()[1:-1]]
    of_blocks = [line["row"] for line in lines if line["table"] == "context_blocks"]
    places = {(row["agent"], row["label"]) for row in of_blocks}
    assert places == {
        ("aide/team", "own"),
        ("aide/alone", "own"),
        (f"/principal/ann-{CANARY}", "me"),
        ("/class/aide", "house"),
    }
    assert all(row["principal"] == f"ann-{CANARY}" for row in of_blocks)


async def test_a_deleted_agent_takes_its_blocks_along_and_leaves_what_is_shared(tmp_path: Path):
    path = tmp_path / "a.db"
    await filled(path)
    await in_thread(path, "agents", "delete", "aide/alone", "--yes")
    left = rows(path, "SELECT DISTINCT agent FROM context_blocks ORDER BY agent")
    assert left == [
        ("/class/aide",),
        (f"/principal/ann-{CANARY}",),
        ("/principal/bob",),
        ("aide/team",),
    ]
    assert rows(path, "SELECT DISTINCT agent FROM prompts ORDER BY agent") == [
        ("aide/bobs",),
        ("aide/team",),
    ]


async def test_an_agent_that_moves_remembers_and_can_undo(tmp_path: Path):
    here, there = tmp_path / "here.db", tmp_path / "there.db"
    await filled(here)
    file = tmp_path / "team.jsonl"
    file.write_text(await in_thread(here, "agents", "export", "aide/team"))
    await in_thread(there, "agents", "import", str(file), "--as", "aide/moved")
    room = Room(there)
    async with serving(room.app) as room.url:
        session = room.session("moved")
        await session.undo_context("own")
        (version, *_) = await session.context_history("own")
        assert version.content == f"bob was here\n{CANARY} too"


async def test_a_fork_remembers_what_its_source_remembers(room: Room):
    await room.ask("one", "ann", write("own", "from one"))
    leaf = (await room.app.agent("aide", "one").get_messages())[-1]["id"]
    (turn,) = rows(room.path, "SELECT id FROM turns")[0]
    await room.app.turns.fork(turn, name="two", at=leaf)
    await room.ask("two", "ann", write("own", "from two"))
    block = await room.session("two").get_context_block("own")
    assert block is not None
    assert (block.content, block.version) == ("from two", 2)
    first = await room.session("one").get_context_block("own")
    assert first is not None
    assert first.content == "from one"
