"""A block as its author sets it up, read and checked (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from thinkwell.core.spelling import did_you_mean
from thinkwell.session.blocks.providers import KINDS, Kind, read_source
from thinkwell.session.blocks.records import (
    PLACEMENTS,
    SCOPES,
    BlockScope,
    BlockSpec,
    ContextBlock,
    Placement,
)
from thinkwell.session.blocks.writes import check_label
from thinkwell.session.draft import estimate_string_tokens


class BlockOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What can be said about a block beside its label and its provider."""

    description: str | None = None
    max_tokens: int | None = None
    placement: Placement = "prompt"
    scope: BlockScope = "session"
    kind: Kind = "plain"
    writable: bool | None = None


def read_options(label: str, settings: Mapping[str, Any]) -> BlockOptions:
    """The settings of a block. Raises `TypeError` for one that there is not."""
    known = BlockOptions.__struct_fields__
    for name in settings:
        if name not in known:
            near = did_you_mean(name, known)
            raise TypeError(
                f"with_context({label!r}, {name}=...) has no meaning.{near} A block takes "
                f"{', '.join(known)}."
            )
    return BlockOptions(**settings)


def read_spec(label: str, provider: Any, options: BlockOptions) -> BlockSpec:
    """A block as its author wrote it. Raises for what cannot be meant."""
    check_label(label)
    for name, value, known in (
        ("placement", options.placement, PLACEMENTS),
        ("scope", options.scope, SCOPES),
        ("kind", options.kind, KINDS),
    ):
        if value not in known:
            raise ValueError(f"{name}={value!r} of block {label!r}: use one of {', '.join(known)}.")
    if provider is not None and (options.kind != "plain" or options.scope != "session"):
        raise ValueError(
            f"Block {label!r} has a provider, which says itself what kind it is and whose. Leave "
            "out kind= and scope=, or leave out the provider."
        )
    if options.max_tokens is not None and options.max_tokens < 1:
        raise ValueError(f"max_tokens={options.max_tokens} of block {label!r}: use 1 or more.")
    source = None if provider is None else read_source(provider, label)
    able = source.writable if source is not None else True
    if options.writable and not able:
        raise ValueError(f"Block {label!r} is writable=True, but its provider has no set().")
    # What the model of one person's agent writes, the agents of all others would read: the author
    # has to ask for that.
    usual = able and options.scope != "class"
    return BlockSpec(
        label=label,
        description=options.description,
        max_tokens=options.max_tokens,
        placement=options.placement,
        scope=options.scope,
        kind=options.kind if source is None else source.kind,
        writable=usual if options.writable is None else options.writable,
        source=source,
    )


def as_block(spec: BlockSpec, content: str, version: int) -> ContextBlock:
    """A block and what it holds."""
    return ContextBlock(
        label=spec.label,
        description=spec.description,
        content=content,
        tokens=estimate_string_tokens(content),
        max_tokens=spec.max_tokens,
        writable=spec.writable,
        is_skill=spec.kind == "loadable",
        is_searchable=spec.kind == "searchable",
        version=version,
        scope=spec.scope,
        placement=spec.placement,
    )
