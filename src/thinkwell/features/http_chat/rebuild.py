"""Stored parts, said again as chunks: for a client whose copy of an answer is behind (pure).

A client over HTTP gets no updates beside its stream. When it goes on with an answer, the stream
first brings its copy up to date: outcomes of calls it has not heard, then whole steps it has not
seen. A client that has no copy gets the answer from its beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from thinkwell.messages.chunks import Chunk, is_data_kind, tool_error, tool_output
from thinkwell.messages.message import (
    Part,
    UIMessage,
    approval_of,
    is_settled,
    is_tool_part,
    tool_name,
    tool_parts,
)
from thinkwell.messages.plain_parts import EVERYWHERE


def outcomes_unknown_to(copy: UIMessage, stored: UIMessage) -> list[Chunk]:
    """How calls of the client's copy have ended, where it does not know or knows something else."""
    ended = {part["toolCallId"]: part for part in tool_parts(stored) if is_settled(part)}
    return [
        chunk
        for part in tool_parts(copy)
        if (known := ended.get(part["toolCallId"])) is not None and not _same_outcome(part, known)
        for chunk in _outcome(known)
    ]


def calls_of(stored: UIMessage) -> dict[str, bool]:
    """The calls of an answer by id, and whether each has ended."""
    return {part["toolCallId"]: is_settled(part) for part in tool_parts(stored)}


def says_again(chunk: Chunk, known: Mapping[str, bool]) -> bool:
    """Whether a chunk of a continuation tells what the client was told: the start of the answer,
    its calls, and how those have ended that had when it joined.
    """
    ended = known.get(str(chunk.get("toolCallId")))
    if ended is None:
        return chunk.get("type") == "start"
    return ended or chunk.get("type") == "tool-input-available"


def steps_after(parts: Sequence[Part], steps: int) -> list[Part]:
    """The parts that follow the first `steps` steps of an answer."""
    begun = 0
    for index, part in enumerate(parts):
        if part.get("type") == "step-start":
            begun += 1
            if begun > steps:
                return list(parts[index:])
    return list(parts) if steps == 0 else []


def chunks_of(parts: Sequence[Part]) -> list[Chunk]:
    """Chunks that a client folds into these parts. What clients cannot be told is left out."""
    chunks: list[Chunk] = []
    for index, part in enumerate(parts):
        chunks.extend(_chunks_of_part(part, f"stored-{index}"))
    if chunks and any(part.get("type") == "step-start" for part in parts):
        chunks.append({"type": "finish-step"})
    return chunks


def _chunks_of_part(part: Part, part_id: str) -> Iterator[Chunk]:
    kind = part.get("type")
    if part.get("hidden") is True or not isinstance(kind, str):
        return
    if is_tool_part(part):
        yield from _call(part)
    elif kind == "step-start":
        yield {"type": "start-step"}
    elif kind in ("text", "reasoning"):
        yield _with({"type": f"{kind}-start", "id": part_id}, part, "providerMetadata")
        yield {"type": f"{kind}-delta", "id": part_id, "delta": str(part.get("text", ""))}
        yield {"type": f"{kind}-end", "id": part_id}
    elif kind in EVERYWHERE:
        yield _with({"type": kind}, part, *EVERYWHERE[kind].fields)
    elif is_data_kind(kind):
        yield _with({"type": kind, "data": part.get("data")}, part, "id")


def _call(part: Part) -> Iterator[Chunk]:
    call: Chunk = {"toolCallId": part["toolCallId"], "toolName": tool_name(part)}
    if part["type"] == "dynamic-tool":
        call["dynamic"] = True
    call = _with(call, part, "providerExecuted", "title")
    if part.get("state") == "input-streaming":
        yield {"type": "tool-input-start", **call}
        return
    yield {"type": "tool-input-available", **call, "input": part.get("input")}
    if isinstance(approval_id := approval_of(part).get("id"), str):
        yield {
            "type": "tool-approval-request",
            "approvalId": approval_id,
            "toolCallId": part["toolCallId"],
        }
    if is_settled(part):
        yield from _outcome(part)


def _outcome(part: Part) -> list[Chunk]:
    call_id: str = part["toolCallId"]
    outcome = _OUTCOMES.get(str(part.get("state")), _output)(call_id, part)
    return [outcome if "denied" in outcome["type"] else _with(outcome, part, "providerExecuted")]


def _output(call_id: str, part: Part) -> Chunk:
    return tool_output(call_id, part.get("output"), preliminary=part.get("preliminary") is True)


_OUTCOMES: dict[str, Callable[[str, Part], Chunk]] = {
    "output-error": lambda call_id, part: tool_error(call_id, str(part.get("errorText") or "")),
    "output-denied": lambda call_id, _: {"type": "tool-output-denied", "toolCallId": call_id},
}


def _same_outcome(a: Part, b: Part) -> bool:
    return all(a.get(name) == b.get(name) for name in ("state", "output", "errorText"))


def _with(chunk: Chunk, part: Part, *names: str) -> Chunk:
    given: dict[str, Any] = {name: part[name] for name in names if part.get(name) is not None}
    return {**chunk, **given}
