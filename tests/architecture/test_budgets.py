"""Files and functions stay small enough to be read at once (STYLE §6)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.support import PACKAGE

FILE_LINES = 400
ADAPTER_LINES = 600
FUNCTION_LINES = 50

# `path:function` of what may be longer. It may only get shorter.
LONG_FUNCTIONS: frozenset[str] = frozenset()
LONG_FILES: frozenset[str] = frozenset()


def sources() -> Iterator[tuple[str, Path]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path.relative_to(PACKAGE).as_posix(), path


def file_limit(name: str) -> int:
    return ADAPTER_LINES if name.startswith("models/") else FILE_LINES


def long_functions() -> Iterator[str]:
    for name, path in sources():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > FUNCTION_LINES:
                    yield f"{name}:{node.name}"


def test_no_file_is_longer_than_its_budget():
    too_long = {n for n, p in sources() if len(p.read_text().splitlines()) > file_limit(n)}
    assert too_long == LONG_FILES


def test_no_function_is_longer_than_its_budget():
    assert set(long_functions()) == LONG_FUNCTIONS


def test_every_module_says_what_it_owns():
    silent = [n for n, p in sources() if not ast.get_docstring(ast.parse(p.read_text()))]
    assert silent == []
