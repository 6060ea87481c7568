"""Which tables there are, whose rows they hold, and what becomes of them when somebody leaves.

Everything that has to reach every table (deleting an agent, moving one to another database, erasing
a person) is written down here by table. A test compares these lists with the schema, so that a
migration which adds a table cannot forget one of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final

PROCESS: Final = frozenset({"schema_version", "boots", "removed_epochs"})
"""About the file and the process: nobody's rows."""
ACTIVATION: Final = frozenset({"starts"})
"""About an agent in this file's processes: deleted with it, but not taken along by an export."""
DERIVED: Final = frozenset(
    {
        *("search_marks", "search_again", "search_entries", "search_leads"),
        *("search_words", "search_parts"),
    }
)
"""Made from `messages`, and kept right by triggers on them: an import makes its own."""
SHARED: Final = frozenset({"blobs"})
"""Rows that several agents use; `blob_uses` says which."""
ERASURE: Final[Mapping[str, str]] = {
    "turns": "Their turns go, also those that wait or run.",
    "messages": "Their questions and the answers to them go. Later messages move up.",
    "message_versions": "Former versions of these messages go.",
    "tool_calls": "Calls of their turns go, with input and result.",
    "packed_journals": "All journals of the conversation go: a later one may quote what they said.",
    "journal": "So does what is left of them in the live journal.",
    "blob_uses": "The conversation no longer refers to recorded prompts and tool schemas.",
    "blobs": "Those that no other conversation uses go.",
    "decisions": "What they decided goes, and decisions about calls of their turns.",
    "approvers": "They are no longer named as somebody who may approve.",
    "approvals": "What was asked on their behalf goes.",
    "approval_rules": "Rules for them go, and rules they made as a client. "
    "Rules your code made hold and no longer name them.",
    "jobs": "Jobs that work for them go.",
    "agents": "An agent in which every turn and job is theirs goes whole, with its state.",
    "sessions": "They go with the agent. Its active branch moves if it ended in a deleted message.",
    "storage": "Goes with the agent. In one that others use, only your code knows whose it is.",
    "context_blocks": "What is shared by all their agents goes. Elsewhere versions go from their "
    "first change on: a later one may repeat what they wrote.",
    "prompts": "All prompts that were kept of the agent go, and are made anew.",
    "conversations": "Goes with the agent.",
    "starts": "Goes with the agent.",
    "spending": "What their own budget was used for goes.",
    "reservations": "They go when the turn that made them ends.",
    "schema_version": "Holds nothing about anybody.",
    "boots": "Holds nothing about anybody.",
    "removed_epochs": "Holds nothing about anybody.",
    "search_entries": "Go with the messages they were made from.",
    "search_leads": "Go with the entries.",
    "search_words": "Their words go, and what is left is merged, so that no piece still has them.",
    "search_parts": "The same.",
    "search_again": "Is empty afterwards.",
    "search_marks": "Holds nothing about anybody.",
}
"""What erasing a person does to each table."""

_TABLE = re.compile(r"^CREATE (?:VIRTUAL )?TABLE (\w+)(.*?)^\);", re.M | re.S)
_COLUMN = re.compile(r"^    ([a-z]\w*) (.*?),?$", re.M)


@cache
def columns_of_tables() -> Mapping[str, Mapping[str, str]]:
    """Every table with its columns and how each is declared."""
    schema = files("thinkwell.store").joinpath("schema.sql").read_text(encoding="utf-8")
    return {name: dict(_COLUMN.findall(body)) for name, body in _TABLE.findall(schema)}


@cache
def tables_of_agents() -> tuple[str, ...]:
    """The tables an export takes rows of, by their column `agent`, in the order of the schema.

    `journal` comes before `turns`, which say where in it they begin.
    """
    owned = [table for table, columns in columns_of_tables().items() if "agent" in columns]
    taken = (table for table in owned if table not in ACTIVATION | DERIVED)
    return tuple(sorted(taken, key=lambda table: table != "journal"))


@cache
def counted_column(table: str) -> str | None:
    """The column that the database itself counts, which an import leaves to it."""
    columns = columns_of_tables()[table]
    counted = [name for name, said in columns.items() if said.startswith("INTEGER PRIMARY KEY")]
    return counted[0] if counted else None


def transfer_statements() -> Mapping[str, str]:
    """Queries by name that read and write whole rows, made from the schema."""
    made: dict[str, str] = {}
    for table in tables_of_agents():
        counted = counted_column(table)
        order = f" ORDER BY {counted}" if counted else ""
        names = [name for name in columns_of_tables()[table] if name != counted]
        values = ", ".join(f":{name}" for name in names)
        back = f" RETURNING {counted}" if counted else ""
        made[f"export_{table}"] = f"SELECT * FROM {table} WHERE agent = :agent{order}"  # noqa: S608 - our own names
        made[f"import_{table}"] = (
            f"INSERT INTO {table} ({', '.join(names)}) VALUES ({values}){back}"  # noqa: S608
        )
    return made
