"""From stored history to the prompt (spec/02 §10), then `before_turn` has its say.

Reads only a window from the leaf upward, and conversion is cached by (id, version), so a turn at
message 10,000 costs what it costs at message 100.
"""

from __future__ import annotations

from collections.abc import Awaitable
from inspect import isawaitable
from types import MappingProxyType
from typing import TypeVar, cast

from thinkwell.core.errors import EmptyPromptError, ToolDefinitionError
from thinkwell.hooks.contexts import TurnContext
from thinkwell.messages.convert import to_model_messages
from thinkwell.messages.message import UIMessage
from thinkwell.messages.model_messages import ModelMessage
from thinkwell.messages.repair import is_intact, repair_transcript
from thinkwell.messages.truncate import count_older, truncate_message
from thinkwell.session.rows import StoredMessage
from thinkwell.store.base import Transaction
from thinkwell.tools.tool import Tool, as_tool
from thinkwell.turn.prompt import Prompt
from thinkwell.turn.running import RunningTurn

T = TypeVar("T")

MIN_RECENT = 4
"""The newest messages are always sent, whatever their size."""


async def assemble(turn: RunningTurn) -> Prompt:
    """Everything the first model call needs."""
    parts = turn.parts
    context = TurnContext(
        **turn.hook_fields(),
        system=await _value(parts.agent.get_system_prompt()),
        messages=await _history(turn),
        tools=MappingProxyType(await _tools(turn)),
        model=parts.resolve_model(parts.agent.get_model()),
        body=None if turn.record.body is None else MappingProxyType(turn.record.body),
        attempt=turn.record.attempt - 1,
    )
    config = await parts.hooks.before_turn(context)
    messages = context.messages if config.messages is None else tuple(config.messages)
    if not messages:
        raise EmptyPromptError(
            "There is no message to send to the model. Give `run` an input, or add messages first."
        )
    return Prompt(
        model=context.model if config.model is None else parts.resolve_model(config.model),
        system=context.system if config.system is None else config.system,
        messages=messages,
        tools={**context.tools, **(config.tools or {})},
        max_steps=config.max_steps or parts.agent.max_steps,
        config=config,
    )


async def _history(turn: RunningTurn) -> tuple[ModelMessage, ...]:
    cache = turn.parts.session.cache
    window = await _repaired(turn, await _window(turn))
    if not window:
        return ()
    first = window[0].depth - 1
    older = count_older(first + len(window)) - first
    result: list[ModelMessage] = []
    for index, stored in enumerate(window):
        if index < older:
            result.extend(cache.converted(stored, _shortened, variant="older"))
        else:
            result.extend(cache.model_messages(stored))
    return tuple(result)


async def _window(turn: RunningTurn) -> list[StoredMessage]:
    recent = await turn.parts.session.get_recent_history(
        turn.parts.agent.hydration_byte_budget, MIN_RECENT, leaf_id=turn.answer_parent
    )
    return recent.messages


async def _repaired(turn: RunningTurn, window: list[StoredMessage]) -> list[StoredMessage]:
    """Give every unanswered call a result; a changed message is stored once and stays as it is."""
    cache = turn.parts.session.cache
    if all(cache.converted(stored, is_intact, variant="intact") for stored in window):
        return window
    repair = repair_transcript([stored.message for stored in window])
    if not repair.changed_ids:
        return window
    session = turn.parts.session

    async def store(tx: Transaction) -> None:
        for message in repair.messages:
            if message["id"] in repair.changed_ids:
                await session.update(tx, message)

    await turn.parts.commits.run(turn.parts.owner, store)
    turn.parts.bus.emit(
        "chat:transcript:repaired",
        request_id=turn.record.request_id,
        removed_tool_calls=repair.removed_tool_calls,
        normalized_inputs=repair.normalized_inputs,
        tool_call_ids=repair.tool_call_ids,
    )
    return await _window(turn)


def _shortened(message: UIMessage) -> tuple[ModelMessage, ...]:
    return to_model_messages(truncate_message(message))


async def _tools(turn: RunningTurn) -> dict[str, Tool]:
    own = turn.parts.own_tools
    more = await _value(turn.parts.agent.get_tools())
    given = {name: as_tool(value) for name, value in dict(more).items()}
    for name in given.keys() & own.keys():
        raise ToolDefinitionError(
            f"get_tools() returns a tool named {name!r}, and a method decorated with @tool has "
            "that name too. Rename one of them."
        )
    return {**own, **given}


async def _value(value: T | Awaitable[T]) -> T:
    return await cast("Awaitable[T]", value) if isawaitable(value) else cast("T", value)
