"""Looking something up: all words first, then the rarest of them, then parts of words.

Everything runs away from the event loop, and looks at a bounded number of entries however common a
word is. Where a search ends (in one conversation, one agent, with one person) is part of what the
index is asked, and checked again on every entry that comes back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from math import log
from typing import Any, Literal, TypeAlias

import msgspec

from thinkwell.core import json
from thinkwell.session.search.entries import scope_of
from thinkwell.session.search.terms import (
    match_all,
    match_phrase,
    match_scope,
    part_words,
    pattern_of,
    quoted,
    snippet_of,
    telling,
    words_of,
)
from thinkwell.store.base import Row, Store

SearchMode: TypeAlias = Literal["best", "all", "any", "phrase", "substring"]

CANDIDATES = 2000
"""Entries with a word that are looked at, the newest; a word that more have is common."""
ROOM = 6000
"""Entries of all words together that are compared."""
MOST_ENTRIES = 20_000
"""Up to here the entries that are searched are counted, to say how rare a word is."""
READ_AT_ONCE = 50
"""Entries that are read at once, the best first."""
LEAD_WEIGHT = 0.5
"""What a word counts in the text before an entry."""
RAREST = 8
"""Words of which one has to match where not all do."""
WITH_LEAD, TEXT_ALONE = "text lead", "text"
_ALWAYS = 1e18


class SearchHit(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A message that was found."""

    id: str
    """The message's id."""
    role: str
    """Who speaks: `user`, `assistant` or `system`."""
    text: str
    """What it says; of a long message the piece that was found."""
    snippet: str
    """The place where the words are, shortened."""
    created_at: float
    """When it was stored, in seconds since the epoch."""
    agent: str
    """Class and name of the agent it was said to."""
    session_id: str
    """The conversation of that agent; `""` is its own."""
    score: float
    """How much its words say, the higher the better; 0 where all hits have the same ones. Compare
    it within one search only."""


class Lookup(msgspec.Struct, frozen=True, kw_only=True):
    """What to look for, and where."""

    query: str
    mode: SearchMode = "best"
    limit: int = 20
    agent: str | None = None
    """One agent; None: all of a person's."""
    session: str | None = None
    whose: str | None = None
    """One person's messages only."""
    roles: Sequence[str] = ()
    tool: str | None = None
    after: float = -_ALWAYS
    before: float = _ALWAYS

    def within(self, after: float | None, before: float | None) -> Lookup:
        """The same, in a time."""
        return msgspec.structs.replace(
            self,
            after=-_ALWAYS if after is None else after,
            before=_ALWAYS if before is None else before,
        )


async def find(store: Store, asked: Lookup) -> list[SearchHit]:
    """The messages that fit best, each once."""
    words = words_of(asked.query)
    if asked.mode == "substring":
        pattern = asked.query.strip()
        return await _Search(store, asked, [pattern]).texts(
            [pattern_of(pattern)] if pattern else []
        )
    if not words:
        return []
    return await _Search(store, asked, words).run()


