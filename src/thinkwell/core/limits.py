"""How much one client may take: `Limits`, and whose share it is."""

from __future__ import annotations

import ipaddress
from functools import lru_cache

import msgspec

from thinkwell.core.errors import ConfigurationError
from thinkwell.core.principal import Principal

NO_LIMIT = 1_000_000
"""For what wants a number where there is no limit."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much one principal may take; where nobody is known, one client address.

    Clients on this machine without a principal are not counted: they are you, or a proxy that hides
    everybody behind it. None switches a limit off.
    """

    sockets: int | None = 500
    """Open at once."""
    new_agents: int | None = 1000
    """In an hour: agents that did not exist when somebody asked for them."""
    messages: float | None = 100.0
    """In a second, in the long run: WebSocket messages and requests. Sockets are slowed down."""
    message_burst: int = 1000
    """How many may come at once before that counts."""
    waiting_turns: int | None = 1000
    """Asked for and not ended, over all agents."""
    waiting_turns_per_agent: int | None = 200
    """The same for one agent, whoever asked."""
    jobs: int | None = 32
    """Attempts of jobs that run at once, over all agents."""
    jobs_per_agent: int | None = 8
    """The same for one agent."""
    name_length: int | None = 256
    """Characters of an agent's name in the URL."""
    body_seconds: float | None = 60.0
    """Until the whole body of a request has come."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if value is None and name != "message_burst":
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
                raise ConfigurationError(
                    f"Limits({name}={value!r}) is no limit. Give 0 or more"
                    f"{'' if name == 'message_burst' else ', or None for no limit'}."
                )

    read_seconds: float | None = 60.0
    """Until a client has taken the next piece of an answer."""


def payer_of(principal: Principal | None, address: str | None) -> str | None:
    """Whose share something counts for; None: nobody's."""
    if principal is not None:
        return f"principal {principal.id}"
    return _payer_at(address or "")


@lru_cache(maxsize=1024)
def _payer_at(address: str) -> str | None:
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return None  # a Unix socket, or a test
    if ip.is_loopback:
        return None
    if isinstance(ip, ipaddress.IPv6Address):  # one customer has a whole network of these
        return f"address {ipaddress.ip_network((ip, 64), strict=False)}"
    return f"address {ip}"
