"""Chunks, told apart by their `type`."""

from __future__ import annotations

from typing import Any, assert_type

from thinkwell import Think
from thinkwell.hooks import ChunkContext
from thinkwell.messages import StreamChunk


class Watcher(Think):
    model = "demo"

    def on_chunk(self, ctx: ChunkContext) -> None:
        assert_type(ctx.chunk, StreamChunk)
        print(shown(ctx.chunk))


def shown(chunk: StreamChunk) -> str:
    if chunk["type"] == "text-delta" or chunk["type"] == "reasoning-delta":
        assert_type(chunk["delta"], str)
        return chunk["delta"]
    if chunk["type"] == "tool-input-available":
        assert_type(chunk["input"], Any)
        return f"{chunk['toolName']} {chunk['toolCallId']}"
    if chunk["type"] == "finish":
        return chunk.get("finishReason", "")
    return chunk["errorText"] if chunk["type"] == "error" else ""


async def stream(agent: Watcher) -> str:
    text = ""
    async for chunk in agent.stream("Hi"):
        match chunk["type"]:
            case "text-delta":
                text += shown(chunk)
            case "abort" | "error":
                break
            case _:
                pass
    return text
