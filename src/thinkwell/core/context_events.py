"""Events about context blocks and the prompts made of them."""

from __future__ import annotations

from typing import Literal

from thinkwell.core.bus_event import BusEvent


class ContextChanged(BusEvent, frozen=True, kw_only=True):
    """A stored context block, or one of its entries, has a new version. `agent` wrote it."""

    type: Literal["context:changed"] = "context:changed"
    label: str
    key: str
    """The entry; empty for the block itself."""
    version: int
    scope: str
    source: Literal["model", "code"]
    principal: str | None
    """The id of whoever asked for the turn."""
    turn: str | None
    tool_call_id: str | None
    restored: int | None
    """The version that was brought back."""


class ContextPromptMade(BusEvent, frozen=True, kw_only=True):
    """The system prompt was made of the blocks anew: providers' caches begin with it again."""

    type: Literal["context:prompt"] = "context:prompt"
    reason: Literal["first", "changed", "asked"]
    """`changed`: a prompt was kept, but the blocks were set up differently since."""
    fingerprint: str
    principal: str | None
    """Whose it is, if a block of theirs is in it."""
    tokens: int
