# type: ignore
"""Settings of a block that there are not, and texts that are none."""

from __future__ import annotations

from thinkwell import Session


async def wrong(session: Session) -> None:
    # E pyright: No parameter named "max_token"
    # E mypy: Unexpected keyword argument "max_token"
    session.with_context("memory", max_token=100)
    # E pyright: "Literal['world']" is not assignable to type
    # E mypy: has incompatible type "Literal['world']"
    session.with_context("memory", scope="world")
    # E pyright: "Literal[7]" is not assignable to "str"
    # E mypy: has incompatible type "int"
    await session.replace_context_block("memory", 7)
