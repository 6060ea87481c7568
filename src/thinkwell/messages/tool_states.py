"""How a tool part moves from state to state when a chunk about its call arrives.

Each function changes the part it is given, so the caller must own that part (`fold.py` owns its
copy, `settle.py` makes one). Whether the chunk may act at all (replays, late denials) is asked
beforehand with `takes_approval_request`, `takes_denial` and `is_settled`. Nested values are
replaced, never changed in place: a chunk may share them with the part.

Invariant: no transition leads to an earlier state (spec/02 §1.4).
"""

from __future__ import annotations

from typing import Any

from thinkwell.messages.chunks import Chunk
from thinkwell.messages.message import Part, approval_of, is_settled, normalize_input

INPUT_STREAMING = "input-streaming"
DEFAULT_ERROR = "Tool execution failed"


def new_tool_part(chunk: Chunk) -> Part:
    """A part for a call that an input chunk opens. Static parts carry `toolName` too."""
    name = chunk["toolName"]
    kind = "dynamic-tool" if chunk.get("dynamic") else f"tool-{name}"
    part: Part = {"type": kind, "toolCallId": chunk["toolCallId"], "toolName": name}
    part["state"] = INPUT_STREAMING
    return part


def describe_call(part: Part, chunk: Chunk) -> None:
    """Take over what an input chunk says beside the input. A repaired call may bring a new name."""
    _rename(part, chunk)
    _copy(part, chunk, ("title", "toolMetadata", "providerExecuted"))
    _copy_as(part, "callProviderMetadata", chunk)


def take_input(part: Part, chunk: Chunk) -> None:
    """F7: the input is complete. An approval that was asked before stays asked (F9)."""
    describe_call(part, chunk)
    part["input"] = normalize_input(chunk.get("input"))
    if part["state"] == INPUT_STREAMING:
        part["state"] = "input-available"


def fail_input(part: Part, chunk: Chunk) -> None:
    """F8: the model's arguments are no good. They are kept as they came, for people to see."""
    _rename(part, chunk)
    _copy(part, chunk, ("input", "toolMetadata", "providerExecuted"))
    _copy_as(part, "resultProviderMetadata", chunk)
    part.pop("output", None)
    part.pop("preliminary", None)
    part["state"] = "output-error"
    part["errorText"] = chunk.get("errorText") or DEFAULT_ERROR


def request_approval(part: Part, chunk: Chunk) -> None:
    """F9: somebody has to allow the call first."""
    approval: dict[str, Any] = {"id": chunk.get("approvalId")}
    if (descriptor := chunk.get("approvalDescriptor")) is not None:
        approval["descriptor"] = descriptor
    if chunk.get("isAutomatic") is True:
        approval["isAutomatic"] = True
    if (signature := chunk.get("signature")) is not None:
        approval["signature"] = signature
    part["state"] = "approval-requested"
    part["approval"] = approval


def answer_approval(part: Part, chunk: Chunk) -> None:
    """F10: the call was allowed or refused."""
    approval = {**approval_of(part), "approved": chunk["approved"]}
    if (reason := chunk.get("reason")) is not None:
        approval["reason"] = reason
    part["state"] = "approval-responded"
    part["approval"] = approval
    _copy(part, chunk, ("providerExecuted",))
    _copy_as(part, "callProviderMetadata", chunk)


def take_output(part: Part, chunk: Chunk) -> None:
    """F11: a result, or a preliminary one that the next replaces."""
    part["state"] = "output-available"
    part["output"] = chunk.get("output")
    part.pop("errorText", None)
    part.pop("preliminary", None)
    if chunk.get("preliminary") is True:
        part["preliminary"] = True
    _copy(part, chunk, ("providerExecuted",))
    _copy_as(part, "resultProviderMetadata", chunk)


def take_error(part: Part, chunk: Chunk) -> None:
    """F12: the call failed."""
    part["state"] = "output-error"
    part["errorText"] = chunk.get("errorText") or DEFAULT_ERROR
    part.pop("output", None)
    part.pop("preliminary", None)
    _copy(part, chunk, ("providerExecuted",))
    _copy_as(part, "resultProviderMetadata", chunk)


def deny(part: Part) -> None:
    """F12: the call was refused and did not run."""
    part["state"] = "output-denied"


def settle(part: Part, chunk: Chunk) -> bool:
    """F11, F12: the outcome of a call. False if it may not act, or is none."""
    match chunk.get("type"):
        case "tool-output-available" if takes_output(part, chunk):
            take_output(part, chunk)
        case "tool-output-error":
            take_error(part, chunk)
        case "tool-output-denied" if takes_denial(part):
            deny(part)
        case _:
            return False
    return True


def settle_late(part: Part, chunk: Chunk) -> bool:
    """F13: the outcome of a call that an earlier stream opened. False if the first one stays."""
    if is_settled(part) and part.get("preliminary") is not True:
        return False
    if not settle(part, chunk):
        return False
    if part["state"] == "output-available":
        part.setdefault("preliminary", False)
    return True


def takes_approval_request(part: Part) -> bool:
    """Whether an approval may still be asked: neither answered nor settled (F9, F18)."""
    return part.get("state") != "approval-responded" and not is_settled(part)


def takes_denial(part: Part) -> bool:
    """Whether a denial may act: not on an allowed call (F12), but on one whose answer was no."""
    if part.get("state") == "approval-responded":
        return approval_of(part).get("approved") is False
    return not is_settled(part)


def takes_output(part: Part, chunk: Chunk) -> bool:
    """Whether an output may act: a preliminary one never replaces what is final (spec/02 §1.4)."""
    if chunk.get("preliminary") is not True:
        return True
    return not is_settled(part) or part.get("preliminary") is True


def _rename(part: Part, chunk: Chunk) -> None:
    if part["type"] != "dynamic-tool":
        part["type"] = f"tool-{chunk['toolName']}"
    part["toolName"] = chunk["toolName"]


def _copy(part: Part, chunk: Chunk, names: tuple[str, ...]) -> None:
    for name in names:
        if (value := chunk.get(name)) is not None:
            part[name] = value


def _copy_as(part: Part, name: str, chunk: Chunk) -> None:
    if (metadata := chunk.get("providerMetadata")) is not None:
        part[name] = metadata
