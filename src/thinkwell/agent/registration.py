"""`add_hook`, typed per event, so that a type checker knows what each hook is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Literal, TypeVar, overload

from thinkwell.core.signal import Disposer
from thinkwell.core.user_code import MaybeAsync
from thinkwell.hooks.answers import StepConfig, ToolDecision, TurnConfig
from thinkwell.hooks.contexts import (
    ChatAbortContext,
    ChatDoneContext,
    ChatErrorContext,
    ChatRecoveryContext,
    ChatResponse,
    ChunkContext,
    Classification,
    MessageContext,
    ResponseContext,
    ScopeContext,
    StepContext,
    StepFinishContext,
    ToolCallContext,
    ToolFailureContext,
    ToolResultContext,
    ToolSuccessContext,
    TurnContext,
    TurnStartContext,
)
from thinkwell.hooks.plugins import tracked
from thinkwell.hooks.recovery import RecoveryOptions
from thinkwell.hooks.registry import HookRegistry
from thinkwell.hooks.trace import TraceContext

C = TypeVar("C")
A = TypeVar("A")
Taking = Callable[[C], Any]
"""A hook that is given a context, and whose answer is ignored; may be async."""
Answering = Callable[[C], MaybeAsync[A | Mapping[str, Any] | None]]
"""A hook that is given a context and may answer, or leave things as they are; may be async."""
ErrorHook = (
    Callable[[Any, ChatErrorContext], MaybeAsync[A | None]]
    | Callable[[ChatErrorContext], MaybeAsync[A | None]]
)
"""A hook that is given the error and the context, or the context alone."""


class Registration:
    """Hooks that are added while the agent is awake."""

    _registry: HookRegistry

    @overload
    def add_hook(
        self,
        event: Literal["on_turn_start", "on_chat_start"],
        call: Taking[TurnStartContext],
        *,
        name: str | None = None,
        timeout: float | None = None,
    ) -> Disposer: ...
    @overload
    def add_hook(
        self,
        event: Literal["on_message"],
        call: Taking[MessageContext],
        *,
        name: str | None = None,
        timeout: float | None = None,
    ) -> Disposer: ...
    @overload
    def add_hook(
        self,
        event: Literal["on_chat_recovery"],
        call: Answering[ChatRecoveryContext, RecoveryOptions],
        *,
        name: str | None = None,
        timeout: float | None = None,
    ) -> Disposer: ...
    @overload
    def add_hook(
        self,
        event: Literal["before_turn"],
        call: Answering[TurnContext, TurnConfig],
        *,
        name: str | None = None,
        timeout: float | None = None,
    ) -> Disposer: ...
    @overload
    def add_hook(
        self,
        event: Literal["before_step", "pre_request"],
        call: Answering[StepContext, StepConfig],
        *,
        name: str | None = None,
        timeout: float | None = None,
    ) -> Disposer: ...
    @overload
    def add_hook(
        self,
        event: Literal["on_chunk"],
        call: Taking[ChunkContext],
        *,
        name: str | None = None,
        timeout: float | None = None,
    ) -> Disposer: ...
    @overload
    def add_hook(
        self,
        event: Literal["on_response"],
        call: Answering[ResponseContext, Mapping[str, Any]],
        *,
        name: str | None = None,
        timeout: float | None = None,
    ) -> Disposer: ...
    @overload
    def add_hook(
        self,
        event: Literal["before_tool_call", "pre_tool_call"],
        call: Answering[ToolCallContext, ToolDecision],
        *,
        name: str | None = None,
        timeout: float | None = None,
    ) -> Disposer: ...
    @overload
    def add_hook(
        self,
        event: Literal["on_tool_result", "on_tool_call_result"],
        call: Answering[ToolSuccessContext, Mapping[str, Any]],
        *,
        name: str | None = None,
        timeout: float | None = None,
    ) -> Disposer: ...
    @overload
    def add_hook(
        self,
        event: Literal["on_tool_error", "on_tool_call_error"],
        call: Answering[ToolFailureContext, Mapping[str, Any]],
        *,
        name: str | None = None,
        timeout: float | None = None,
    ) -> Disposer: ...
    @overload
    def add_hook(
        self,
        event: Literal["after_tool_call"],
        call: Taking[ToolResultContext],
        *,
        name: str | None = None,
        timeout: float | None = None,
    ) -> Disposer: ...
    @overload
    def add_hook(
        self,
        event: Literal["on_step_finish", "on_step_end"],
        call: Taking[StepFinishContext],
        *,
        name: str | None = None,
        timeout: float | None = None,
    ) -> Disposer: ...
    @overload
    def add_hook(
        self,
        event: Literal["on_chat_error"],
        call: ErrorHook[Exception | str],
        *,
        name: str | None = None,
        timeout: float | None = None,
    ) -> Disposer: ...
    @overload
    def add_hook(
        self,
        event: Literal["classify_chat_error"],
        call: ErrorHook[Classification],
        *,
        name: str | None = None,
        timeout: float | None = None,
    ) -> Disposer: ...
    @overload
    def add_hook(
        self,
        event: Literal["on_chat_done"],
        call: Taking[ChatDoneContext],
        *,
        name: str | None = None,
        timeout: float | None = None,
    ) -> Disposer: ...
    @overload
    def add_hook(
        self,
        event: Literal["on_chat_abort"],
        call: Taking[ChatAbortContext],
        *,
        name: str | None = None,
        timeout: float | None = None,
    ) -> Disposer: ...
    @overload
    def add_hook(
        self,
        event: Literal["on_chat_response"],
        call: Taking[ChatResponse],
        *,
        name: str | None = None,
        timeout: float | None = None,
    ) -> Disposer: ...
    @overload
    def add_hook(
        self,
        event: Literal["on_scope_register", "on_scope_unregister"],
        call: Taking[ScopeContext],
        *,
        name: str | None = None,
        timeout: float | None = None,
    ) -> Disposer: ...
    @overload
    def add_hook(
        self,
        event: Literal["trace"],
        call: Callable[[TraceContext], AbstractContextManager[Any] | None],
        *,
        name: str | None = None,
        timeout: float | None = None,
    ) -> Disposer: ...
    def add_hook(
        self,
        event: str,
        call: Callable[..., Any] | None = None,
        *,
        name: str | None = None,
        timeout: float | None = None,
    ) -> Disposer:
        """Register `call` for a moment of every turn, after the class's own method.

        `timeout` seconds without an end count as a raise. Returns a disposer that may be called
        again. Registrations last as long as the agent is awake; put permanent ones into `on_start`
        or use `@hook`.
        """
        if call is None:
            # Without the default, Python would speak of a missing `call` to who writes a decorator.
            raise TypeError(
                f"add_hook({event!r}) is given no function. Write `add_hook({event!r}, function)`, "
                f"or `@hook({event!r})` above a method of the class."
            )
        return tracked(self._registry.add(event, call, name=name, timeout=timeout))
