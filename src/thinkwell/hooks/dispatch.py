"""Calling hooks: order, merging, and what a raise does (spec/02 §5.0.4–5.0.8).

A raise affects exactly the scope of the hook: an observer's is isolated and reported as
`hook:error`; an interceptor's goes to the caller, who fails the turn or the tool call. Either way
it is logged once: here what is isolated, and by whoever ends the turn what ends it. `AbortTurn` and
`FailTurn` always end the turn. Under `strict_hooks` what an observer or a tool hook raises ends
it too (`HookFailedError`). The registry knows who; this file knows how; `answers.py` knows what.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from inspect import isawaitable
from types import CoroutineType, MappingProxyType
from typing import Any, cast

import msgspec

from thinkwell.core import json
from thinkwell.core.bus import EventBus
from thinkwell.core.errors import AbortTurn, FailTurn, TurnError, UserCodeError
from thinkwell.core.tasks import LeftBehindError, StoppedError, TaskOwner, go_on, run_apart
from thinkwell.core.turn_events import HookFailed
from thinkwell.core.user_code import as_exception, blame, in_hook, log_failure, log_fields
from thinkwell.core.visits import visit
from thinkwell.hooks.answers import (
    SAME_STEP,
    SAME_TURN,
    Allow,
    Block,
    Fail,
    StepConfig,
    Substitute,
    ToolDecision,
    TurnConfig,
)
from thinkwell.hooks.contexts import (
    ChatErrorContext,
    ChatRecoveryContext,
    Classification,
    ModelResponse,
    ResponseContext,
    StepContext,
    ToolCallContext,
    ToolFailureContext,
    ToolSuccessContext,
    TurnContext,
)
from thinkwell.hooks.hiding import for_reading, read_keys, withheld
from thinkwell.hooks.read_only import ordinary, read_only_copy
from thinkwell.hooks.reading import (
    as_classification,
    as_decision,
    as_response,
    as_step_answer,
    as_turn_config,
    chosen_of,
    decision_said,
    merge,
    read_key,
    step_answer_said,
)
from thinkwell.hooks.recovery import AS_USUAL, RecoveryOptions, as_recovery_options, merged
from thinkwell.hooks.registry import Hook, HookRegistry
from thinkwell.models.base import Model, ModelRequest

log = logging.getLogger("thinkwell.hooks")

Revalidate = Callable[[Mapping[str, Any]], Mapping[str, Any]]
Patch = Callable[[StepContext, StepConfig], StepContext]
Resolve = Callable[[Any], Model]
Decided = Callable[[str, Mapping[str, Any]], None]
"""Hears which hook has answered, and what it chose, by field."""


def _nobody_asks(_hook: str, _said: Mapping[str, Any]) -> None:
    """Nobody wants to hear it."""


class HookFailedError(Exception):
    """What a hook raised while `strict_hooks` is on. Ends the turn; never leaves the harness."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(json.error_text(error))
        self.error = error if isinstance(error, Exception) else RuntimeError(repr(error))


class Recovered(msgspec.Struct, frozen=True):
    """`on_tool_error` turned a failed call into a success."""

    result: Any


class HookLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How long a hook of the end may take, and who owns it."""

    hook: float | None = None
    grace: float = 0.0
    owner: TaskOwner = msgspec.field(default_factory=lambda: TaskOwner("hooks"))


class Hooks:
    """Calls the hooks of one agent."""

    def __init__(
        self,
        registry: HookRegistry,
        bus: EventBus,
        *,
        agent_id: str = "",
        strict: bool = False,
        limits: HookLimits | None = None,
    ) -> None:
        self.registry = registry
        self.strict = strict
        self._bus = bus
        self._agent_id = agent_id
        self._limits = limits or HookLimits()

    # Observers

    async def observe(self, event: str, context: msgspec.Struct) -> None:
        """Tell observers. What they return is ignored, what they raise is reported."""
        for hook in self.registry.hooks(event):
            if not hook.alive:
                continue
            try:
                answer: Any = hook.call(context)
                kind = type(answer)  # pyright: ignore[reportUnknownVariableType]
                if kind is CoroutineType:
                    # Most hooks never wait. Those need nobody to watch them, which would cost more
                    # than they do with a delta.
                    try:
                        waits_for = answer.send(None)
                    except StopIteration:
                        continue
                    answer = go_on(answer, waits_for)
                if answer is not None and isawaitable(answer):
                    await visit(hook.name, answer, hook.timeout)
            except BaseException as error:  # noqa: BLE001 - an observer never breaks a turn
                self._isolate(event, hook, as_exception(error, hook.name, "hook"), context)

    async def observe_end(self, event: str, context: msgspec.Struct) -> None:
        """Tell observers of the end. Nothing they raise changes how the turn ended."""
        for hook in self.registry.hooks(event):
            if hook.alive:
                await self.call_end(event, hook, context)

    async def call_end(self, event: str, hook: Hook, context: msgspec.Struct) -> None:
        """Tell one of them."""
        try:
            answer = hook.call(context)
            if answer is not None and isawaitable(answer):
                await self._apart(hook, answer)
        except (AbortTurn, FailTurn) as error:  # they come too late
            self.report(event, hook.name, error, context)
        except BaseException as error:  # noqa: BLE001 - the turn has ended
            self.report(event, hook.name, as_exception(error, hook.name, "hook"), context)

    # Interceptors of the turn and its steps

    async def on_chat_recovery(
        self, context: ChatRecoveryContext, decided: Decided = _nobody_asks
    ) -> RecoveryOptions:
        """What the hooks want for an interrupted turn. One that raises has no say: the turn must
        not be lost because the code that was to save it is broken.
        """
        chosen = AS_USUAL
        for hook in self.registry.hooks("on_chat_recovery"):
            if not hook.alive:
                continue
            try:
                given = await _call(hook, context)
                answer = as_recovery_options(given, hook.name)
            except (AbortTurn, FailTurn):
                raise
            except Exception as error:  # noqa: BLE001 - see above
                self._isolate("on_chat_recovery", hook, error, context)
                continue
            if given is not None:
                decided(hook.name, {"persist": answer.persist, "continue": answer.continue_})
            chosen = merged(chosen, answer)
        return chosen

    async def before_turn(
        self,
        context: TurnContext,
        resolve: Resolve | None = None,
        decided: Decided = _nobody_asks,
    ) -> TurnConfig:
        """Merge the answers of all `before_turn` hooks; each sees what the earlier ones changed.

        `resolve` turns the name of a model into the model as soon as a hook gives it. `decided`
        hears what each has answered.
        """
        merged = SAME_TURN
        for hook in self.registry.hooks("before_turn"):
            if not hook.alive:
                continue
            given = await _call(hook, with_turn_config(context, merged))
            with in_hook(hook.name):
                answer = as_turn_config(given, hook)
            if resolve is not None and answer is not None and answer.model is not None:
                answer = msgspec.structs.replace(answer, model=resolve(answer.model))
            if answer is not None:
                decided(hook.name, chosen_of(answer))
            merged = merge(merged, answer)
        return merged

    async def before_step(
        self, context: StepContext, patch: Patch, decided: Decided = _nobody_asks
    ) -> tuple[StepContext, StepConfig, ModelResponse | None]:
        """Let hooks patch the step, replace its request, or answer in the model's place.

        The first answer ends the chain. Each hook sees what the earlier ones changed.
        """
        merged = SAME_STEP
        for hook in self.registry.hooks("before_step"):
            if not hook.alive:
                continue
            given = await _call(hook, context)
            with in_hook(hook.name):
                answer = as_step_answer(given, hook, context.request)
            said = step_answer_said(answer)
            if said:
                decided(hook.name, said)
            if answer.config is not None:
                merged = merge(merged, answer.config)
                context = patch(context, answer.config)
            if answer.request is not None:
                context = _with_request(context, answer.request)
            if answer.response is not None:
                return context, merged, answer.response
        return context, merged, None

    async def on_response(self, context: ResponseContext) -> ModelResponse:
        """Let every hook change the response, one after the other."""
        for hook in self.registry.hooks("on_response"):
            if hook.alive:
                answer = await _call(hook, context)
                with in_hook(hook.name):
                    given = read_key(answer, "response", hook)
                    changed = as_response(given, hook, context.response) if given else None
                if changed is not None:
                    context = msgspec.structs.replace(context, response=changed)
        return context.response

    # Interceptors of one tool call

    async def before_tool_call(
        self, context: ToolCallContext, revalidate: Revalidate, decided: Decided = _nobody_asks
    ) -> tuple[ToolDecision, Mapping[str, Any]]:
        """Ask whether the tool may run.

        The first Block, Substitute or Fail ends the chain; Allow feeds the next hook.
        """
        for hook in self.registry.hooks("before_tool_call"):
            if not hook.alive:
                continue
            # A view: one that writes into the input must not change what the next one sees, nor
            # what runs.
            shown = msgspec.structs.replace(
                context,
                input=read_only_copy(context.input),
                original_input=read_only_copy(context.original_input),
            )
            given = await self._tool_hook(hook, shown)
            with in_hook(hook.name):
                decision = as_decision(given, hook)
            if decision is not None:
                decided(hook.name, decision_said(decision))
            replaced = getattr(decision, "input", None)
            if isinstance(replaced, Mapping):
                # A hook is trusted to choose another input, not to know the tool's schema.
                checked = revalidate(ordinary(dict(cast("Mapping[str, Any]", replaced))))
                context = msgspec.structs.replace(context, input=checked)
            if isinstance(decision, Block | Substitute | Fail):
                return decision, context.input
        return Allow(), context.input

    async def on_tool_result(self, context: ToolSuccessContext) -> Any:
        """Let every hook change a result before anybody sees it."""
        result = context.result
        shown = for_reading(context, result=read_only_copy(result))
        for hook in self.registry.hooks("on_tool_result"):
            if not hook.alive:
                continue
            said = await self._redactor(hook, shown, ("result",))
            if "result" in said and said["result"] is not shown.result:
                result = said["result"]
                shown = msgspec.structs.replace(shown, result=read_only_copy(result))
        return result

    async def on_tool_error(self, context: ToolFailureContext) -> BaseException | Recovered:
        """Let every hook change an error before anybody sees it, or make the call succeed."""
        recovered: Recovered | None = None
        context = for_reading(context)
        for hook in self.registry.hooks("on_tool_error"):
            if not hook.alive:
                continue
            said = await self._redactor(hook, context, ("result", "error"))
            if "result" in said:
                recovered = Recovered(said["result"])
            elif "error" in said:
                recovered = None
                error = said["error"]
                error = error if isinstance(error, BaseException) else RuntimeError(str(error))
                context = msgspec.structs.replace(context, error=error)
        return recovered or context.error

    async def _redactor(
        self, hook: Hook, context: msgspec.Struct, keys: tuple[str, ...]
    ) -> Mapping[str, Any]:
        """What a hook that may hide something answers; raises `RedactionError` if it fails."""
        try:
            return read_keys(await _call(hook, context), keys, hook)
        except Exception as error:  # noqa: BLE001 - told below, without what it says
            told = withheld(hook, error)
        # Here and not above, so that the new error has no link to the old one and its text.
        raise HookFailedError(told) if self.strict else told

    async def _tool_hook(self, hook: Hook, context: msgspec.Struct) -> object:
        try:
            return await _call(hook, context)
        except Exception as error:
            if self.strict:
                raise HookFailedError(error) from error
            raise

    # Interceptors of the end

    async def classify_chat_error(
        self, error: Exception, context: ChatErrorContext
    ) -> Classification | None:
        """The first answer of a hook; one that raises has none."""
        for hook in self.registry.hooks("classify_chat_error"):
            if hook.alive:
                given = await self._safely("classify_chat_error", hook, error, context)
                answer = as_classification(given)
                if answer is not None:
                    return answer
        return None

    async def on_chat_error(self, error: Exception, context: ChatErrorContext) -> Exception | str:
        """Let hooks replace the error. One that raises leaves it as it was."""
        current: Exception | str = error
        for hook in self.registry.hooks("on_chat_error"):
            if hook.alive:
                answer = await self._safely("on_chat_error", hook, current, context)
                if isinstance(answer, Exception | str):
                    current = answer
                    shown = TurnError(answer) if isinstance(answer, str) else answer
                    context = msgspec.structs.replace(context, error=shown)
                elif answer is not None:
                    wrong = TypeError(
                        f"{hook.name} returned {answer!r:.100}; return an exception, a text or "
                        "None."
                    )
                    self.report("on_chat_error", hook.name, wrong, context)
        return current

    async def _safely(
        self, event: str, hook: Hook, error: Exception | str, context: ChatErrorContext
    ) -> object:
        try:
            arguments = {
                "both": (error, context),
                "error": (error,),
                "context": (context,),
            }
            with in_hook(hook.name):
                answer = hook.call(*arguments[hook.of_error])
            return await self._apart(hook, answer) if isawaitable(answer) else answer
        except (AbortTurn, FailTurn) as failure:  # they come too late
            self.report(event, hook.name, failure, context)
        except Exception as failure:  # noqa: BLE001 - the turn ends as it would have
            self.report(event, hook.name, failure, context)
        return None

    async def _apart(self, hook: Hook, answer: Awaitable[object]) -> object:
        """Wait for a hook of the end: nobody could go on in its place, so it has its own task."""
        limit = self._limits.hook if hook.timeout is None else hook.timeout
        grace, owner = self._limits.grace, self._limits.owner
        try:
            return await run_apart(
                _awaited(hook, answer), name=hook.name, limit=limit, grace=grace, owner=owner
            )
        except StoppedError:
            ignores = ""
        except LeftBehindError as left:
            owner.keep(left.task)
            ignores = " and is left behind"
        raise TimeoutError(f"{hook.name} took longer than {limit:g} seconds{ignores}.")

    def report(
        self, event: str, hook: str, error: BaseException, context: msgspec.Struct | None = None
    ) -> None:
        """Say in the log and on the bus that a hook failed without failing the turn."""
        self._tell(event, hook, error, context)
        # One that comes too late is no defect, but nobody would see that it did nothing.
        level = logging.WARNING if isinstance(error, AbortTurn | FailTurn) else logging.ERROR
        about = {"hook": hook, "event": event, **self._whose(context)}
        log_failure(log, f"the hook {hook}", error, about, level=level)

    def _tell(
        self, event: str, hook: str, error: BaseException, context: msgspec.Struct | None
    ) -> None:
        # Whoever watches the bus wants what was raised, not the coat we put around it.
        raised = error.__cause__ if isinstance(error, UserCodeError) else error
        self._bus.emit(
            HookFailed,
            agent=self._agent_id or None,
            request_id=getattr(context, "request_id", None) or log_fields.get().get("turn"),
            event=event,
            hook=hook,
            error=raised or error,
        )

    def _whose(self, context: msgspec.Struct | None) -> dict[str, str]:
        facts = {"agent": self._agent_id, "turn": getattr(context, "request_id", "")}
        return {name: value for name, value in facts.items() if value}

    def _isolate(
        self, event: str, hook: Hook, error: BaseException, context: msgspec.Struct
    ) -> None:
        if not self.strict:
            self.report(event, hook.name, error, context)
            return
        self._tell(event, hook.name, error, context)  # the log hears of it when the turn fails
        blame(error, hook.name, "hook")
        raise HookFailedError(error) from error


async def _call(hook: Hook, *arguments: object) -> object:
    with in_hook(hook.name):
        answer: object = hook.call(*arguments)
        return await visit(hook.name, answer, hook.timeout) if isawaitable(answer) else answer


async def _awaited(hook: Hook, answer: Awaitable[object]) -> object:
    with in_hook(hook.name):
        return await answer


def _with_request(context: StepContext, request: ModelRequest) -> StepContext:
    """The context with another request; what the next hook sees and patches is that request."""
    # A request that leaves a tool out takes it away: it must not run although it was not offered.
    offered = {spec.name for spec in request.tools}
    tools = {name: tool for name, tool in context.tools.items() if name in offered}
    return msgspec.structs.replace(
        context,
        request=request,
        messages=request.messages,
        system=request.system,
        tools=MappingProxyType(tools),
        tool_choice=request.tool_choice,
    )


def with_turn_config(context: TurnContext, config: TurnConfig) -> TurnContext:
    """The context with what earlier hooks chose."""
    changes: dict[str, Any] = {}
    if config.system is not None:
        changes["system"] = config.system
    if config.messages is not None:
        changes["messages"] = tuple(config.messages)
    if config.tools is not None:
        changes["tools"] = MappingProxyType({**context.tools, **config.tools})
    if config.model is not None:
        changes["model"] = config.model
    changes["config"] = config
    return msgspec.structs.replace(context, **changes)
