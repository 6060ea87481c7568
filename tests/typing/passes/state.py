"""`Think[State]`: the type of a state is said once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypedDict, assert_type

from pydantic import BaseModel

from thinkwell import Agent, App, Connection, Think, rpc


class Count(BaseModel):
    count: int = 0


class Board(TypedDict):
    title: str
    cards: list[str]


@dataclass
class Door:
    is_open: bool


class Counter(Think[Count]):
    model = "demo"
    initial_state = Count()

    def validate_state_change(self, state: Count, source: Connection | Literal["server"]) -> None:
        if state.count < 0:
            raise ValueError("a count is never negative")

    async def on_state_changed(self, state: Count, source: object) -> None:
        print(state.count)

    @rpc
    async def add(self, n: int = 1) -> int:
        assert_type(self.state, Count)
        await self.set_state(Count(count=self.state.count + n))
        return self.state.count


class Boards(Agent[Board], name="boards"):
    initial_state = {"title": "", "cards": []}

    async def rename(self, title: str) -> None:
        await self.set_state({"title": title, "cards": self.state["cards"]})


class Doors(Think[Door | None]):
    async def is_open(self) -> bool:
        return self.state is not None and self.state.is_open


class Anything(Think):
    async def look(self) -> Any:
        assert_type(self.state, Any)
        await self.set_state({"a": [1, 2]})
        return self.state["a"]


async def main() -> None:
    async with App(agents=[Counter, Boards, Doors, Anything]) as app:
        assert_type(await app.agent(Counter).add(2), int)
        assert_type(await app.agent(Doors).is_open(), bool)
