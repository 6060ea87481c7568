# type: ignore
"""States that are not of the type that the class names."""

from __future__ import annotations

from pydantic import BaseModel

from thinkwell import Think, rpc


class Count(BaseModel):
    count: int = 0


class Counter(Think[Count]):
    initial_state = Count()

    # E pyright: Parameter 2 type mismatch
    # E mypy: Argument 1 of "validate_state_change" is incompatible
    def validate_state_change(self, state: dict[str, int], source: object) -> None:
        print(state)

    @rpc
    async def add(self, n: int) -> None:
        # E pyright: "__getitem__" method not defined on type "Count"
        # E mypy: Value of type "Count" is not indexable
        print(self.state["count"])
        # E pyright: Argument of type "dict[str, int]"
        # E mypy: Argument 1 to "set_state" of "Agent" has incompatible type "dict[str, int]"
        await self.set_state({"count": n})
        # E pyright: Cannot assign to attribute "state"
        # E mypy: Property "state" defined in "Agent" is read-only
        self.state = Count()
