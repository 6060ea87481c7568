# type: ignore
"""Fields that a chunk does not have, types that no chunk has."""

from __future__ import annotations

from thinkwell import Think


async def stream(agent: Think) -> str:
    text = ""
    async for chunk in agent.stream("Hi"):
        if chunk["type"] == "text-delta":
            # E pyright: "text" is not a defined key in "TextDeltaChunk"
            # E mypy: TypedDict "TextDeltaChunk" has no key "text"
            print(chunk["text"])
        # E pyright: no overlap
        # E mypy: Non-overlapping equality check
        if chunk["type"] == "text_delta":
            text = "?"
    return text
