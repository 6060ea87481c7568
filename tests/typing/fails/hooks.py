# type: ignore
"""What hooks must not return, and what they are given."""

from __future__ import annotations

from typing import Any

from thinkwell import Session, StepConfig, Think, TurnConfig
from thinkwell.hooks import (
    ChatErrorContext,
    ChunkContext,
    ResponseContext,
    StepContext,
    ToolCallContext,
    ToolSuccessContext,
    TurnContext,
)


class Wrong(Think):
    # E pyright: returns type "str"
    # E mypy: Return type "str" of "before_turn" incompatible
    def before_turn(self, ctx: TurnContext) -> str:
        return "be brief"

    # E pyright: returns type "CoroutineType[Any, Any, TurnConfig]"
    # E mypy: Return type "Coroutine[Any, Any, TurnConfig]" of "before_step" incompatible
    async def before_step(self, ctx: StepContext) -> TurnConfig:
        return TurnConfig(max_steps=1)

    # E pyright: returns type "bool"
    # E mypy: Return type "bool" of "before_tool_call" incompatible
    def before_tool_call(self, ctx: ToolCallContext) -> bool:
        return False

    # E pyright: returns type "str"
    # E mypy: Return type "str" of "on_tool_result" incompatible
    def on_tool_result(self, ctx: ToolSuccessContext) -> str:
        return "[redacted]"

    # E pyright: returns type "str"
    # E mypy: Return type "str" of "on_response" incompatible
    def on_response(self, ctx: ResponseContext) -> str:
        return "hello"

    # E pyright: returns type "str"
    # E mypy: Return type "str" of "classify_chat_error" incompatible
    def classify_chat_error(self, error: Exception, ctx: ChatErrorContext) -> str:
        return "flaky"

    # E pyright: returns type "StepConfig"
    # E mypy: Return type "StepConfig" of "on_chunk" incompatible
    def on_chunk(self, ctx: ChunkContext) -> StepConfig:
        return StepConfig()

    # E pyright: returns type "None"
    # E mypy: Return type "None" of "configure_session" incompatible
    def configure_session(self, session: Session) -> None:
        print(session)

    # E pyright: returns type "list[Any]"
    # E mypy: Return type "list[Any]" of "get_tools" incompatible
    def get_tools(self) -> list[Any]:
        return []


class Given(Think):
    # E pyright: Parameter 2 type mismatch
    # E mypy: Argument 1 of "on_chunk" is incompatible
    def on_chunk(self, ctx: ToolCallContext) -> None:
        print(ctx.tool_name)

    def before_turn(self, ctx: TurnContext) -> TurnConfig:
        # E pyright: Cannot access attribute "sytem" for class "TurnContext"
        # E mypy: "TurnContext" has no attribute "sytem"
        print(ctx.sytem)
        # E pyright: No parameter named "temprature"
        # E mypy: Unexpected keyword argument "temprature" for "TurnConfig"
        return TurnConfig(temprature=0.5)

    def before_step(self, ctx: StepContext) -> StepConfig:
        # E pyright: "Literal['hot']" is not assignable to "float"
        # E mypy: Argument "temperature" to "StepConfig" has incompatible type "str"
        return StepConfig(temperature="hot")
