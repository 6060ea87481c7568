"""Code that only tests use is not code of the product: it goes, or it gets its user.

A function or class is used if something else in `src` imports it or names it; a method
if its name stands anywhere in `src`; a query if some text names it. What stands in an `__all__` is
used by our users, and so is everything in `testing`.
"""

from __future__ import annotations

import ast
import asyncio
import importlib
import re
from collections.abc import Iterator
from functools import cache

from httptools.parser.protocol import HTTPProtocol

from tests.architecture.support import PACKAGE
from thinkwell.agent.history_view import HistoryView

FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
Definition = FUNCTIONS | ast.ClassDef


@cache
def trees() -> dict[str, ast.Module]:
    """The modules of the package by their dotted name."""
    found: dict[str, ast.Module] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts).removesuffix(".__init__")] = ast.parse(path.read_text())
    return found


@cache
def imported() -> frozenset[tuple[str, str]]:
    """Every (module, name) that some module imports, or reaches through an imported module."""
    found: set[tuple[str, str]] = set()
    for tree in trees().values():
        modules: dict[str, str] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    found.add((node.module, alias.name))
                    modules[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                found.add((modules.get(node.value.id, ""), node.attr))
    return frozenset(found)


@cache
def words() -> frozenset[str]:
    """Every attribute and every text in the package: what may name a method."""
    nodes = (node for tree in trees().values() for node in ast.walk(tree))
    return texts() | {node.attr for node in nodes if isinstance(node, ast.Attribute)}


@cache
def texts() -> frozenset[str]:
    """The words of every short text in the package: what may name a query."""
    nodes = (node for tree in trees().values() for node in ast.walk(tree))
    constants = (node.value for node in nodes if isinstance(node, ast.Constant))
    short = (text for text in constants if isinstance(text, str) and len(text) < 200)
    return frozenset(word for text in short for word in re.findall(r"\w+", text))


def named_elsewhere(tree: ast.Module, definition: Definition) -> bool:
    """Whether the rest of its own module names it."""
    inside = {id(node) for node in ast.walk(definition)}
    names = (n for n in ast.walk(tree) if isinstance(n, ast.Name) and id(n) not in inside)
    return any(name.id == definition.name for name in names)


@cache
def public() -> frozenset[str]:
    """`module:name` of everything behind the front doors."""
    found: set[str] = set()
    for door, tree in trees().items():
        if any(
            isinstance(node, ast.Assign | ast.AnnAssign) and "__all__" in ast.unparse(node)
            for node in tree.body
        ):
            module = importlib.import_module(door)
            values = {name: getattr(module, name) for name in module.__all__}
            found |= {f"{getattr(v, '__module__', door)}:{name}" for name, v in values.items()}
    return frozenset(found)


def inner_modules() -> Iterator[tuple[str, ast.Module]]:
    return ((m, t) for m, t in trees().items() if not m.startswith("thinkwell.testing"))


def unused_definitions() -> Iterator[str]:
    for module, tree in inner_modules():
        for node in tree.body:
            if not isinstance(node, Definition) or node.name.startswith("__"):
                continue
            if node.decorator_list and isinstance(node, FUNCTIONS):
                continue  # a command or a registration: the decorator is its user
            if (module, node.name) not in imported() and not named_elsewhere(tree, node):
                yield f"{module}:{node.name}"


@cache
def public_members() -> frozenset[str]:
    """What users call: every member of a public class, with those of its bases; and libraries."""
    found = set(dir(HistoryView))  # `agent.history`
    found.update(dir(asyncio.Protocol), dir(HTTPProtocol))
    for name in public():
        module, _, attribute = name.partition(":")
        value = getattr(importlib.import_module(module), attribute, None)
        found.update(dir(value) if isinstance(value, type) else ())
    return frozenset(found)


def unused_methods() -> Iterator[str]:
    for module, tree in inner_modules():
        for owner in tree.body:
            if isinstance(owner, ast.ClassDef):
                for node in owner.body:
                    if not isinstance(node, FUNCTIONS) or node.decorator_list:
                        continue
                    known = node.name in words() or node.name in public_members()
                    if not known and not node.name.startswith("__"):
                        yield f"{module}:{owner.name}.{node.name}"


def queries() -> Iterator[str]:
    for path in sorted((PACKAGE / "store" / "queries").glob("*.sql")):
        yield from re.findall(r"^-- name: (\w+)", path.read_text(), re.MULTILINE)


def test_every_function_and_class_has_a_user():
    assert set(unused_definitions()) - public() == set()


def test_every_method_has_a_user():
    assert list(unused_methods()) == []


def test_every_query_has_a_user():
    assert [name for name in queries() if name not in texts()] == []
