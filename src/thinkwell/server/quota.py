"""Refusing what is more than a client's share, before anything of the host runs."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

import msgspec

from thinkwell.host.client import AgentAddress
from thinkwell.server.edge import Edge
from thinkwell.server.routing import AgentRoute


class TooMuch(msgspec.Struct, frozen=True):
    """Why something is refused."""

    status: int
    text: str
    headers: Mapping[str, str] = {}


def refuse_name(edge: Edge, route: AgentRoute) -> TooMuch | None:
    """An agent's name may be too long."""
    most = edge.meter.limits.name_length
    if most is None or len(route.name) <= most:
        return None
    return TooMuch(414, f"An agent's name has at most {most} characters.")


def refuse_message(edge: Edge, payer: str | None) -> TooMuch | None:
    """Requests may come too fast."""
    return _later(edge.meter.messages.take(payer), "Too many requests.")


async def refuse_new_agent(edge: Edge, route: AgentRoute, payer: str | None) -> TooMuch | None:
    """Somebody may ask for too many agents that do not exist yet."""
    if payer is None or await edge.host.exists(AgentAddress(route.class_name, route.name)):
        return None
    return _later(edge.meter.new_agents.take(payer), "Too many new agents.")


def _later(wait: float, text: str) -> TooMuch | None:
    if wait <= 0:
        return None
    return TooMuch(429, text, {"retry-after": str(ceil(wait))})
