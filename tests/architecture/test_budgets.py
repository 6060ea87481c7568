"""Files and functions stay small enough to be read at once (STYLE §6).

A wall says where to cut, and a number does not know where the meaning ends. So the wall stands far
out, and what is kept small is the usual: the median and the ninth decile. A file may be long
because its subject is; the code as a whole may not drift.
"""

from __future__ import annotations

import ast
import io
import re
import statistics
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.support import PACKAGE

FILE_LINES = 600
FUNCTION_LINES = 50

# measured -> the most it may be. These numbers only go down: when the code has become smaller, the
# second test below fails until they follow it.
RATCHETS = {
    "lines per file, median": 125,
    "lines per file, p90": 290,
    "lines per function, median": 7,
    "lines per function, p90": 18,
}
SLACK = 0.2
COMMENTS = 1.1
SILENCES = re.compile(r"# (noqa|type:|pyright)")


def sources() -> Iterator[tuple[str, Path]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path.relative_to(PACKAGE).as_posix(), path


def file_lengths() -> dict[str, int]:
    return {name: len(path.read_text().splitlines()) for name, path in sources()}


def function_lengths() -> dict[str, int]:
    lengths: dict[str, int] = {}
    for name, path in sources():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                lengths[f"{name}:{node.lineno}:{node.name}"] = lines
    return lengths


def measured() -> dict[str, float]:
    figures: dict[str, float] = {}
    for what, lengths in (("file", file_lengths()), ("function", function_lengths())):
        deciles = statistics.quantiles(lengths.values(), n=10, method="inclusive")
        figures[f"lines per {what}, median"] = deciles[4]
        figures[f"lines per {what}, p90"] = deciles[8]
    return figures


def test_no_file_is_longer_than_anybody_reads_at_once():
    assert {name: n for name, n in file_lengths().items() if n > FILE_LINES} == {}


def test_no_function_is_longer_than_a_screen():
    assert {name: n for name, n in function_lengths().items() if n > FUNCTION_LINES} == {}


@pytest.mark.parametrize("figure", RATCHETS)
def test_the_usual_size_does_not_grow(figure: str):
    assert measured()[figure] <= RATCHETS[figure]


@pytest.mark.parametrize("figure", RATCHETS)
def test_a_ratchet_follows_the_code_down(figure: str):
    assert measured()[figure] >= RATCHETS[figure] * (1 - SLACK), "lower the ratchet in this file"


def comment_share() -> float:
    """Lines in a hundred that say something beside the code. Silencing a linter is not that."""
    comments = lines = 0
    for _, path in sources():
        text = path.read_text()
        lines += len(text.splitlines())
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        comments += len(
            {
                t.start[0]
                for t in tokens
                if t.type == tokenize.COMMENT and not SILENCES.match(t.string)
            }
        )
    return 100 * comments / lines


def test_comments_do_not_become_fewer():
    """They say why, where a reader would ask. This number only goes up."""
    assert comment_share() >= COMMENTS


def test_every_module_says_what_it_owns():
    silent = [n for n, p in sources() if not ast.get_docstring(ast.parse(p.read_text()))]
    assert silent == []
