"""What a message loses before it is stored (spec/01 §7.6, spec/03 §11).

Metadata that a provider will not accept twice, reasoning that says nothing, tool inputs that are
no objects, and the bulk of what a provider's own tools returned. `strip_reserved_metadata` and
`keep_user_parts` are the second border: what a client sends may not carry what only the server
writes. The size of a row is `limits.py`.

Invariant: inputs are never changed, an unchanged message comes back as it is, and twice equals
once.
"""

from __future__ import annotations

from typing import Any, cast

from thinkwell.messages.message import (
    Part,
    UIMessage,
    is_tool_part,
    normalize_input,
    tool_name,
    with_parts,
)

RESERVED_METADATA = frozenset({"channel", "turnMetadata"})
"""Metadata keys only the server writes."""

MAX_PROVIDER_TEXT = 500
"""Longest string kept of what a tool run by the provider took or returned."""

# OpenAI refuses a later request that brings one of these back.
_EPHEMERAL = frozenset({"itemId", "reasoningEncryptedContent"})
_KEPT_WHOLE = frozenset({"web_search", "web_fetch"})


def sanitize_message(message: UIMessage, *, keep_openai_items: bool = False) -> UIMessage:
    """The message as it may be stored. `keep_openai_items` leaves OpenAI's replay items in."""
    parts: list[Part] = []
    for part in message["parts"]:
        clean = part if keep_openai_items else _without_ephemeral(part)
        if _says_nothing(clean):
            continue
        parts.append(_clean_tool_part(clean) if is_tool_part(clean) else clean)
    return with_parts(message, parts)


def is_kept(part: Part) -> bool:
    """Whether anything of a part is stored."""
    return not _says_nothing(_without_ephemeral(part))


def strip_reserved_metadata(message: UIMessage) -> UIMessage:
    """The message without the metadata keys only the server may write."""
    metadata = message.get("metadata")
    if not metadata or RESERVED_METADATA.isdisjoint(metadata):
        return message
    kept = {key: value for key, value in metadata.items() if key not in RESERVED_METADATA}
    result = cast("UIMessage", {k: v for k, v in message.items() if k != "metadata"})
    if kept:
        result["metadata"] = kept
    return result


def keep_user_parts(message: UIMessage) -> UIMessage:
    """The message with what a user can say: texts, files and data. The rest is the server's."""
    kept = [part for part in message["parts"] if _is_user_part(part)]
    return message if len(kept) == len(message["parts"]) else with_parts(message, kept)


def _is_user_part(part: Part) -> bool:
    kind = str(part.get("type"))
    return kind in ("text", "file") or kind.startswith("data-")


def _without_ephemeral(part: Part) -> Part:
    for name in ("providerMetadata", "callProviderMetadata"):
        metadata = part.get(name)
        if metadata is None:
            continue
        openai: Any = cast("Part", metadata).get("openai") if isinstance(metadata, dict) else None
        if not isinstance(openai, dict) or _EPHEMERAL.isdisjoint(cast("Part", openai)):
            continue
        kept = {k: v for k, v in cast("Part", openai).items() if k not in _EPHEMERAL}
        others = {k: v for k, v in cast("Part", metadata).items() if k != "openai"}
        slim = {**others, "openai": kept} if kept else others
        part = {k: v for k, v in part.items() if k != name}
        if slim:
            part[name] = slim
    return part


def _says_nothing(part: Part) -> bool:
    # A redacted thinking block has no text, but the provider wants its metadata back.
    if part.get("type") != "reasoning" or part.get("providerMetadata"):
        return False
    return not str(part.get("text") or "").strip()


def _clean_tool_part(part: Part) -> Part:
    if "input" in part and not isinstance(part["input"], dict):
        part = {**part, "input": normalize_input(part["input"])}
    if part.get("providerExecuted") is not True or tool_name(part) in _KEPT_WHOLE:
        return part
    for name in ("input", "output"):
        if name in part and (short := _shortened(part[name])) is not part[name]:
            part = {**part, name: short}
    return part


def _shortened(value: Any) -> Any:
    """Every long string inside cut; the same object when there is none."""
    if isinstance(value, str):
        return _cut(value) if len(value) > MAX_PROVIDER_TEXT else value
    if isinstance(value, list):
        items = cast("list[Any]", value)
        short = [_shortened(item) for item in items]
        return short if any(a is not b for a, b in zip(short, items, strict=True)) else items
    if isinstance(value, dict):
        return _shortened_object(cast("dict[str, Any]", value))
    return value


def _shortened_object(value: dict[str, Any]) -> dict[str, Any]:
    # What is encrypted is useless when cut, and the provider asks for it in the next turn.
    short = {k: v if k.startswith("encrypted") else _shortened(v) for k, v in value.items()}
    return short if any(short[key] is not item for key, item in value.items()) else value


def _cut(text: str) -> str:
    note = f"… [truncated, original length: {len(text)}]"
    return text[: MAX_PROVIDER_TEXT - len(note)] + note
