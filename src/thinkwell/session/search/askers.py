"""Whose a message is: the person whose turn asked it, or was answered by it.

A message does not say so itself; the turns of its agent do. Nearly always the turn is found by an
index: it wrote the message, or an answer to it. What its client claimed about other messages does
not count, only what the turn itself brought: a message that is older than the turn was there
before, whatever id the client gave its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from thinkwell.core import json
from thinkwell.session.search.entries import Above, Source
from thinkwell.store.base import Row, Store

NOBODY = ""
"""A turn is known, and nobody was: the app has no `auth`, or its own code asked."""
RECENT = 100
"""Turns that are looked at for questions without an answer."""


async def read_askers(
    store: Store, sources: Sequence[Source]
) -> Mapping[tuple[str, str], Mapping[str, str]]:
    """Principal ids by message id, for each agent and session. What is in no turn is left out."""
    groups: dict[tuple[str, str], dict[str, Source | Above]] = defaultdict(dict)
    for source in sources:
        wanted = groups[source.agent, source.session]
        wanted.update({each.id: each for each in (source, *source.above)})
    return {
        (agent, session): await _askers_in(store, agent, session, wanted)
        for (agent, session), wanted in groups.items()
    }


async def _askers_in(
    store: Store, agent: str, session: str, wanted: Mapping[str, Source | Above]
) -> Mapping[str, str]:
    named = {"agent": agent, "session": session, "ids": json.dumps(list(wanted))}
    found: dict[str, str] = {}
    _take(found, wanted, await store.fetch_in_background("search_askers", named))
    # Answers are found by now. A question may have none: its turn failed, or still runs.
    if left := [i for i, each in wanted.items() if each.role == "user" and i not in found]:
        recent = {"agent": agent, "limit": RECENT}
        rows = await store.fetch_in_background("search_recent_askers", recent)
        _take(found, wanted, reversed(rows))
        left = [each for each in left if each not in found]
    if left:
        asked = {"agent": agent, "ids": json.dumps(left)}
        _take(found, wanted, await store.fetch_in_background("search_askers_of", asked))
    return found


def _take(
    found: dict[str, str], wanted: Mapping[str, Source | Above], turns: Iterable[Row]
) -> None:
    """Take what the turns say, the oldest first: the first one to bring a message has asked it."""
    for turn in turns:
        whose = _id_of(turn["principal"])
        for message_id in messages_of_turn(turn):
            message = wanted.get(message_id)
            if message is not None and message.created_at >= turn["created_at"]:
                found.setdefault(message_id, whose)


def messages_of_turn(row: Row) -> list[str]:
    """The messages that are there because of a turn: what was asked, and the answer.

    Not those its client spoke of (`message_ids` of a turn that is not trimmed): whoever forges that
    list must neither have others' messages erased nor find them.
    """
    if row["options"] is None:
        asked: list[str] = json.loads(row["message_ids"]) if row["message_ids"] else []
    else:
        given: list[dict[str, Any]] = json.loads(row["input"]) if row["input"] else []
        asked = [str(message.get("id")) for message in given]
    # One that only went on with an answer has answered somebody else.
    answer = None if row["continuation"] else row["message_id"]
    return [*dict.fromkeys(asked if answer is None else [*asked, answer])]


def _id_of(principal: str | None) -> str:
    try:
        known: Any = None if principal is None else json.loads(principal)
    except ValueError:
        known = None
    said = cast("dict[str, Any]", known).get("id") if isinstance(known, dict) else None
    return said if isinstance(said, str) else NOBODY
