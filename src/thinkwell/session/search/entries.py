"""What becomes of a message in the index: its text in pieces, with the text before it (pure).

The text before an entry is that of the two messages above it in the tree, as far as they belong to
the same person: a question is often answered in words that only it has. On the LoCoMo conversations
that lifts the share of questions whose evidence is among the first ten from 67 % to 77 %
(benchmarks/search.py). Nobody's words are found by way of somebody else's message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from thinkwell.messages.message import UIMessage, is_tool_part, tool_name
from thinkwell.messages.validate import read_stored
from thinkwell.session.search.terms import cleaned, parts_of, scope_token
from thinkwell.store.base import Row

LONGEST_ENTRY = 4000
"""Characters of one entry: what one statement takes into the index, and one result shows."""
LONGEST_LEAD = 250
"""Characters of the text before it: its end says what the message is about."""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A message and what stands above it, as read."""

    seq: int
    version: int
    agent: str
    session: str
    id: str
    role: str
    created_at: float
    text: str
    tools: Sequence[str] = ()
    held: bool = False
    """Whether its agent is only just being written: who asked is not known yet."""
    above: Sequence[Above] = ()
    """The nearest first."""


class Above(msgspec.Struct, frozen=True, kw_only=True):
    """A message above another one."""

    seq: int
    version: int
    id: str
    role: str
    created_at: float
    text: str


class MessageEntries(msgspec.Struct, frozen=True, kw_only=True):
    """All entries of one message, and what they were made from."""

    seq: int
    rows: Sequence[Mapping[str, Any]]
    leads: Sequence[int]
    """The messages whose words they have beside their own."""
    versions: Mapping[int, int]
    """What was read, by `seq`: entries of something else must not be written."""
    held: bool = False


def read_source(row: Row) -> Source:
    """The message of a row. One that cannot be read has no text."""
    message = read_stored(row["content"])[0]
    text = "" if message is None else indexed_text(message)
    above = [
        Above(
            seq=row[f"{at}_seq"],
            version=row[f"{at}_version"],
            id=row[f"{at}_id"],
            role=row[f"{at}_role"],
            created_at=row[f"{at}_created_at"],
            text=_end_of(row[f"{at}_content"]),
        )
        for at in ("p", "q")
        if row[f"{at}_seq"] is not None
    ]
    tools = () if message is None else [tool_name(p) for p in message["parts"] if is_tool_part(p)]
    return Source(
        seq=row["seq"],
        version=row["version"],
        agent=row["agent"],
        session=row["session"],
        id=row["id"],
        role=row["role"],
        created_at=row["created_at"],
        text=text,
        tools=tuple(dict.fromkeys(tools)),
        held=bool(row["held"]),
        above=above,
    )


def indexed_text(message: UIMessage) -> str:
    """The texts of a message that anybody may see. Tool calls, files and reasoning are not text."""
    texts = [
        part["text"]
        for part in message["parts"]
        if part.get("type") == "text" and part.get("hidden") is not True
    ]
    return cleaned("\n".join(texts)).strip()


def make_entries(source: Source, askers: Mapping[str, str]) -> MessageEntries:
    """The entries of a message. `askers` says whose each message is, as far as that is known."""
    whose = askers.get(source.id)
    lead, leads = _lead(source, whose, askers)
    scope = scope_of(source.agent, source.session, source.role, whose=whose, tools=source.tools)
    rows = [
        {
            "seq": source.seq,
            "piece": number,
            "agent": source.agent,
            "session": source.session,
            "message_id": source.id,
            "whose": whose,
            "role": source.role,
            "created_at": source.created_at,
            "scope": " ".join(scope),
            "text": piece,
            "lead": lead if number == 0 else "",
            "parts": parts_of(piece),
        }
        for number, piece in enumerate(_pieces(source.text))
    ]
    return MessageEntries(
        seq=source.seq,
        rows=rows,
        leads=leads if rows else (),
        versions={each.seq: each.version for each in (source, *source.above)},
        held=source.held,
    )


def scope_of(
    agent: str | None = None,
    session: str | None = None,
    role: str | None = None,
    *,
    whose: str | None = None,
    tools: Sequence[str] = (),
) -> list[str]:
    """The words by which entries can be narrowed down inside the index."""
    named = (("a", agent), ("r", role), ("w", whose))
    found = [scope_token(kind, value) for kind, value in named if value is not None]
    if agent is not None and session is not None:
        found.append(scope_token("s", f"{agent}\n{session}"))
    return [*found, *(scope_token("t", tool) for tool in tools)]


def _lead(
    source: Source, whose: str | None, askers: Mapping[str, str]
) -> tuple[str, Sequence[int]]:
    texts: list[str] = []
    seqs: list[int] = []
    room = LONGEST_LEAD
    for above in source.above:
        if askers.get(above.id) != whose or room <= 0:
            break
        text = above.text[-room:]
        if text:
            texts.insert(0, text)
            seqs.append(above.seq)
            room -= len(text)
    return "\n".join(texts), seqs


def _end_of(content: str) -> str:
    message = read_stored(content)[0]
    return "" if message is None else indexed_text(message)[-LONGEST_LEAD:]


def _pieces(text: str) -> Iterator[str]:
    """Cut at the last space before the limit, so that no word is cut."""
    while len(text) > LONGEST_ENTRY:
        cut = max(text.rfind(" ", 1, LONGEST_ENTRY), text.rfind("\n", 1, LONGEST_ENTRY))
        cut = cut if cut > 0 else LONGEST_ENTRY
        yield text[:cut]
        text = text[cut:].lstrip()
    if text:
        yield text
