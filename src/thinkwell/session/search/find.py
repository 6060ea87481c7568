"""Looking something up: all words first, then the rarest of them, then parts of words.

Everything runs away from the event loop, and looks at a bounded number of entries however common a
word is. Where a search ends (in one conversation, one agent, with one person) is part of what the
index is asked, and checked again on every entry that comes back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from thinkwell.core import json
from thinkwell.session.search.entries import scope_of
from thinkwell.session.search.terms import (
    match_all,
    match_any,
    match_phrase,
    part_words,
    pattern_of,
    quoted,
    snippet_of,
    telling,
    words_of,
)
from thinkwell.store.base import Row, Store

SearchMode: TypeAlias = Literal["best", "all", "any", "phrase", "substring"]

CANDIDATES = 5000
"""Entries that are ranked, the newest of those that match."""
RAREST = 8
"""Words of which one has to match where not all do."""
COUNTED = 5000
"""How often a word is counted; one that is more common comes last."""
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
    """How well it fits, the higher the better. Compare it within one search only."""


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
        self._limits = {
            "agent": asked.agent,
            "whose": asked.whose,
            "after": asked.after,
            "before": asked.before,
            # A long message may have several entries among the best.
            "limit": 2 * asked.limit,
        }

    async def run(self) -> list[SearchHit]:
        words, scope = self._words, self._scope
        match self._asked.mode:
            case "phrase":
                return await self._take(match_phrase(words, TEXT_ALONE, scope))
            case "all":
                await self._take(match_all(words, TEXT_ALONE, scope))
            case "any":
                await self._take(match_any(words, TEXT_ALONE, scope))
            case _:
                await self._take(match_all(words, WITH_LEAD, scope))
                if self._wants_more and len(words) > 1:
                    await self._take(match_any(await self._rarest(), WITH_LEAD, scope))
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

    async def _take(self, match: str) -> list[SearchHit]:
        for each in self._of_roles(match):
            params = {**self._limits, "match": each, "candidates": CANDIDATES}
            self._keep(await self._store.fetch_in_background("find_words", params))
        return self._found

    def _of_roles(self, match: str) -> list[str]:
        """The same for the roles that are wanted, as one expression."""
        roles = [quoted(token) for role in self._asked.roles for token in scope_of(role=role)]
        return [f"{{scope}} : ({' OR '.join(roles)}) AND {match}" if roles else match]

    async def _rarest(self) -> list[str]:
        """The words that say most, in the entries that are looked at."""
        counted: list[tuple[int, int, str]] = []
        for place, word in enumerate(telling(self._words)):
            params = {"match": match_all([word], WITH_LEAD, self._scope), "most": COUNTED}
            (row,) = await self._store.fetch_in_background("count_matches", params)
            if row["count"]:
                counted.append((row["count"], place, word))
        counted.sort()
        # A word that stands everywhere finds nothing in particular, and costs the most.
        rare = [word for count, _, word in counted if count < COUNTED] or [
            word for _, _, word in counted[:1]
        ]
        return rare[:RAREST] or list(self._words[:1])

    async def _take_parts(self) -> None:
        long, short = part_words(self._words)
        if long:
            match = " AND ".join(map(quoted, long))
            self._keep(await self._by_patterns("find_parts", short, match=match))
        elif short:
            await self.texts(short, in_parts=True)

    async def _by_patterns(self, query: str, patterns: Sequence[str], **more: Any) -> Sequence[Row]:
        roles = [[token] for role in self._asked.roles for token in scope_of(role=role)] or [[]]
        rows: list[Row] = []
        for role in roles:
            params = {
                **self._limits,
                **more,
                "patterns": json.dumps(list(patterns)),
                "tokens": json.dumps([*self._scope, *role]),
            }
            rows += await self._store.fetch_in_background(query, params)
        return sorted(rows, key=lambda row: -row["seq"]) if len(roles) > 1 else rows

    def _keep(self, rows: Sequence[Row]) -> None:
        for row in rows:
            if row["seq"] not in self._hits:
                self._hits[row["seq"]] = SearchHit(
                    id=row["message_id"],
                    role=row["role"],
                    text=row["text"],
                    snippet=snippet_of(row["text"], self._words),
                    created_at=row["created_at"],
                    agent=row["agent"],
                    session_id=row["session"],
                    score=round(-row["score"], 6),
                )


async def is_shared(store: Store, agent: str, whose: str) -> bool:
    """Whether somebody else has said something to an agent."""
    named = {"agent": agent, "whose": whose}
    return bool(await store.fetch_in_background("somebody_else_in", named))
