"""Calls and their results in pairs, as every provider wants them (pure).

A history may hold a call that nothing came of (a crash, a stop) or, after a message was taken out,
a result without its call. Providers then refuse every request of that conversation.
"""

from __future__ import annotations

from collections.abc import Iterable

from thinkwell.messages.model_messages import (
    AssistantMessage,
    ModelMessage,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
)
from thinkwell.models.result_text import NO_RESULT


def paired(messages: Iterable[ModelMessage]) -> list[ModelMessage]:
    """The conversation with a result for every call, and a call for every result.

    Tools that a provider ran itself are left as they are: their pairs are its own affair.
    """
    result: list[ModelMessage] = []
    waiting: dict[str, str] = {}
    for message in messages:
        if isinstance(message, ToolMessage):
            result.extend(_answers(message, waiting))
            continue
        if waiting:
            result.append(_no_results(waiting))
        waiting = _calls(message) if isinstance(message, AssistantMessage) else {}
        result.append(message)
    if waiting:
        result.append(_no_results(waiting))
    return result


def _calls(message: AssistantMessage) -> dict[str, str]:
    return {
        item.tool_call_id: item.tool_name
        for item in message.content
        if isinstance(item, ToolCallContent) and not item.provider_executed
    }


def _answers(message: ToolMessage, waiting: dict[str, str]) -> list[ModelMessage]:
    known = [
        item
        for item in message.content
        if item.provider_executed or waiting.pop(item.tool_call_id, None) is not None
    ]
    if len(known) == len(message.content):
        return [message]
    return [ToolMessage(tuple(known))] if known else []


def _no_results(waiting: dict[str, str]) -> ToolMessage:
    return ToolMessage(
        tuple(
            ToolResultContent(call_id, name, "error-text", NO_RESULT)
            for call_id, name in waiting.items()
        )
    )
