"""`agent.history`: the conversation as a flat list of model messages (spec/02 §12.9).

A reading of the stored path and of the finished steps of the turn that runs; it keeps nothing of
its own. Storage is read, so its methods are async; only `subscribe` is not.
Invariant: two snapshots without a change between them are the same object.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from thinkwell.core.ids import new_id
from thinkwell.core.signal import Disposer
from thinkwell.journal.tail import Chunks, TailEvent
from thinkwell.messages.convert import to_model_messages
from thinkwell.messages.message import Part, UIMessage
from thinkwell.messages.model_messages import (
    AssistantMessage,
    FileContent,
    ModelMessage,
    ReasoningContent,
    SystemMessage,
    TextContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
)
from thinkwell.store.base import Transaction
from thinkwell.turn.run.step_result import step_messages
from thinkwell.turn.turns import Turns

Snapshot = tuple[ModelMessage, ...]


class HistoryView:
    """The conversation as the model sees it, without shortening."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._key: tuple[Any, ...] = ()
        self._snapshot: Snapshot = ()

    async def get_snapshot(self) -> Snapshot:
        """User, assistant and tool messages in order; the same object until something changes."""
        session = self._turns.parts.session
        stored = await session.get_stored_history()
        running, partial = self._turns.running, session.partial
        if running is not None and running.reply.stored:
            running = None
        steps = () if running is None else tuple(running.steps)
        answer = None if running is None else running.message_id
        shown = None if partial is None else partial["id"]
        key = (*((message.id, message.version) for message in stored), answer, len(steps), shown)
        if key == self._key:
            return self._snapshot
        if partial is None:
            added = [entry for step in steps for entry in step_messages(step.content)]
        else:  # the turn has failed: all of its reply counts, cut steps too
            added = to_model_messages(partial)
        flat = [e for one in stored if one.id != shown for e in session.cache.model_messages(one)]
        self._snapshot, self._key = (*flat, *added), key
        return self._snapshot

    def subscribe(self, listener: Callable[[], object]) -> Disposer:
        """Be called when the history may have changed. Returns an idempotent disposer."""

        def look(event: TailEvent | None) -> None:
            if not isinstance(event, Chunks) or any(map(_borders_step, event.bodies)):
                listener()

        return self._turns.watch(look)

    async def reset(self) -> None:
        """Forget the conversation. Raises `TurnActiveError` while a turn runs or waits."""
        await self._turns.clear(idle_for="history.reset")

    async def restore(self, messages: Sequence[ModelMessage]) -> None:
        """Replace the conversation by copies of these messages, in one go.

        Raises `TurnActiveError` while a turn runs or waits.
        """
        made, session = _ui_messages(messages), self._turns.parts.session

        async def replace(tx: Transaction) -> None:
            await session.clear(tx)
            await session.add(tx, made, None)

        await self._turns.change_idle(replace, "history.restore")


def _borders_step(body: str) -> bool:
    """Both ends: the first one may be told a moment before its step can be read."""
    return body.startswith(('{"type":"finish-step"', '{"type":"start-step"'))


def _ui_messages(messages: Sequence[ModelMessage]) -> list[UIMessage]:
    """Stored messages that read as these; an assistant and its tools become one."""
    made: list[UIMessage] = []
    for message in messages:
        match message:
            case UserMessage(content=content):
                made.append(_message("user", [_part(item) for item in content]))
            case SystemMessage(content=text):
                made.append(_message("system", [_part(TextContent(text))]))
            case AssistantMessage(content=content):
                if not made or made[-1]["role"] != "assistant":
                    made.append(_message("assistant", []))
                made[-1]["parts"] += [{"type": "step-start"}, *(_part(item) for item in content)]
            case ToolMessage(content=results):
                for result in results:
                    _settle(made, result)
    return made


def _message(role: Any, parts: list[Part]) -> UIMessage:
    return {"id": new_id(), "role": role, "parts": parts}


def _part(item: TextContent | ReasoningContent | FileContent | ToolCallContent) -> Part:
    match item:
        case TextContent(text=text):
            return {"type": "text", "text": text, "state": "done"}
        case ReasoningContent(text=text, provider_metadata=metadata):
            return _with(
                {"type": "reasoning", "text": text, "state": "done"}, "providerMetadata", metadata
            )
        case FileContent(url=url, media_type=media_type, filename=name):
            return _with({"type": "file", "url": url, "mediaType": media_type}, "filename", name)
        case ToolCallContent():
            part: Part = {
                "type": f"tool-{item.tool_name}",
                "toolCallId": item.tool_call_id,
                "state": "input-available",
                "input": dict(item.input),
            }
            return _with(part, "callProviderMetadata", item.provider_metadata)


def _settle(made: list[UIMessage], result: ToolResultContent) -> None:
    parts = made[-1]["parts"] if made else []
    part = next((p for p in parts if p.get("toolCallId") == result.tool_call_id), None)
    if part is None:
        raise ValueError(f"The tool result {result.tool_call_id!r} follows no call of that id.")
    match result.kind:
        case "error-text" | "error-json":
            part |= {"state": "output-error", "errorText": str(result.value)}
        case "execution-denied":
            approval = {"id": result.tool_call_id, "approved": False, "reason": str(result.value)}
            part |= {"state": "output-denied", "approval": approval}
        case _:
            part |= {"state": "output-available", "output": result.value}


def _with(part: Part, name: str, value: Any) -> Part:
    return part if value is None else {**part, name: value}
