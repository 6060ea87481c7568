"""The moments of a turn as methods to override, in the order they come (spec/02 §5, §7).

Every method may be `def` or `async def`. Only what a method returns changes anything. A method that
is not overridden is not called. `docs/hooks/` has a page on each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from thinkwell.core.user_code import MaybeAsync
from thinkwell.hooks.answers import StepConfig, ToolDecision, TurnConfig
from thinkwell.hooks.contexts import (
    ChatErrorContext,
    ChatResponse,
    ChunkContext,
    Classification,
    MessageContext,
    ResponseContext,
    StepContext,
    StepFinishContext,
    ToolCallContext,
    ToolFailureContext,
    ToolResultContext,
    ToolSuccessContext,
    TurnContext,
    TurnStartContext,
)
from thinkwell.session.session import Session


class Lifecycle:
    """What an agent may override."""

    def configure_session(self, session: Session, /) -> MaybeAsync[Session]:
        """Called once when the agent wakes, before `on_start`. Returns the session to use."""
        return session

    def on_turn_start(self, ctx: TurnStartContext, /) -> MaybeAsync[None]:
        """The turn has its slot; its input is not in the tree yet."""

    def on_message(self, ctx: MessageContext, /) -> MaybeAsync[None]:
        """A message entered the conversation the model sees: the input, a step, a tool's result."""

    def before_turn(self, ctx: TurnContext, /) -> MaybeAsync[TurnConfig | Mapping[str, Any] | None]:
        """The prompt is assembled, the model not called. Return a `TurnConfig` to change the turn.

        A raise fails the turn.
        """

    def authorize_turn(self, ctx: TurnContext, /) -> Any:  # noqa: ARG002 - for overriding methods
        """After `before_turn`, with what it chose. What it returns is `authorization` for tools.

        A raise fails the turn.
        """
        return True

    def before_step(self, ctx: StepContext, /) -> MaybeAsync[StepConfig | Mapping[str, Any] | None]:
        """Before every model call.

        Return a `StepConfig` to change this step, `{"request": ...}` to replace the request, or
        `{"response": ...}` to answer in the model's place. A raise fails the turn.
        """

    def on_chunk(self, ctx: ChunkContext, /) -> MaybeAsync[None]:
        """For every chunk, before it is stored and sent."""

    def on_response(self, ctx: ResponseContext, /) -> MaybeAsync[Mapping[str, Any] | None]:
        """The model has answered, no tool has run. Return `{"response": ...}` to change it.

        A raise fails the turn.
        """

    def before_tool_call(
        self, ctx: ToolCallContext, /
    ) -> MaybeAsync[ToolDecision | Mapping[str, Any] | None]:
        """Input is valid, the tool has not run. Allow, change, block, substitute or fail the call.

        A raise keeps the tool from running and becomes its error.
        """

    def on_tool_result(self, ctx: ToolSuccessContext, /) -> MaybeAsync[Mapping[str, Any] | None]:
        """A tool gave a result nobody has seen. Return `{"result": ...}` to change it.

        A raise withholds the result.
        """

    def on_tool_error(self, ctx: ToolFailureContext, /) -> MaybeAsync[Mapping[str, Any] | None]:
        """A call failed and nobody has seen why. Return `{"error": ...}` or `{"result": ...}`."""

    def after_tool_call(self, ctx: ToolResultContext, /) -> MaybeAsync[None]:
        """Once per call, before its result is stored and sent."""

    def on_step_finish(self, ctx: StepFinishContext, /) -> MaybeAsync[None]:
        """The step's tools are settled and stored."""

    def classify_chat_error(
        self, error: Exception, ctx: ChatErrorContext, /
    ) -> MaybeAsync[Classification | None]:
        """What kind of error this is; `transient` and `rate_limit` are tried again."""

    def on_chat_error(
        self, error: Exception | str, ctx: ChatErrorContext, /
    ) -> MaybeAsync[Exception | str | None]:
        """The turn failed; its end is not stored yet.

        Return another error or text to replace it.
        """

    def on_chat_response(self, ctx: ChatResponse, /) -> MaybeAsync[None]:
        """The turn ended, however: stored, told, and the agent is free for the next one."""
