"""What a client says about a call that it cannot have got honestly (DESIGN §8.12).

Clients lag behind, cross each other and make ids of their own; all that is normal. These are not:
a decision about a call that never asked for one, and a result for a call that waits for leave.
Nothing here changes what happens, since a copy is not read anyway: it is worth a report.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, TypeAlias, cast

from thinkwell.messages.message import Part, is_tool_part

Claim: TypeAlias = Literal["approval", "result"]
"""What is claimed: that somebody has decided, or that a tool has run."""


def claims_in(message: Any) -> Iterator[tuple[str, Claim]]:
    """The calls of a client's copy that it says were decided or have a result."""
    parts: Any = cast("dict[str, Any]", message).get("parts") if isinstance(message, dict) else None
    for part in cast("list[Any]", parts) if isinstance(parts, list) else []:
        if isinstance(part, dict) and (found := _claim(cast("Part", part))) is not None:
            yield found


def is_forged(claim: Claim, call: Part | None) -> bool:
    """Whether no honest client can say so of this call; None: nobody has ever made it."""
    if call is None:
        # Of what a clear deleted, old copies still show results.
        return claim == "approval"
    if claim == "approval":
        return not call.get("approval")
    return call.get("state") == "approval-requested"


def _claim(part: Part) -> tuple[str, Claim] | None:
    call_id, state = part.get("toolCallId"), part.get("state")
    if not is_tool_part(part) or not isinstance(call_id, str):
        return None
    if state == "approval-responded":
        return call_id, "approval"
    return (call_id, "result") if state in ("output-available", "output-error") else None
