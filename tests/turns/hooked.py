"""An agent with two tools for the tests of hooks, and a hook that raises."""

from __future__ import annotations

from typing import Any

from thinkwell import Think, tool


class Tools(Think):
    """Two tools; `ran` says which of them were executed."""

    ran: list[str]

    async def on_start(self) -> None:
        self.ran = []

    @tool
    async def a(self, n: int = 0) -> Any:
        """Gives a secret."""
        self.ran.append("a")
        return f"secret {n}"

    @tool
    async def fails(self) -> str:
        """Raises."""
        self.ran.append("fails")
        raise RuntimeError("internal detail")


def raiser(problem: BaseException) -> Any:
    """A hook that raises."""

    def raises(*_: Any) -> None:
        raise problem

    return raises
