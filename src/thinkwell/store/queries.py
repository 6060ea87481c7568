"""The named queries: loaded from `queries/*.sql`, spelled for each driver.

A query in a file looks like this; the name is unique over all files, the comment says what it does:

    -- name: agent_epoch
    -- Who owns the agent now.
    SELECT epoch FROM agents WHERE id = :id

The files are written in the common part of SQLite and PostgreSQL. Two spellings differ and are
changed for psycopg, outside string literals: `:name` becomes `%(name)s`, and `json_each(` (a JSON
array as rows of one column named `value`) becomes `json_array_elements_text(`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

from thinkwell.core.errors import ConfigurationError
from thinkwell.store.tables import transfer_statements

Dialect = Literal["sqlite", "psycopg"]

_HEADER = re.compile(r"--\s*name:\s*(\S+)\s*$")
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_TOKENS = re.compile(
    r"""
      (?P<literal>'(?:[^']|'')*' | "(?:[^"]|"")*" )
    | (?P<cast>::)
    | :(?P<param>[A-Za-z_]\w*)
    | (?P<percent>%)
    | (?P<each>\bjson_each\()
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Query:
    """One named query."""

    name: str
    """What callers say."""
    about: str
    """The comment beside it."""
    sql: str
    """The statement as written, without whole-line comments."""
    source: str
    """The file it stands in."""


def parse_queries(text: str, source: str) -> list[Query]:
    """The queries of one file. Raises `ConfigurationError` for text that belongs to no query."""
    queries: list[Query] = []
    for block in _blocks(text, source):
        name, comments, lines = block
        sql = "\n".join(lines).strip().rstrip(";")
        if not _NAME.fullmatch(name) or not sql:
            raise ConfigurationError(
                f"{source}: query {name!r} needs a lower-case name and a statement below it."
            )
        queries.append(Query(name=name, about=" ".join(comments), sql=sql, source=source))
    return queries


def collect_queries(sources: Iterable[tuple[str, str]]) -> dict[str, Query]:
    """The queries of several (file name, text) pairs by name. A name used twice raises."""
    found: dict[str, Query] = {}
    for source, text in sources:
        for query in parse_queries(text, source):
            if (first := found.get(query.name)) is not None:
                raise ConfigurationError(
                    f"Two queries are named {query.name!r}: in {first.source} and in {source}. "
                    "Rename one of them."
                )
            found[query.name] = query
    return found


@cache
def load_queries() -> Mapping[str, Query]:
    """Every query of the package by name."""
    folder = files("thinkwell.store").joinpath("queries")
    entries = sorted(folder.iterdir(), key=lambda entry: entry.name)
    return collect_queries(
        (entry.name, entry.read_text(encoding="utf-8"))
        for entry in entries
        if entry.name.endswith(".sql")
    )


@cache
def statements(dialect: Dialect) -> Mapping[str, str]:
    """SQL by query name, spelled for one driver."""
    spell = to_psycopg if dialect == "psycopg" else str
    named = {name: query.sql for name, query in load_queries().items()}
    return {name: spell(sql) for name, sql in {**named, **transfer_statements()}.items()}


def to_psycopg(sql: str) -> str:
    """The statement as psycopg wants it. It demands a doubled `%` even in literals."""
    return _TOKENS.sub(_psycopg_token, sql)


def _psycopg_token(match: re.Match[str]) -> str:
    if (param := match["param"]) is not None:
        return f"%({param})s"
    if match["each"]:
        return "json_array_elements_text("
    return match[0].replace("%", "%%")


def _blocks(text: str, source: str) -> Iterable[tuple[str, list[str], list[str]]]:
    """(name, comments, statement lines) per query; a comment before a header belongs to it."""
    name: str | None = None
    comments: list[str] = []
    lines: list[str] = []
    ahead: list[str] = []
    for line in text.splitlines():
        stripped = line.strip()
        if header := _HEADER.match(stripped):
            if name is not None:
                yield name, comments, lines
            name, comments, lines, ahead = header[1], ahead, [], []
        elif stripped.startswith("--"):
            (ahead if lines or name is None else comments).append(stripped.lstrip("- "))
        elif stripped:
            if name is None:
                raise ConfigurationError(
                    f"{source}: {stripped!r} stands before any '-- name:' line."
                )
            lines.append(line.rstrip())
            # A comment inside a statement speaks about the statement, not about the next query.
            comments, ahead = comments + ahead, []
    if name is not None:
        yield name, comments, lines
