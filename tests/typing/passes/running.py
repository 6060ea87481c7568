"""Results with a type, features, stubs, calls."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, assert_type

from pydantic import BaseModel

from thinkwell import Agent, App, Output, RpcStream, Think, TurnResult, rpc, tool
from thinkwell.features import Feature, Suggestions, Without


class City(BaseModel):
    name: str
    people: int


class Notes(Feature):
    name = "notes"

    async def add(self, text: str) -> int:
        return len(text)


class Guide(Think):
    model = "demo"
    features = [Notes(), Suggestions({"A tour": "Show me the town."}), Without("http_run")]
    notes: Notes

    @rpc
    async def largest(self, country: str) -> City | None:
        result = await self.run(f"The largest city of {country}", output=City)
        assert_type(result, TurnResult[City])
        return result.output if result.status == "completed" else None

    @rpc(name="countDown")
    async def count_down(self, n: int) -> AsyncIterator[int]:
        for i in range(n):
            yield i

    @rpc(streaming=True)
    async def words(self, stream: RpcStream, text: str) -> None:
        for word in text.split():
            stream.send(word)

    @tool(needs_approval=lambda value, ctx: value["cents"] > 100)
    async def pay(self, cents: int) -> str:
        """Pay for the tour."""
        return f"{cents}"

    async def remember(self) -> int:
        return await self.notes.add(self.name)


async def main() -> None:
    async with App(agents=[Guide], features=[Notes()]) as app:
        guide = app.agent(Guide, "ada")
        assert_type(guide, Guide)
        assert_type(await guide.largest("France"), City | None)
        assert_type([n async for n in guide.count_down(3)], list[int])
        assert_type(await guide.remember(), int)
        assert_type(await guide.pay(3), str)
        assert_type(await guide.notes.add("x"), int)
        result = await guide.run("Three cities", output=Output(list[City], retries=2))
        assert_type(result.raise_for_status().output, list[City])
        plain = await guide.run("Hi", model="demo", max_steps=2, body={"a": 1})
        assert_type(plain.output, Any)
        by_name: Any = app.agent("guide")
        await by_name.largest("Spain")


def agents() -> list[type[Agent]]:
    return [Guide]