class _Search:
    """One search: the hits so far, and where they may be."""

    def __init__(self, store: Store, asked: Lookup, words: Sequence[str]) -> None:
        self._store = store
        self._asked = asked
        self._words = words
        self._hits: dict[int, SearchHit] = {}
        where = scope_of(asked.agent, asked.session, whose=asked.whose)
        self._scope = [*where, *scope_of(tools=() if asked.tool is None else [asked.tool])]
        self._roles = [token for role in asked.roles for token in scope_of(role=role)]
        self._within = match_scope(self._scope, self._roles)
        self._limits = {
            "agent": asked.agent,
            "whose": asked.whose,
            "after": asked.after,
            "before": asked.before,
        }

    async def run(self) -> list[SearchHit]:
        words, within = self._words, self._within
        match self._asked.mode:
            case "phrase":
                await self._take(await self._matching(match_phrase(words, TEXT_ALONE, within)))
                return self._found
            case "all":
                await self._take(await self._matching(match_all(words, TEXT_ALONE, within)))
            case "any":
                await self._take(*await self._ranked(words, 0.0))
            case _:
                words = telling(words)
                first = await self._matching(match_all(words, WITH_LEAD, within))
                await self._take(*await self._ranked(words, LEAD_WEIGHT, first))
        if self._wants_more:
            await self._take_parts()
        return self._found

    async def texts(self, patterns: Sequence[str], *, in_parts: bool = False) -> list[SearchHit]:
        """What has all these patterns, by looking at every text."""
        if patterns:
            self._keep(await self._by_patterns("find_texts", patterns, in_parts=in_parts))
        return self._found

    @property
    def _wants_more(self) -> bool:
        return len(self._hits) < self._asked.limit

    @property
    def _found(self) -> list[SearchHit]:
        return list(self._hits.values())[: self._asked.limit]

    async def _matching(self, match: str) -> list[int]:
        """The newest entries that match, the newest first."""
        params = {"match": match, "most": CANDIDATES}
        rows = await self._store.fetch_in_background("matching_entries", params)
        return [row["id"] for row in rows]

    async def _ranked(
        self, words: Sequence[str], lead_weight: float, first: Sequence[int] = ()
    ) -> tuple[Sequence[int], Mapping[int, float]]:
        """Entries with one of the words by what they are worth; those of `first` before them."""
        size = await self._count(self._within) if self._within else MOST_ENTRIES
        places: list[Sequence[Row]] = []
        for word in await self._rarest(words):
            params = {
                "in_text": match_all([word], "text", self._within),
                "in_lead": match_all([word], "lead", self._within),
                "most": CANDIDATES,
            }
            places.append(await self._store.fetch_in_background("entries_with_word", params))
        return await asyncio.to_thread(rank, places, size, lead_weight, first)

    async def _rarest(self, words: Sequence[str]) -> list[str]:
        """The words that say most, in the entries that are looked at."""
        counted: list[tuple[int, int, str]] = []
        for place, word in enumerate(words):
            count = await self._count(match_all([word], WITH_LEAD, self._within), CANDIDATES)
            if count:
                counted.append((count, place, word))
        counted.sort()
        # A word that stands everywhere finds nothing in particular, and costs the most.
        chosen: list[str] = []
        room = ROOM
        for count, _, word in counted[:RAREST]:
            room -= count
            if chosen and (room < 0 or count >= CANDIDATES):
                break
            chosen.append(word)
        return chosen

    async def _count(self, match: str, most: int = MOST_ENTRIES) -> int:
        params = {"match": match, "most": most}
        (row,) = await self._store.fetch_in_background("count_matches", params)
        return row["count"]

    async def _take(self, ids: Sequence[int], scores: Mapping[int, float] | None = None) -> None:
        """Read entries in this order, until there are enough that may be shown."""
        for start in range(0, len(ids), READ_AT_ONCE):
            if not self._wants_more:
                return
            piece = ids[start : start + READ_AT_ONCE]
            params = {**self._limits, "ids": json.dumps(list(piece))}
            rows = await self._store.fetch_in_background("found_entries", params)
            order = {entry: place for place, entry in enumerate(piece)}
            self._keep(sorted(rows, key=lambda row: order[row["id"]]), scores)

    async def _take_parts(self) -> None:
        long, short = part_words(self._words)
        if long:
            match = " AND ".join(map(quoted, long))
            self._keep(await self._by_patterns("find_parts", short, match=match))
        elif short:
            await self.texts(short, in_parts=True)

    async def _by_patterns(self, query: str, patterns: Sequence[str], **more: Any) -> Sequence[Row]:
        rows: list[Row] = []
        for role in self._roles or [None]:
            tokens = self._scope if role is None else [*self._scope, role]
            params = {
                **self._limits,
                **more,
                "patterns": json.dumps(list(patterns)),
                "tokens": json.dumps(tokens),
                "limit": 2 * self._asked.limit,  # a long message may have several entries
            }
            rows += await self._store.fetch_in_background(query, params)
        return sorted(rows, key=lambda row: -row["id"])

    def _keep(self, rows: Sequence[Row], scores: Mapping[int, float] | None = None) -> None:
        for row in rows:
            if not self._wants_more:
                return
            if row["seq"] not in self._hits:
                self._hits[row["seq"]] = SearchHit(
                    id=row["message_id"],
                    role=row["role"],
                    text=row["text"],
                    snippet=snippet_of(row["text"], self._words),
                    created_at=row["created_at"],
                    agent=row["agent"],
                    session_id=row["session"],
                    score=round((scores or {}).get(row["id"], 0.0), 4),
                )


def rank(
    places: Sequence[Sequence[Row]], size: int, lead_weight: float, first: Sequence[int]
) -> tuple[list[int], dict[int, float]]:
    """Entries by the words they have (`places`, one list for each), and what each is worth.

    A word counts the more the fewer of the `size` entries that are looked at have it, and less in
    the text before an entry. FTS5's own `bm25` counts words over all agents of the database: a name
    that stands in every message of one conversation would decide there, and what others say would
    change what somebody finds. On LoCoMo this order finds 4 % more.
    """
    scores: dict[int, float] = dict.fromkeys(first, 0.0)
    for rows in places:
        weights: dict[int, float] = {}
        for row in rows:
            weight = lead_weight if row["in_lead"] else 1.0
            if weight:
                weights[row["id"]] = weights.get(row["id"], 0.0) + weight
        rarity = log(1 + (max(size - len(weights), 0) + 0.5) / (len(weights) + 0.5))
        for entry, weight in weights.items():
            scores[entry] = scores.get(entry, 0.0) + rarity * 2.2 * weight / (weight + 1.2)
    ahead = frozenset(first)
    order = sorted(scores, key=lambda entry: (entry not in ahead, -scores[entry], -entry))
    return order[:CANDIDATES], scores


async def is_shared(store: Store, agent: str, whose: str) -> bool:
    """Whether somebody else has said something to an agent."""
    named = {"agent": agent, "whose": whose}
    return bool(await store.fetch_in_background("somebody_else_in", named))
