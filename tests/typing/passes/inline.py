"""`create_agent` without a class: typed as one."""

from __future__ import annotations

from typing import Any, assert_type

from thinkwell import Block, InlineAgent, TurnConfig, create_agent, tool
from thinkwell.hooks import (
    ChatErrorContext,
    ChunkContext,
    StepContext,
    ToolCallContext,
    ToolDecision,
    TurnContext,
)
from thinkwell.turns import AgentResponse


@tool(effect="pure")
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@tool
async def look(path: str) -> str:
    """Read a file."""
    return path


def brief(ctx: TurnContext) -> TurnConfig | None:
    return TurnConfig(max_output_tokens=10) if ctx.attempt else None


async def guard(ctx: ToolCallContext) -> ToolDecision | None:
    return Block("no") if ctx.tool_name == "look" else None


def excuse(error: Exception | str, ctx: ChatErrorContext) -> str:
    return f"{ctx.stage}: {error}"


def answered(ctx: StepContext) -> dict[str, Any] | None:
    return {"response": {"content": "at once"}} if ctx.step_number else None


async def plugin(agent: InlineAgent) -> None:
    agent.add_hook("on_chunk", lambda ctx: print(ctx.chunk))


async def main() -> None:
    assert_type(add(1, b=2), int)
    assert_type(await look("a"), str)
    async with create_agent(model="demo", tools=[add, look]) as agent:
        assert_type(agent, InlineAgent)
        remove = agent.add_hook("before_turn", brief)
        agent.add_hook("before_tool_call", guard, timeout=3)
        agent.add_hook("before_step", answered)
        agent.add_hook("on_chat_error", excuse)
        agent.add_hook("on_chat_error", lambda ctx: str(ctx.error))
        agent.add_hook("classify_chat_error", lambda error, ctx: "fatal")
        agent.add_hook("on_message", lambda ctx: print(ctx.message.role))
        seen: list[ChunkContext] = []
        agent.add_hook("on_chunk", seen.append)
        agent.add_hook("on_tool_result", lambda ctx: {"result": len(str(ctx.result))})
        await agent.use(plugin)
        assert_type(await agent.chat("Hi"), AgentResponse)
        assert_type((await agent.run("Hi")).text, str)
        remove()
