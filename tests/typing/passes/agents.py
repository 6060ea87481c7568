"""An agent as a careful user writes it: every hook with its types."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, assert_type

from thinkwell import (
    AbortSignal,
    Allow,
    App,
    Block,
    Session,
    StepConfig,
    Think,
    Tool,
    ToolContext,
    TurnConfig,
    rpc,
    tool,
)
from thinkwell.hooks import (
    ChatErrorContext,
    ChatResponse,
    ChunkContext,
    Classification,
    MessageContext,
    ResponseContext,
    StepContext,
    StepFinishContext,
    ToolCallContext,
    ToolDecision,
    ToolFailureContext,
    ToolResultContext,
    ToolSuccessContext,
    TurnContext,
    TurnStartContext,
)
from thinkwell.testing import ScriptedModel


class Plain(Think):
    model = ScriptedModel(["Hi."])
    system_prompt = "You add."
    max_steps = 3
    on_max_steps = "error"
    message_concurrency = "latest"
    time_limits = {"tool": 3}

    def configure_session(self, session: Session) -> Session:
        return session

    def get_system_prompt(self) -> str:
        return "You add."

    def get_tools(self) -> dict[str, Tool]:
        return {}

    def on_turn_start(self, ctx: TurnStartContext) -> None:
        assert_type(ctx.message, str | None)

    def on_message(self, ctx: MessageContext) -> None:
        assert_type(ctx.ui_message_id, str)

    def before_turn(self, ctx: TurnContext) -> TurnConfig | None:
        assert_type(ctx.abort_signal, AbortSignal)
        return TurnConfig(temperature=0.5, active_tools=["add"]) if ctx.attempt else None

    def before_step(self, ctx: StepContext) -> StepConfig | None:
        return StepConfig(tool_choice="none") if ctx.remaining_steps == 1 else None

    def on_chunk(self, ctx: ChunkContext) -> None:
        assert_type(ctx.step_number, int)

    def on_response(self, ctx: ResponseContext) -> dict[str, Any] | None:
        return {"response": {"content": "changed"}}

    def before_tool_call(self, ctx: ToolCallContext) -> ToolDecision | None:
        return Block("no") if ctx.tool_name == "erase" else Allow()

    def on_tool_result(self, ctx: ToolSuccessContext) -> dict[str, Any] | None:
        return {"result": "[redacted]"}

    def on_tool_error(self, ctx: ToolFailureContext) -> Mapping[str, object] | None:
        return {"error": ctx.error}

    def after_tool_call(self, ctx: ToolResultContext) -> None:
        assert_type(ctx.duration_ms, float)

    def on_step_finish(self, ctx: StepFinishContext) -> None:
        assert_type(ctx.text, str)

    def classify_chat_error(self, error: Exception, ctx: ChatErrorContext) -> Classification | None:
        return "transient" if isinstance(error, TimeoutError) else None

    def on_chat_error(self, error: Exception | str, ctx: ChatErrorContext) -> str | None:
        return "Try again."

    def on_chat_response(self, ctx: ChatResponse) -> None:
        assert_type(ctx.steps, int)

    @tool
    async def add(self, a: int, b: int, ctx: ToolContext) -> int:
        """Add two numbers."""
        return a + b

    @rpc(read_only=True)
    async def total(self) -> int:
        return 1


class Async(Think):
    model = "openai-chat:gpt-4o-mini"

    async def get_system_prompt(self) -> str:
        return "You add."

    async def before_turn(self, context: TurnContext) -> TurnConfig | None:
        return None

    async def before_step(self, _ctx: StepContext) -> StepConfig | dict[str, Any] | None:
        return {"response": {"content": "at once"}}

    async def before_tool_call(self, ctx: ToolCallContext) -> Block:
        return Block("no")

    async def on_chunk(self, ctx: ChunkContext) -> None: ...

    async def on_chat_error(self, error: Exception | str, ctx: ChatErrorContext) -> Exception:
        return RuntimeError("again")

    async def authorize_turn(self, ctx: TurnContext) -> bool:
        return ctx.principal is not None


async def main() -> None:
    async with App(agents=[Plain, Async]) as app:
        agent = app.agent(Plain, "ada")
        assert_type(agent, Plain)
        assert_type(await agent.total(), int)
        result = await agent.run("Hi")
        assert_type(result.text, str)


asyncio.run(main())
