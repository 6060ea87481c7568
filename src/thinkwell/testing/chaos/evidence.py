"""What a run left behind, read back: client files, effect log, list of lives, database.

Nothing in here was said by the app about itself, except what its database holds. The checker sees
only this.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from thinkwell.core import json
from thinkwell.journal.reading import packed_journal
from thinkwell.messages.message import UIMessage
from thinkwell.testing.chaos.child import STORE
from thinkwell.testing.chaos.effects import EFFECTS
from thinkwell.testing.chaos.readings import Reading, readings_in

LIVES = "lives.jsonl"
JsonLine: TypeAlias = "dict[str, Any]"
TurnKey: TypeAlias = tuple[str, str]
"""Agent and request id."""


class EvidentTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A row of `turns` and what is kept of its journal."""

    agent: str
    id: str
    seq: int
    status: str
    stop_reason: str | None
    error: str | None
    continuation: bool
    message_id: str | None
    attempts: int
    created_at: float
    settled_at: float | None
    inputs: tuple[str, ...]
    """Ids of the messages it brought."""
    bodies: tuple[str, ...] | None
    """Its chunks; None if the turn has no packed journal."""
    requests: int = 0
    """Model calls that were begun, as the journal says."""
    answered: int = 0
    """Model calls that came to an end, good or bad."""
    failures: int = 0


class EvidentMessage(msgspec.Struct, frozen=True):
    """A row of `messages`."""

    seq: int
    parent: str | None
    message: UIMessage


class ClientLog(msgspec.Struct, frozen=True):
    """What one client sent and read."""

    name: str
    agent: str
    lines: tuple[JsonLine, ...]
    readings: tuple[Reading, ...]
    """The streams it read."""


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """Everything there is to judge by."""

    turns: dict[TurnKey, EvidentTurn]
    messages: dict[str, list[EvidentMessage]]
    """By agent, in the order of storage."""
    calls: list[JsonLine]
    """Rows of the ledger."""
    effects: list[JsonLine]
    clients: list[ClientLog]
    lives: list[JsonLine]
    deleted: frozenset[str] = frozenset()
    """Agents that the run has deleted."""
    rewrites: bool = False
    """The app changes what the model says, so words cannot be compared with the script."""
    scripted: bool = True


def read_evidence(folder: Path, *, scripted: bool = True) -> Evidence:
    """Read what a run left in `folder`."""
    lives = _lines(folder / LIVES)
    with closing(sqlite3.connect(f"file:{folder / STORE}?mode=ro", uri=True)) as link:
        link.row_factory = sqlite3.Row
        turns = {(t.agent, t.id): t for t in _turns(link)}
        messages = _messages(link)
        calls = [dict(row) for row in link.execute("SELECT * FROM tool_calls")]
    deleted = frozenset(agent for life in lives for agent in life.get("deleted", ()))
    return Evidence(
        turns=turns,
        messages=messages,
        calls=calls,
        effects=_lines(folder / EFFECTS),
        clients=[
            client_log(file.stem, _lines(file)) for file in sorted(folder.glob("client-*.jsonl"))
        ],
        lives=lives,
        deleted=deleted,
        scripted=scripted,
    )


def _turns(link: sqlite3.Connection) -> list[EvidentTurn]:
    journals = {
        (row["agent"], row["turn"]): packed_journal(row)
        for row in link.execute("SELECT * FROM packed_journals")
    }
    return [
        _turn(row, journals.get((row["agent"], row["id"])))
        for row in link.execute("SELECT * FROM turns ORDER BY seq")
    ]


def _turn(row: sqlite3.Row, journal: Any) -> EvidentTurn:
    inputs: list[Any] = json.loads(row["input"]) if row["input"] else []
    counted: dict[str, Any] = {}
    if journal is not None:
        failures = len(journal.of_kind("failure"))
        counted = {
            "requests": len(journal.of_kind("request")),
            "answered": len(journal.of_kind("model")) + failures,
            "failures": failures,
        }
    return EvidentTurn(
        agent=row["agent"],
        id=row["id"],
        seq=row["seq"],
        status=row["status"],
        stop_reason=row["stop_reason"],
        error=row["error"],
        continuation=bool(row["continuation"]),
        message_id=row["message_id"],
        attempts=row["attempt"],
        created_at=row["created_at"],
        settled_at=row["settled_at"],
        inputs=tuple(message["id"] for message in inputs),
        bodies=None if journal is None else journal.bodies,
        **counted,
    )


def _messages(link: sqlite3.Connection) -> dict[str, list[EvidentMessage]]:
    found: dict[str, list[EvidentMessage]] = {}
    for row in link.execute("SELECT agent, seq, parent_id, content FROM messages ORDER BY seq"):
        stored = EvidentMessage(row["seq"], row["parent_id"], json.loads(row["content"]))
        found.setdefault(row["agent"], []).append(stored)
    return found


def client_log(name: str, lines: list[JsonLine]) -> ClientLog:
    """A client's file; its first line says whose conversation it is."""
    agent = str(lines[0]["agent"]) if lines else ""
    return ClientLog(name, agent, tuple(lines), tuple(readings_in(lines)))


def _lines(file: Path) -> list[JsonLine]:
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_bytes().splitlines() if line.strip()]
