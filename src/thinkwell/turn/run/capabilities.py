"""The block of the system prompt that says what the agent can do in this turn (spec/02 §9.4).

Built from the names of the tools that are really offered, so it never promises what is not there.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

MARKER = "## What you can do here"

_WITH_TOOLS = (
    "You can call these tools: {names}. Call one when it helps to answer; its own description says "
    "what it does and what it needs. A tool may run on another machine and take a while."
)
_WITHOUT_TOOLS = "You have no tools in this conversation; answer from what you know and are told."
_ALWAYS = "Do not claim to have done or to be able to do anything that these tools do not offer."


def with_capabilities(system: str, tool_names: Collection[str], lines: Sequence[str] = ()) -> str:
    """The system prompt with the block, unless it has one already."""
    if MARKER in system:
        return system
    return f"{system}\n\n{capability_block(tool_names, lines)}".strip()


def capability_block(tool_names: Collection[str], lines: Sequence[str] = ()) -> str:
    """The block for these tools, with what features say about theirs."""
    names = ", ".join(sorted(tool_names))
    first = _WITH_TOOLS.format(names=names) if names else _WITHOUT_TOOLS
    return "\n".join((MARKER, first, *lines, _ALWAYS))
