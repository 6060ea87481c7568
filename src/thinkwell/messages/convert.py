"""UI messages as a model reads them (spec/02 §10.5, §10.9-10.12).

One message at a time and depending on nothing else, so that the result can be cached by message
id and version. An assistant message becomes one block per step: what was said and asked, then
what came of the calls. Repair (`repair.py`) and the shortening of older messages come first; a call
that nothing came of yet is left out.

Invariant: every call in the result is followed by its outcome in the next tool message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, cast

from thinkwell.messages.message import (
    Part,
    UIMessage,
    approval_of,
    asks_for_budget,
    is_tool_part,
    normalize_input,
    text_of,
    tool_name,
    with_parts,
)
from thinkwell.messages.model_messages import (
    AssistantMessage,
    FileContent,
    ModelMessage,
    ReasoningContent,
    TextContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
)
from thinkwell.messages.shorten import truncate_tool_output, truncation_note

CONTINUE_TEXT = "Continue from where you stopped, without repeating what you have already said."
DENIED_TEXT = "The user did not allow this tool call, so it was not run."

KEEP_RECENT = 4
MAX_TOOL_OUTPUT_CHARS = 500
MAX_TEXT_CHARS = 10_000
_STEP = 4
_CUT = "input-streaming"

_AssistantContent: TypeAlias = TextContent | ReasoningContent | FileContent | ToolCallContent


def to_model_messages(
    message: UIMessage, *, open_provider_calls: bool = False
) -> tuple[ModelMessage, ...]:
    """What a model gets of one message: nothing, one message, or two for each step with calls.

    `open_provider_calls`: with calls that the provider is still running, for that provider alone.
    """
    if message["role"] == "assistant":
        return _assistant_messages(message["parts"], open_provider_calls)
    if message["role"] == "system":
        # Notes about what happened (10.5). A browser can send this role too, so it gets no power.
        text = text_of(message)
        return (UserMessage((TextContent(text),)),) if text else ()
    contents = (_text(part) or _file(part) for part in message["parts"])
    content = tuple(item for item in contents if item is not None)
    return (UserMessage(content),) if content else ()


def to_tool_message(part: Part) -> ToolMessage | None:
    """What came of one call as a message of its own; None while nothing has."""
    result = _result(part)
    return None if result is None else ToolMessage((result,))


def close_with_user(messages: Sequence[ModelMessage]) -> Sequence[ModelMessage]:
    """The request, with an unstored word to go on if it would end with the assistant (10.12)."""
    if not messages or not isinstance(messages[-1], AssistantMessage):
        return messages
    return (*messages, UserMessage((TextContent(CONTINUE_TEXT),)))


def without_closing_word(messages: Sequence[ModelMessage]) -> tuple[ModelMessage, ...]:
    """The request without what `close_with_user` may have added."""
    last = messages[-1] if messages else None
    added = isinstance(last, UserMessage) and last.content == (TextContent(CONTINUE_TEXT),)
    return tuple(messages[:-1] if added else messages)


def _assistant_messages(parts: list[Part], open_calls: bool) -> tuple[ModelMessage, ...]:  # noqa: FBT001
    messages: list[ModelMessage] = []
    block: list[Part] = []
    for part in parts:
        if part.get("type") == "step-start":
            messages.extend(_block_messages(block, open_calls))
            block = []
        else:
            block.append(part)
    messages.extend(_block_messages(block, open_calls))
    return tuple(messages)


def _block_messages(block: list[Part], open_calls: bool) -> list[ModelMessage]:  # noqa: FBT001
    content: list[_AssistantContent] = []
    results: list[ToolResultContent] = []
    for part in block:
        if not is_tool_part(part):
            item = _text(part) or _reasoning(part) or _file(part)
            content.extend(() if item is None else (item,))
        elif not asks_for_budget(part) and (result := _result(part)) is not None:
            content.append(_call(part))
            results.append(result)
        elif open_calls and part.get("providerExecuted") is True and part.get("state") != _CUT:
            content.append(_call(part))
    messages: list[ModelMessage] = [AssistantMessage(tuple(content))] if content else []
    return [*messages, ToolMessage(tuple(results))] if results else messages


def _text(part: Part) -> TextContent | None:
    return TextContent(part["text"]) if part.get("type") == "text" and part.get("text") else None


def _reasoning(part: Part) -> ReasoningContent | None:
    # Only what the provider signed can be sent back; plain thoughts would be read as an answer.
    metadata = part.get("providerMetadata")
    if part.get("type") != "reasoning" or not metadata:
        return None
    return ReasoningContent(part.get("text", ""), metadata)


def _file(part: Part) -> FileContent | None:
    url, media_type = part.get("url"), part.get("mediaType")
    if part.get("type") != "file" or not isinstance(url, str) or not isinstance(media_type, str):
        return None
    return FileContent(url, media_type, part.get("filename"))


def _call(part: Part) -> ToolCallContent:
    return ToolCallContent(
        tool_call_id=part["toolCallId"],
        tool_name=tool_name(part),
        input=normalize_input(part.get("input")),
        provider_metadata=part.get("callProviderMetadata"),
        provider_executed=part.get("providerExecuted") is True,
    )


def _result(part: Part) -> ToolResultContent | None:
    """What came of a call, or None while it is incomplete (a preliminary output is)."""
    if not isinstance(part.get("toolCallId"), str):
        return None
    state = part.get("state")
    approval = approval_of(part)
    refused = state == "approval-responded" and approval.get("approved") is False
    if state == "output-denied" or refused:
        return _outcome(part, "execution-denied", approval.get("reason") or DENIED_TEXT)
    if state == "output-error":
        return _outcome(part, "error-text", str(part.get("errorText") or ""))
    has_output = state == "output-available" or "output" in part or "result" in part
    if not has_output or part.get("preliminary") is True:
        return None
    value = part["output"] if "output" in part else part.get("result")
    return _outcome(part, "text" if isinstance(value, str) else "json", value)


def _outcome(part: Part, kind: Any, value: Any) -> ToolResultContent:
    return ToolResultContent(
        tool_call_id=cast("str", part["toolCallId"]),
        tool_name=tool_name(part),
        kind=kind,
        value=value,
        provider_executed=part.get("providerExecuted") is True,
    )


def count_older(total: int, keep_recent: int = KEEP_RECENT) -> int:
    """How many messages of a path of `total` are old; at least `keep_recent` are not (10.6).

    The border moves in steps of four, so that what was sent last turn is sent again byte for byte
    and a provider's prefix cache stays warm (spec/03 §14).
    """
    return max(0, total - keep_recent) // _STEP * _STEP


def truncate_message(
    message: UIMessage,
    *,
    max_tool_output_chars: int = MAX_TOOL_OUTPUT_CHARS,
    max_text_chars: int = MAX_TEXT_CHARS,
) -> UIMessage:
    """A copy of a message as it is shown once it is old; itself when it is short enough."""
    parts = [
        _short_output(part, max_tool_output_chars)
        if is_tool_part(part)
        else _short_text(part, max_text_chars)
        for part in message["parts"]
    ]
    return with_parts(message, parts)


def _short_output(part: Part, max_chars: int) -> Part:
    for name in ("output", "result"):
        if name in part and (short := truncate_tool_output(part[name], max_chars)).truncated:
            part = {**part, name: short.value}
    return part


def _short_text(part: Part, max_chars: int) -> Part:
    text = part.get("text")
    if part.get("type") != "text" or not isinstance(text, str) or len(text) <= max_chars:
        return part
    return {**part, "text": text[:max_chars] + truncation_note(len(text))}
