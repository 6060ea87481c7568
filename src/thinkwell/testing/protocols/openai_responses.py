"""OpenAI's responses, as the provider speaks them and as strictly as it reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count, pairwise
from typing import Any, Final, cast

from thinkwell.testing.protocols.reply import MockCall, Reply, event

PATH: Final = "/v1/responses"
_ROLES: Final = ("user", "assistant", "system", "developer")
Item = dict[str, Any]


def find_fault(body: Mapping[str, Any]) -> str | None:
    """What OpenAI would refuse about this request, or None."""
    return next(_faults(body), None)


def _faults(body: Mapping[str, Any]) -> Iterator[str]:
    given = cast("str | list[Item]", body.get("input") or [])
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    if not items or not body.get("model"):
        yield "a request needs a model and an input"
        return
    if body.get("background") and body.get("store") is False:
        yield "Background mode requires store=true."
    asked: set[str] = set()
    for item in items:
        match item.get("type", "message"):
            case "message" if item.get("role") not in _ROLES:
                yield f"unknown role {item.get('role')!r}"
            case "function_call":
                asked.add(item["call_id"])
                if not isinstance(item["arguments"], str):
                    yield "function_call.arguments must be a string"
            case "function_call_output" if item["call_id"] not in asked:
                yield f"No tool call found for function call output with call_id {item['call_id']}."
            case "function_call_output":
                asked.discard(item["call_id"])
            case _:
                pass
    if asked:
        yield f"No tool output found for function call {sorted(asked)[0]}."
    yield from _reasoning_faults(items, stored=body.get("store", True) is not False)


def _reasoning_faults(items: list[Item], *, stored: bool) -> Iterator[str]:
    for item, following in pairwise([*items, {"role": "user"}]):
        if item.get("type") != "reasoning":
            continue
        if following.get("role") in ("user", "system", "developer"):
            name = item.get("id")
            yield f"Item '{name}' of type 'reasoning' was provided without its required item."
        if not stored and not item.get("encrypted_content"):
            yield f"Item with id '{item.get('id')}' not found: items are not stored."


def encode_reply(reply: Reply, model: str, response_id: str = "resp_mock") -> list[bytes]:
    """The events of a response, ready for the socket."""
    numbers = count()
    payloads = [
        {"type": kind, "sequence_number": next(numbers), **fields}
        for kind, fields in _events(reply, response_frame(response_id, model))
    ]
    return [event(payload, named=True) for payload in payloads]


def response_frame(response_id: str, model: str, status: str = "in_progress") -> Item:
    """A response as the provider describes it."""
    response: Item = {"id": response_id, "object": "response", "model": model, "status": status}
    response |= {"created_at": 1_700_000_000, "output": [], "error": None, "usage": None}
    response |= {"tools": [], "tool_choice": "auto", "parallel_tool_calls": True}
    return response | {"incomplete_details": None, "instructions": None, "metadata": {}}


def _events(reply: Reply, response: Item) -> Iterator[tuple[str, Item]]:
    yield "response.created", {"response": response}
    yield "response.in_progress", {"response": response}
    index = 0
    if reply.reasoning:
        yield from _reasoning(reply, index)
        index += 1
    if reply.deltas:
        yield from _message(reply, index)
        index += 1
    for call in reply.calls:
        yield from _call(call, index)
        index += 1
    cut = reply.finish_reason not in (None, "completed")
    kind = "incomplete" if cut else "completed"
    ended = {**response, "status": kind, "usage": _usage(reply.usage)}
    if cut:
        ended["incomplete_details"] = {"reason": reply.finish_reason}
    yield f"response.{kind}", {"response": ended}


def _reasoning(reply: Reply, index: int) -> Iterator[tuple[str, Item]]:
    item: Item = {"id": f"rs_{index}", "type": "reasoning", "summary": []}
    where = {"output_index": index, "item_id": item["id"], "summary_index": 0}
    yield "response.output_item.added", {"output_index": index, "item": item}
    part = {"type": "summary_text", "text": ""}
    yield "response.reasoning_summary_part.added", {**where, "part": part}
    for text in reply.reasoning:
        yield "response.reasoning_summary_text.delta", {**where, "delta": text}
    whole = "".join(reply.reasoning)
    yield "response.reasoning_summary_text.done", {**where, "text": whole}
    done = {**item, "summary": [{"type": "summary_text", "text": whole}]}
    done["encrypted_content"] = reply.signature or "encrypted"
    yield "response.output_item.done", {"output_index": index, "item": done}


def _message(reply: Reply, index: int) -> Iterator[tuple[str, Item]]:
    item: Item = {"id": f"msg_{index}", "type": "message", "role": "assistant", "content": []}
    item["status"] = "in_progress"
    where = {"output_index": index, "item_id": item["id"], "content_index": 0}
    yield "response.output_item.added", {"output_index": index, "item": item}
    part: Item = {"type": "output_text", "text": "", "annotations": []}
    yield "response.content_part.added", {**where, "part": part}
    for text in reply.deltas:
        yield "response.output_text.delta", {**where, "delta": text, "logprobs": []}
    part = {**part, "text": "".join(reply.deltas)}
    yield "response.output_text.done", {**where, "text": part["text"], "logprobs": []}
    yield "response.content_part.done", {**where, "part": part}
    done = {**item, "content": [part], "status": "completed"}
    yield "response.output_item.done", {"output_index": index, "item": done}


def _call(call: MockCall, index: int) -> Iterator[tuple[str, Item]]:
    item: Item = {"id": f"fc_{index}", "type": "function_call", "call_id": call.id}
    item |= {"name": call.name, "arguments": "", "status": "in_progress"}
    where = {"output_index": index, "item_id": item["id"]}
    yield "response.output_item.added", {"output_index": index, "item": item}
    for text in call.arguments:
        yield "response.function_call_arguments.delta", {**where, "delta": text}
    whole = "".join(call.arguments)
    told = {**where, "name": call.name, "arguments": whole}
    yield "response.function_call_arguments.done", told
    done = {**item, "arguments": whole, "status": "completed"}
    yield "response.output_item.done", {"output_index": index, "item": done}


def _usage(usage: Mapping[str, Any]) -> Item:
    return {
        "input_tokens": usage["prompt_tokens"],
        "output_tokens": usage["completion_tokens"],
        "total_tokens": usage["total_tokens"],
        "input_tokens_details": usage.get("prompt_tokens_details") or {"cached_tokens": 0},
        "output_tokens_details": usage.get("completion_tokens_details") or {"reasoning_tokens": 0},
    }
