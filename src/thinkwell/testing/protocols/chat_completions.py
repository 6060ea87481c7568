"""OpenAI's chat completions, as a provider speaks them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from thinkwell.testing.protocols.reply import Reply, event

PATH: Final = "/v1/chat/completions"


def find_fault(body: Mapping[str, Any]) -> str | None:
    """What a real provider would refuse about this request, or None."""
    messages = cast("list[dict[str, Any]]", body.get("messages") or [])
    if not messages or not body.get("model") or body.get("stream") is not True:
        return "a request needs a model, messages and stream: true"
    waiting: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                return f"tool result {message['tool_call_id']!r} answers no call"
            waiting.discard(message["tool_call_id"])
            continue
        if waiting:
            break
        waiting = {call["id"] for call in message.get("tool_calls", ())}
    return f"tool calls without a result: {sorted(waiting)}" if waiting else None


def encode_reply(reply: Reply, model: str) -> list[bytes]:
    """The events of a reply, ready for the socket; usage and the end marker come last."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": text} for text in reply.reasoning]
    deltas += [{"content": text} for text in reply.deltas]
    for index, call in enumerate(reply.calls):
        function = {"name": call.name, "arguments": ""}
        first = {"index": index, "id": call.id, "type": "function", "function": function}
        pieces = [{"index": index, "function": {"arguments": text}} for text in call.arguments]
        deltas += [{"tool_calls": [item]} for item in (first, *pieces)]
    reason = reply.finish_reason or ("tool_calls" if reply.calls else "stop")
    events = [_chunk(model, [{"index": 0, "delta": d, "finish_reason": None}]) for d in deltas]
    events.append(_chunk(model, [{"index": 0, "delta": {}, "finish_reason": reason}]))
    events.append(_chunk(model, [], usage=dict(reply.usage)))
    return [*events, b"data: [DONE]\n\n"]


def _chunk(model: str, choices: list[dict[str, Any]], **extra: Any) -> bytes:
    return event(
        {
            "id": "chatcmpl-mock",
            "object": "chat.completion.chunk",
            "created": 1_700_000_000,
            "model": model,
            "system_fingerprint": "fp_mock",
            "choices": choices,
            **extra,
        }
    )
