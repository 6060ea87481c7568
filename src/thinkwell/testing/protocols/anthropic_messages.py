"""Anthropic's messages, as the provider speaks them and as strictly as it reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, Final, cast

from thinkwell.core import json
from thinkwell.testing.protocols.reply import Reply, event

PATH: Final = "/v1/messages"
_ID: Final = re.compile(r"^[a-zA-Z0-9_-]+$")
_MOST_MARKERS: Final = 4
_RESULT: Final = "_tool_result"
Block = dict[str, Any]


def find_fault(body: Mapping[str, Any]) -> str | None:
    """What Anthropic would refuse about this request, or None."""
    return next(_faults(body), None)


def _faults(body: Mapping[str, Any]) -> Iterator[str]:
    messages = cast("list[dict[str, Any]]", body.get("messages") or [])
    if not messages or not body.get("model") or not isinstance(body.get("max_tokens"), int):
        yield "a request needs a model, messages and max_tokens"
        return
    if messages[0]["role"] != "user":
        yield "the first message must use the user role"
    for first, second in pairwise(messages):
        if first["role"] == second["role"]:
            yield f"two messages of the role {first['role']!r} in a row"
    for message in messages:
        yield from _block_faults(message)
    yield from _pair_faults(messages)
    yield from _server_faults(messages)
    if _markers(body) > _MOST_MARKERS:
        yield f"more than {_MOST_MARKERS} blocks with cache_control"
    kinds = {block["type"] for message in messages for block in _blocks(message)}
    if kinds & {"tool_use", "tool_result"} and not body.get("tools"):
        yield "messages with tool calls need tools"
    yield from _thinking_faults(body)


def _thinking_faults(body: Mapping[str, Any]) -> Iterator[str]:
    thinking = cast("dict[str, Any]", body.get("thinking") or {})
    if thinking.get("type") != "enabled":
        return
    if thinking["budget_tokens"] >= body["max_tokens"]:
        yield "max_tokens must be greater than thinking.budget_tokens"
    if "temperature" in body or "top_k" in body:
        yield "temperature may not be set when thinking is enabled"
    choice = cast("dict[str, Any]", body.get("tool_choice") or {})
    if choice.get("type") in ("any", "tool"):
        yield "thinking may not be enabled when tool_choice forces tool use"


def _blocks(message: Mapping[str, Any]) -> list[Block]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _block_faults(message: Mapping[str, Any]) -> Iterator[str]:
    if not message["content"]:
        yield "a message must have content"
    for block in _blocks(message):
        match block["type"]:
            case "text" if not block["text"]:
                yield "text content blocks must be non-empty"
            case "thinking" if not block.get("signature"):
                yield "a thinking block needs its signature"
            case "tool_use" if not _ID.match(block["id"]):
                yield f"tool_use.id {block['id']!r} should match {_ID.pattern}"
            case "tool_use" if not isinstance(block["input"], dict):
                yield "tool_use.input should be an object"
            case _:
                pass


def _pair_faults(messages: list[dict[str, Any]]) -> Iterator[str]:
    """Every call is answered at the beginning of the next message, and nothing else is."""
    nothing: dict[str, Any] = {"role": "", "content": []}
    for message, following in pairwise([*messages, nothing]):
        asked = [b["id"] for b in _blocks(message) if b["type"] == "tool_use"]
        given: list[str] = []
        for block in _blocks(following):
            if block["type"] != "tool_result":
                break
            given.append(block["tool_use_id"])
        if missing := sorted(set(asked) - set(given)):
            yield f"tool_use ids without tool_result blocks immediately after: {missing}"
        if extra := sorted(set(given) - set(asked)):
            yield f"unexpected tool_use_id in tool_result blocks: {extra}"
        placed = [b for b in _blocks(following) if b["type"] == "tool_result"]
        if len(placed) != len(given):
            yield "tool_result blocks must come first in the content"


def _server_faults(messages: list[dict[str, Any]]) -> Iterator[str]:
    """Only an answer that was paused may hold a call without its result: the last message."""
    for place, message in enumerate(messages):
        blocks = _blocks(message)
        asked = {b["id"]: b["name"] for b in blocks if b["type"] == "server_tool_use"}
        given = {b["tool_use_id"] for b in blocks if b["type"].endswith(_RESULT)}
        last = place == len(messages) - 1
        for call_id, name in asked.items():
            if call_id not in given and not last:
                yield (
                    f"messages.{place}: `{name}` tool use with id `{call_id}` was found without a "
                    f"corresponding `{name}{_RESULT}` block"
                )
        if last and message["role"] == "assistant" and not asked:
            yield "This model does not support assistant message prefill."


def _markers(body: Mapping[str, Any]) -> int:
    system = cast("str | list[Block]", body.get("system") or [])
    blocks: list[Block] = [] if isinstance(system, str) else [*system]
    blocks += cast("list[Block]", body.get("tools") or [])
    for message in body["messages"]:
        blocks += _blocks(message)
    return sum("cache_control" in block for block in blocks)


def encode_reply(reply: Reply, model: str) -> list[bytes]:
    """The events of a message, ready for the socket."""
    usage = _usage(reply.usage)
    message: Block = {
        "id": "msg_mock",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**usage, "output_tokens": 1},
    }
    events: list[Block] = [{"type": "message_start", "message": message}, {"type": "ping"}]
    for index, (block, deltas) in enumerate(_contents(reply)):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [{"type": "content_block_delta", "index": index, "delta": d} for d in deltas]
        events.append({"type": "content_block_stop", "index": index})
    reason = reply.finish_reason or ("tool_use" if reply.calls else "end_turn")
    end = {"stop_reason": reason, "stop_sequence": None}
    told = {"output_tokens": usage["output_tokens"]}
    events.append({"type": "message_delta", "delta": end, "usage": told})
    events.append({"type": "message_stop"})
    return [event(payload, named=True) for payload in events]


def _contents(reply: Reply) -> Iterator[tuple[Block, list[Block]]]:
    if reply.reasoning:
        thoughts = [{"type": "thinking_delta", "thinking": text} for text in reply.reasoning]
        signed = {"type": "signature_delta", "signature": reply.signature or "sig"}
        yield {"type": "thinking", "thinking": "", "signature": ""}, [*thoughts, signed]
    for call in reply.server_calls:
        if not call.asked_before:
            asked: Block = {"type": "server_tool_use", "id": call.id, "name": call.name}
            yield (
                {**asked, "input": {}},
                [{"type": "input_json_delta", "partial_json": json.dumps(call.input)}],
            )
        if call.result is not None:
            found = {"type": f"{call.name}{_RESULT}", "tool_use_id": call.id}
            yield {**found, "content": call.result}, []
    if reply.deltas:
        texts = [{"type": "text_delta", "text": text} for text in reply.deltas]
        yield {"type": "text", "text": ""}, texts
    for call in reply.calls:
        pieces = [{"type": "input_json_delta", "partial_json": text} for text in call.arguments]
        yield {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}, pieces


def _usage(usage: Mapping[str, Any]) -> dict[str, Any]:
    details = cast("dict[str, Any]", usage.get("prompt_tokens_details") or {})
    cached = details.get("cached_tokens") or 0
    return {
        "input_tokens": usage["prompt_tokens"] - cached,
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": 0,
        "output_tokens": usage["completion_tokens"],
    }
