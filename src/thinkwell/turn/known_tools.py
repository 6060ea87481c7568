"""The tool that a name means now, outside of an attempt: the one place that says so."""

from __future__ import annotations

from thinkwell.core.user_code import call_hook
from thinkwell.tools.tool import Tool, as_tool
from thinkwell.turn.parts import Parts


def known_tool(parts: Parts, name: str) -> Tool | None:
    """As scopes, the class and the features have it, in this order. Calls code of users."""
    found = parts.scopes.find_tool(name)
    tool = parts.own_tools.get(name) if found is None else found.tool
    return tool or parts.offers.find_tool(name)


async def find_tool_now(parts: Parts, name: str) -> Tool | None:
    """The same, or what `get_tools` gives by that name; switched on or not."""
    if (known := known_tool(parts, name)) is not None:
        return known
    given = await call_hook("get_tools", parts.agent.get_tools)
    return as_tool(given[name], name) if name in given else None
