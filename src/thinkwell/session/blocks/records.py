"""What a context block is, and what is known about each of its versions (spec/03 §4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

import msgspec

from thinkwell.session.blocks.providers import BlockSource, Kind
from thinkwell.store.base import Row

BlockScope: TypeAlias = Literal["session", "agent", "principal", "class"]
Placement: TypeAlias = Literal["prompt", "tail"]
Writer: TypeAlias = Literal["model", "code"]

SCOPES: Final = ("session", "agent", "principal", "class")
PLACEMENTS: Final = ("prompt", "tail")
EVERYWHERE: Final = "*"
"""Stands for the session of what all sessions share."""


class BlockSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A block as its author has set it up. What it holds is elsewhere."""

    label: str
    description: str | None
    max_tokens: int | None
    placement: Placement
    scope: BlockScope
    kind: Kind
    writable: bool
    source: BlockSource | None
    """Where the text comes from; None: it is stored here."""

    @property
    def stored(self) -> bool:
        """Whether its content is rows of ours, with versions."""
        return self.source is None

    @property
    def shared(self) -> bool:
        """Whether other agents may change it."""
        return self.scope in ("principal", "class")


class ContextBlock(msgspec.Struct, frozen=True, kw_only=True):
    """A context block and what it holds now."""

    label: str
    description: str | None
    content: str
    """Its text; of a block with entries, the list that the model is shown."""
    tokens: int
    """The estimate for `content`."""
    max_tokens: int | None
    writable: bool
    """Whether the model may write it."""
    is_skill: bool
    """Whether its entries are loaded by key."""
    is_searchable: bool
    """Whether its entries are found by search."""
    version: int
    """Counts the changes; 0 if nothing was written yet, or if the text comes from a provider."""
    scope: BlockScope
    placement: Placement


class BlockVersion(msgspec.Struct, frozen=True, kw_only=True):
    """One change of a block or of one of its entries: what it became, who did it, and when."""

    label: str
    key: str
    """The entry; empty for the block itself."""
    version: int
    content: str | None
    """None: the entry was deleted."""
    description: str | None
    agent: str
    """The agent that wrote it."""
    source: Writer
    """Whether the model did, with `set_context`, or your code."""
    principal: str | None
    """Who asked for the turn it was written in."""
    turn: str | None
    tool_call_id: str | None
    restored: int | None
    """The version that an undo brought back."""
    changed_at: float


class BlockPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where the rows of a block or an entry are."""

    agent: str
    session: str
    label: str
    key: str = ""

    @property
    def params(self) -> dict[str, Any]:
        """As queries take it."""
        return {name: getattr(self, name) for name in self.__struct_fields__}


class Author(msgspec.Struct, frozen=True, kw_only=True):
    """On whose behalf a version is written."""

    source: Writer = "code"
    principal: str | None = None
    turn: str | None = None
    tool_call_id: str | None = None


def version_of(row: Row) -> BlockVersion:
    """A row as a record."""
    return BlockVersion(
        label=row["label"],
        key=row["key"],
        version=row["version"],
        content=row["content"],
        description=row["description"],
        agent=row["writer"],
        source=row["source"],
        principal=row["principal"],
        turn=row["turn"],
        tool_call_id=row["tool_call_id"],
        restored=row["restored"],
        changed_at=row["changed_at"],
    )


Shown: TypeAlias = Mapping[str, int]
"""Which versions of its blocks a prompt shows, by label."""
