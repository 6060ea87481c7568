"""How a class name is spelled in URLs and identity frames (spec/01 §1.1.2).

Clients apply the same rule to build the address, so it is part of the protocol.
"""

from __future__ import annotations

import re

_CAPITAL = re.compile(r"[A-Z]")


def kebab_case(name: str) -> str:
    """The kebab form of a class name: `ChatAgent` → `chat-agent`, `LOUD_AGENT` → `loud-agent`."""
    if name == name.upper() and name != name.lower():
        return name.lower().replace("_", "-")
    dashed = _CAPITAL.sub(lambda match: f"-{match[0].lower()}", name)
    return dashed.removeprefix("-").replace("_", "-").removesuffix("-")
