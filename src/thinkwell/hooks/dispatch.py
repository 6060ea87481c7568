"""Calling hooks: order, merging, and what a raise does (spec/02 §5.0.4–5.0.6).

A raise affects exactly the scope of the hook: an observer's is isolated and reported as
`hook:error`; an interceptor's goes to the caller, who fails the turn or the tool call. The
registry knows who; this file knows how.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from inspect import isawaitable
from types import MappingProxyType
from typing import Any, TypeVar, cast

import msgspec

from thinkwell.core.bus import EventBus
from thinkwell.core.errors import AbortTurn, FailTurn
from thinkwell.core.tasks import is_cancelled
from thinkwell.hooks.answers import (
    SAMPLING_FIELDS,
    Allow,
    Block,
    StepConfig,
    Substitute,
    TurnConfig,
)
from thinkwell.hooks.contexts import (
    ChatErrorContext,
    StepContext,
    ToolCallContext,
    TurnContext,
)
from thinkwell.hooks.read_only import read_only_copy
from thinkwell.hooks.registry import Hook, HookRegistry

Config = TypeVar("Config", TurnConfig, StepConfig)

AFTER_THE_TURN = frozenset({"on_chat_response"})
"""Observers that run when there is no turn left to stop or fail."""


class Hooks:
    """Calls the hooks of one agent."""

    def __init__(self, registry: HookRegistry, bus: EventBus) -> None:
        self.registry = registry
        self._bus = bus

    async def observe(self, event: str, context: msgspec.Struct) -> None:
        """Tell observers. What they return is ignored, what they raise is reported."""
        for hook in self.registry.hooks(event):
            if hook.alive:
                await self.tell(event, hook, context)

    async def tell(self, event: str, hook: Hook, context: msgspec.Struct) -> None:
        """Tell one observer."""
        try:
            answer = hook.call(context)
            if answer is not None and isawaitable(answer):
                await answer
        except asyncio.CancelledError as error:
            if is_cancelled():
                raise
            self.report(event, hook, error)
        except (AbortTurn, FailTurn) as error:
            if event not in AFTER_THE_TURN:
                raise
            self.report(event, hook, error)
        except Exception as error:  # noqa: BLE001 - an observer never breaks a turn
            self.report(event, hook, error)

    async def before_turn(self, context: TurnContext) -> TurnConfig:
        """Merge the answers of all `before_turn` hooks; each sees what the earlier ones changed."""
        merged = TurnConfig()
        for hook in self.registry.hooks("before_turn"):
            if hook.alive:
                answer = await _call(hook, _with_turn_config(context, merged))
                merged = _merge(merged, _as_config(answer, TurnConfig, hook))
        return merged

    async def before_step(self, context: StepContext) -> StepConfig:
        """Merge the answers of all `before_step` hooks; each sees what the earlier ones changed."""
        merged = StepConfig()
        for hook in self.registry.hooks("before_step"):
            if hook.alive:
                answer = await _call(hook, _with_step_config(context, merged))
                merged = _merge(merged, _as_config(answer, StepConfig, hook))
        return merged

    async def before_tool_call(
        self,
        context: ToolCallContext,
        revalidate: Callable[[Mapping[str, Any]], Mapping[str, Any]],
    ) -> tuple[Allow | Block | Substitute, Mapping[str, Any]]:
        """Ask whether the tool may run.

        The first Block or Substitute ends the chain; Allow feeds the next hook.
        """
        current = context.input
        for hook in self.registry.hooks("before_tool_call"):
            if not hook.alive:
                continue
            shown = msgspec.structs.replace(
                context,
                input=read_only_copy(current),
                original_input=read_only_copy(context.original_input),
            )
            match _as_decision(await _call(hook, shown), hook):
                case None:
                    continue
                case Allow(input=replaced):
                    if isinstance(replaced, Mapping):
                        current = revalidate(replaced)
                case decision:
                    return decision, current
        return Allow(), current

    async def on_chat_error(self, error: Exception, context: ChatErrorContext) -> Exception | str:
        """Let hooks replace the error. One that raises leaves it as it was."""
        current: Exception | str = error
        for hook in self.registry.hooks("on_chat_error"):
            if not hook.alive:
                continue
            try:
                answer = await _call(hook, current, context)
            except (Exception, AbortTurn, FailTurn) as failure:  # noqa: BLE001 - the turn has its end
                self.report("on_chat_error", hook, failure)
                continue
            if isinstance(answer, Exception | str):
                current = answer
        return current

    def report(self, event: str, hook: Hook, error: BaseException) -> None:
        """Say that a hook failed without failing the turn."""
        self._bus.emit("hook:error", event=event, hook=hook.name, error=error)


async def _call(hook: Hook, *arguments: object) -> object:
    try:
        answer: object = hook.call(*arguments)
        return await cast("Awaitable[object]", answer) if isawaitable(answer) else answer
    except asyncio.CancelledError as error:
        if is_cancelled():
            raise
        raise RuntimeError(
            f"{hook.name} raised CancelledError, but nobody cancelled it."
        ) from error


def _as_config(answer: object, kind: type[Config], hook: Hook) -> Config | None:
    if answer is None or isinstance(answer, kind):
        return answer
    if isinstance(answer, Mapping):
        try:
            return kind(**cast("Mapping[str, Any]", answer))
        except TypeError as error:
            fields = ", ".join(kind.__struct_fields__)
            raise TypeError(
                f"{hook.name} returned no {kind.__name__}: {error}. Its fields are: {fields}."
            ) from error
    raise TypeError(
        f"{hook.name} returned a {type(answer).__name__}; return {kind.__name__}(...), a dict or "
        "None."
    )


def _merge(base: Config, change: Config | None) -> Config:
    if change is None:
        return base
    given = {
        name: value
        for name in change.__struct_fields__
        if (value := getattr(change, name)) is not None
    }
    for name in ("tools", "headers", "provider_options"):
        if name in given and getattr(base, name, None):
            given[name] = {**getattr(base, name), **given[name]}
    return msgspec.structs.replace(base, **given)


def _with_turn_config(context: TurnContext, config: TurnConfig) -> TurnContext:
    changes: dict[str, Any] = {}
    if config.system is not None:
        changes["system"] = config.system
    if config.messages is not None:
        changes["messages"] = tuple(config.messages)
    if config.tools is not None:
        changes["tools"] = MappingProxyType({**context.tools, **config.tools})
    return msgspec.structs.replace(context, **changes) if changes else context


def _with_step_config(context: StepContext, config: StepConfig) -> StepContext:
    changes: dict[str, Any] = {}
    if config.system is not None:
        changes["system"] = config.system
    if config.messages is not None:
        changes["messages"] = tuple(config.messages)
    if config.tool_choice is not None:
        changes["tool_choice"] = config.tool_choice
    return msgspec.structs.replace(context, **changes) if changes else context


def _as_decision(answer: object, hook: Hook) -> Allow | Block | Substitute | None:
    if answer is None or isinstance(answer, Allow | Block | Substitute):
        return answer
    if isinstance(answer, Mapping):
        fields = dict(cast("Mapping[str, Any]", answer))
        kind = {"allow": Allow, "block": Block, "substitute": Substitute}.get(
            fields.pop("action", "")
        )
        if kind is not None:
            return kind(**fields)
    raise TypeError(
        f"{hook.name} returned {answer!r}; return Allow(...), Block(...), Substitute(...) or None."
    )


def sampling_of(*configs: TurnConfig | StepConfig) -> dict[str, Any]:
    """The sampling settings of several configs, later ones winning; provider options are merged."""
    result: dict[str, Any] = {}
    for config in configs:
        for name in SAMPLING_FIELDS:
            value = getattr(config, name)
            if value is None:
                continue
            if name == "provider_options":
                value = {**result.get(name, {}), **value}
            result[name] = value
    return result
