"""Who asks. Made by the app's `auth`, stored with every turn, read by hooks and tools."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from thinkwell.core import json
from thinkwell.core.named_fields import NamedFields


class Principal(msgspec.Struct, frozen=True, kw_only=True, metaclass=NamedFields):
    """A person or a program that was let in."""

    id: str
    """Stable and unique: a user id, an e-mail address, a service name."""
    claims: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    """What else is known, as JSON data: roles, a tenant, a display name."""
    expires_at: float | None = None
    """Seconds since the epoch: when open sockets and streams have to be asked about again."""

    def __post_init__(self) -> None:
        if not isinstance(cast("object", self.id), str):
            raise TypeError(
                f"Principal(id={self.id!r}): the id is a text. Write `id=str(user.id)`."
            )
        until = cast("object", self.expires_at)
        if until is None or (isinstance(until, int | float) and not isinstance(until, bool)):
            return
        raise TypeError(
            f"Principal(expires_at={until!r}): give seconds since the epoch, for example "
            "`time.time() + 3600` or `moment.timestamp()`, or None."
        )


def load_principal(text: str | None) -> Principal | None:
    """Who is stored in a row. Raises `ValueError` if that is damaged."""
    return None if text is None else msgspec.convert(json.loads(text), Principal)
