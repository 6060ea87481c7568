"""`Think[State]`: what a type checker is told about a state is true (spec/01 §4)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypedDict, TypeVar

import msgspec
import pytest
from pydantic import BaseModel

from tests.turns.support import running
from thinkwell import Agent, App, Think, rpc
from thinkwell.errors import AgentDefinitionError

S = TypeVar("S")


class Count(BaseModel):
    count: int = 0


@dataclass
class Door:
    is_open: bool


class Lamp(msgspec.Struct):
    watts: int


class Board(TypedDict):
    title: str


class Typed(Agent[S], Generic[S], name="typed"):
    """A base class that leaves the type to those that derive from it."""

    async def look(self) -> Any:
        return self.state

    async def put(self, state: Any) -> None:
        await self.set_state(state)


class Counter(Typed[Count], name="counter"):
    initial_state = Count(count=3)

    def validate_state_change(self, state: Count, source: object) -> None:
        if state.count < 0:
            raise ValueError("a count is never negative")

    @rpc
    async def add(self, n: int) -> int:
        await self.set_state(Count(count=self.state.count + n))
        return self.state.count


@pytest.mark.parametrize(
    ("shape", "first"),
    [(Count, Count(count=1)), (Door, Door(True)), (Lamp, Lamp(40)), (Board, {"title": "x"})],
)
async def test_an_agent_reads_its_state_as_the_type_it_names(shape: Any, first: Any):
    class Agent1(Typed[shape], name="one"):
        initial_state = first

    async with App(agents=[Agent1], store="sqlite://:memory:") as app:
        assert await app.agent(Agent1).look() == first


async def test_a_state_that_is_changed_is_read_as_its_type_again_after_a_restart(tmp_path: Path):
    store = f"sqlite:///{tmp_path / 'a.db'}"
    async with App(agents=[Counter], store=store) as app:
        assert await app.agent(Counter).add(2) == 5
    async with App(agents=[Counter], store=store) as app:
        assert await app.agent(Counter).look() == Count(count=5)


async def test_what_does_not_fit_is_refused_and_changes_nothing():
    async with App(agents=[Counter], store="sqlite://:memory:") as app:
        counter = app.agent(Counter)
        with pytest.raises(ValueError, match=r"The state does not fit Count: .*count"):
            await counter.put({"count": "many"})
        with pytest.raises(ValueError, match="a count is never negative"):
            await counter.put(Count(count=-1))
        assert await counter.look() == Count(count=3)


async def test_what_an_older_version_stored_is_kept_and_told_when_it_does_not_fit(tmp_path: Path):
    class Old(Typed[Any], name="counter"):
        initial_state = {"total": "three"}

    class New(Typed[Count], name="counter"):
        initial_state = Count(count=1)

    class Strict(Typed[Board], name="counter"):
        initial_state: Any = {"title": "new"}

    store = f"sqlite:///{tmp_path / 'a.db'}"
    async with App(agents=[Old], store=store) as app:
        assert await app.agent(Old).look() == {"total": "three"}
    async with App(agents=[Strict], store=store) as app:
        with pytest.raises(ValueError, match=r"The state does not fit Board: .*title"):
            await app.agent(Strict).look()
        await app.agent(Strict).put({"title": "mended"})
        assert await app.agent(Strict).look() == {"title": "mended"}
    async with App(agents=[New], store=store) as app:
        assert await app.agent(New).look() == Count(count=0)


async def test_a_state_may_be_missing_at_first_only_if_its_type_says_that_it_may_be_none():
    class Bare(Typed[Count], name="bare"):
        pass

    class Filled(Bare, name="filled"):
        """`Bare` may leave it to those that derive from it."""

        initial_state = Count(count=2)

    class May(Typed[Count | None], name="may"):
        pass

    async with App(agents=[Filled, May], store="sqlite://:memory:") as app:
        assert await app.agent(May).look() is None
        assert await app.agent(Filled).look() == Count(count=2)
    with pytest.raises(AgentDefinitionError, match="Bare has no initial_state, so"):
        await App(agents=[Bare], store="sqlite://:memory:").start()


async def test_a_wrong_initial_state_is_told_before_an_app_listens():
    class Wrong(Typed[Count], name="wrong"):
        initial_state = {"count": "many"}

    with pytest.raises(AgentDefinitionError, match=r"Wrong\.initial_state does not fit Count"):
        await App(agents=[Wrong], store="sqlite://:memory:").start()


def test_a_type_in_quotes_is_refused_when_the_class_is_made():
    with pytest.raises(AgentDefinitionError, match="Quoted names the type of its state in quotes"):

        class Quoted(Think["Count"]):
            pass


async def test_a_client_cannot_set_what_does_not_fit_and_the_hook_gets_the_type():
    class Told(Think[Count]):
        model = None
        initial_state = Count(count=1)
        heard: asyncio.Queue[Any]

        async def on_start(self) -> None:
            self.heard = asyncio.Queue()

        def on_state_changed(self, state: Count, source: object) -> None:
            self.heard.put_nowait(state)

    async with running(Told) as stage:
        client = await stage.connect("a")
        await client.send(type="cf_agent_state", state={"count": "many"})
        refusal = [f for f in client.frames if f["type"] == "cf_agent_state_error"]
        assert [f["error"] for f in refusal] == ["State update rejected"]
        await client.send(type="cf_agent_state", state={"count": 2})
        assert await stage.agent.heard.get() == Count(count=2)
        assert stage.agent.state == Count(count=2)
