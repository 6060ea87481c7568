"""Blocks against a list of texts in memory: writes, limits, undo, restarts, whatever the order."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.context.support import opened
from thinkwell.errors import BlockLimitError, ConflictError, SessionError
from thinkwell.session.draft import estimate_string_tokens
from thinkwell.session.session import Session

LIMIT = 12
LABELS = ("a", "b")
TEXTS = st.text(st.sampled_from("xy \n"), max_size=24)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("replace"), st.sampled_from(LABELS), TEXTS),
        st.tuples(st.just("append"), st.sampled_from(LABELS), TEXTS),
        st.tuples(st.just("expect"), st.sampled_from(LABELS), st.integers(0, 6)),
        st.tuples(st.just("undo"), st.sampled_from(LABELS), st.just("")),
        st.tuples(st.just("revert"), st.sampled_from(LABELS), st.integers(0, 8)),
        st.tuples(st.just("restart"), st.just("a"), st.just("")),
        st.tuples(st.just("readd"), st.sampled_from(LABELS), st.just("")),
    ),
    max_size=14,
)


@dataclass
class Simple:
    """One block, as simple as can be: every text it had, and the way back."""

    versions: list[str] = field(default_factory=lambda: [""])
    back: list[list[str]] = field(default_factory=lambda: [[]])
    """For each version, the texts that undo would bring back, the next one last."""

    @property
    def text(self) -> str:
        return self.versions[-1]

    def write(self, text: str) -> bool:
        if estimate_string_tokens(text) > LIMIT:
            return False
        self.back.append([*self.back[-1], self.text])
        self.versions.append(text)
        return True

    def append(self, text: str) -> bool:
        between = "\n" if self.text and not text.startswith("\n") else ""
        return self.write(f"{self.text}{between}{text}")

    def undo(self) -> bool:
        if not self.back[-1]:
            return False
        *rest, text = self.back[-1]
        self.versions.append(text)
        self.back.append(rest)
        return True

    def revert(self, version: int) -> bool:
        if version >= len(self.versions):
            return False
        self.versions.append(self.versions[version])
        self.back.append(self.back[version])
        return True


async def step(
    session: Session, simple: dict[str, Simple], action: str, label: str, what: Any
) -> None:
    block, expected = simple[label], True
    try:
        match action:
            case "replace":
                expected = block.write(what)
                await session.replace_context_block(label, what)
            case "append":
                expected = block.append(what)
                await session.append_context_block(label, what)
            case "expect":
                expected = what == len(block.versions) - 1 and block.write("z")
                await session.replace_context_block(label, "z", expected_version=what)
            case "undo":
                expected = block.undo()
                await session.undo_context(label)
            case "revert":
                expected = block.revert(what)
                await session.revert_context(label, what)
            case _:
                await session.remove_context(label)
                session.with_context(label, max_tokens=LIMIT)
    except (BlockLimitError, ConflictError, SessionError):
        assert not expected
    else:
        assert expected


async def run(path: Path, steps: list[tuple[str, str, str | int]]) -> None:
    simple = {label: Simple() for label in LABELS}
    lives: list[list[tuple[str, str, str | int]]] = [[]]
    for each in steps:
        lives.append([]) if each[0] == "restart" else lives[-1].append(each)
    for life in lives:
        async with opened(path) as session:
            for label in LABELS:
                session.with_context(label, max_tokens=LIMIT)
            for each in life:
                await step(session, simple, *each)
            for block in await session.get_context_blocks():
                known = simple[block.label]
                assert (block.content, block.version) == (known.text, len(known.versions) - 1)
                seen = await session.context_history(block.label, limit=100)
                assert [v.content or "" for v in seen] == known.versions[:0:-1]


@settings(max_examples=40, deadline=None)
@given(STEPS)
def test_a_block_is_what_a_list_of_texts_says(steps: list[tuple[str, str, str | int]]):
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder) / "a.db", steps))
