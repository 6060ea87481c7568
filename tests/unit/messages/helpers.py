"""Short ways to write chunks and messages down in tests."""

from collections.abc import Iterable
from typing import Any, cast

from thinkwell.messages.chunks import Chunk
from thinkwell.messages.fold import Fold
from thinkwell.messages.message import Part, UIMessage


def message(role: str, *parts: Part, id: str = "m", **fields: Any) -> UIMessage:
    return cast("UIMessage", {"id": id, "role": role, "parts": list(parts), **fields})


def assistant(*parts: Part, id: str = "a1", **fields: Any) -> UIMessage:
    return message("assistant", *parts, id=id, **fields)


def user(*parts: Part, id: str = "u1", **fields: Any) -> UIMessage:
    return message("user", *parts, id=id, **fields)


def text(content: str, **fields: Any) -> Part:
    return {"type": "text", "text": content, **fields}


def call(state: str, call_id: str = "c1", name: str = "search", **fields: Any) -> Part:
    part = {"type": f"tool-{name}", "toolCallId": call_id, "toolName": name, "state": state}
    return part | {"input": {"q": 1}} | fields


def settled_call(output: Any = "found", call_id: str = "c1", **fields: Any) -> Part:
    return call("output-available", call_id, output=output, **fields)


def chunk(kind: str, /, **fields: Any) -> Chunk:
    return {"type": kind, **fields}


def tool_chunk(kind: str, call_id: str = "c1", /, **fields: Any) -> Chunk:
    named = {"toolName": "search"} if kind.startswith("input") else {}
    return {"type": f"tool-{kind}", "toolCallId": call_id, **named, **fields}


def fold(*chunks: Chunk, onto: UIMessage | None = None, continuation: bool = False) -> Fold:
    folding = Fold(onto or assistant(), continuation=continuation)
    for item in chunks:
        folding.apply(item)
    return folding


def fold_chunks(chunks: Iterable[Chunk], message_id: str) -> UIMessage:
    """The assistant message a whole stream makes. Its id is the stream's own if that names one."""
    return fold(*chunks, onto=assistant(id=message_id)).message


def parts_of(
    *chunks: Chunk, onto: UIMessage | None = None, continuation: bool = False
) -> list[Part]:
    return fold(*chunks, onto=onto, continuation=continuation).message["parts"]


ASKED = (
    tool_chunk("input-available", input={"q": 1}),
    {"type": "tool-approval-request", "approvalId": "ap", "toolCallId": "c1"},
)
"""A call that waits for somebody to allow it."""
