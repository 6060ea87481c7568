# type: ignore
"""Calls that do not fit what they call."""

from __future__ import annotations

from pydantic import BaseModel

from thinkwell import App, Think, rpc


class City(BaseModel):
    name: str


class Guide(Think):
    model = "demo"
    # E pyright: Type "Literal['often']" is not assignable to declared type
    # E mypy: Incompatible types in assignment
    on_max_steps = "often"
    # E pyright: is not assignable to
    # E mypy: List item 0 has incompatible type "str"; expected "Feature | Without"
    features = ["notes"]

    @rpc
    async def largest(self, country: str) -> City:
        result = await self.run(country, output=City)
        # E pyright: Cannot access attribute "people" for class "City"
        # E mypy: "City" has no attribute "people"
        print(result.output.people)
        return result.output


async def main(app: App) -> None:
    guide = app.agent(Guide)
    # E pyright: "Literal[3]" is not assignable to "str"
    # E mypy: Argument 1 to "largest" of "Guide" has incompatible type "int"
    await guide.largest(3)
    # E pyright: Cannot access attribute "smallest" for class "Guide"
    # E mypy: "Guide" has no attribute "smallest"
    await guide.smallest("France")
    # E pyright: No overloads for "run" match
    # E mypy: No overload variant of "run" of "Think" matches
    await guide.run("Hi", max_step=3)
