"""User text is never query syntax (spec/03 §9, §20.39): whatever it is, it is words.

A model in Python says what a query means; SQLite must say the same of every text.
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.search.support import said, store_at
from thinkwell.session.search.find import Lookup
from thinkwell.session.search.terms import words_of
from thinkwell.session.session import Session

WORDS = ["apfel", "near", "or", "not", "and", "text", "lead", "scope", "x1", "zug"]
TEXTS = [
    "apfel near zug",
    "or and not",
    "text lead scope x1",
    "apfel or zug",
    "not a word of that",
    "scope and text near x1",
]
SYNTAX = ['"', "'", "*", "^", "(", ")", "{", "}", ":", "-", "+", ",", ".", "\0", "NEAR(", "\\", ";"]
EVIL = st.one_of(
    st.text(max_size=40),
    st.lists(st.sampled_from([*WORDS, *SYNTAX, " ", " OR ", " AND ", " NOT ", "scope:", "/2"])).map(
        "".join
    ),
    st.lists(st.sampled_from([*WORDS, *SYNTAX])).map(" ".join),
)


def tokens(text: str) -> list[str]:
    """What the tokenizer makes of a text, for letters and digits that need no folding."""
    return re.findall(r"[a-z0-9]+", text.lower())


def expected(query: str) -> set[str]:
    """The texts with every word of a query; one that is cut by a sign is several in a row."""
    wanted = [f" {' '.join(tokens(word))} " for word in words_of(query)]
    return {
        text
        for text in TEXTS
        if wanted and all(each in f" {' '.join(tokens(text))} " for each in wanted)
    }


async def _found(path: Path, query: str, **more: Any) -> set[str]:
    async with store_at(path) as (_store, index):
        return {hit.text for hit in await index.find(Lookup(query=query, **more))}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("syntax") / "a.db"

    async def fill() -> None:
        async with store_at(path) as (store, index):
            for number, text in enumerate(TEXTS):  # each alone: none has text before it
                await Session(store, f"talker/{number}").append_message(said(text))
            assert await index.catch_up(["talker"])

    asyncio.run(fill())
    return path


def ascii_only(query: str) -> bool:
    return all(ord(c) < 128 or not (c.isalnum() or unicodedata.category(c) == "Co") for c in query)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(query=EVIL)
def test_all_words_means_all_words_whatever_else_is_typed(filled: Path, query: str):
    found = asyncio.run(_found(filled, query, mode="all"))
    if ascii_only(query):
        assert found == expected(query)
    else:
        assert found <= set(TEXTS)


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(query=EVIL, mode=st.sampled_from(["best", "any", "phrase", "substring"]))
def test_no_text_raises_in_any_mode(filled: Path, query: str, mode: Any):
    everything = asyncio.run(_found(filled, query, mode=mode))
    assert everything <= set(TEXTS)
    if mode == "substring" and query.strip() and query.isascii() and "\0" not in query:
        wanted = query.strip().lower()
        assert everything == {text for text in TEXTS if wanted in text.lower()}


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(query=EVIL, mode=st.sampled_from(["best", "all", "any", "phrase", "substring"]))
def test_no_text_leaves_its_agent_or_its_person(filled: Path, query: str, mode: Any):
    """Columns, roles and agents are words of the index too: nobody can ask for them."""
    found = asyncio.run(_found(filled, query, mode=mode, agent="talker/0"))
    assert found <= {TEXTS[0]}
    assert asyncio.run(_found(filled, query, mode=mode, whose="somebody")) == set()


@pytest.mark.parametrize("query", ['a" OR NEAR(', "apfel*", "scope:x1", '"apfel', "apfel AND"])
async def test_what_looks_like_syntax_is_searched_for(filled: Path, query: str):
    """spec/03 §20.39"""
    assert await _found(filled, query, mode="all") == expected(query)
