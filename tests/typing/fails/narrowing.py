# type: ignore
"""What cannot be: the wrong field of an event, a status that does not exist."""

from __future__ import annotations

from thinkwell import Think, TurnResult
from thinkwell.hooks import ToolResultContext


class Auditor(Think):
    def after_tool_call(self, ctx: ToolResultContext) -> None:
        # E pyright: "None" does not derive from BaseException
        # E mypy: Exception must be derived from BaseException
        raise ctx.error


def ended(result: TurnResult) -> bool:
    # E pyright: no overlap
    # E mypy: Non-overlapping equality check
    if result.status == "failed":
        return False
    # E pyright: no overlap
    # E mypy: Non-overlapping equality check
    return result.stop_reason == "finished"


async def events(agent: Auditor) -> None:
    async for event in agent.chat_stream("Hi"):
        if event.type == "content_delta":
            # E pyright: Cannot access attribute "text" for class "ContentDelta"
            # E mypy: "ContentDelta" has no attribute "text"
            print(event.text)
        # E pyright: no overlap
        # E mypy: Non-overlapping equality check
        if event.type == "text_delta":
            print(event)
