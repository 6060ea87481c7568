"""Rows past their age: calls of the ledger, decisions, questions, revoked rules, and ended turns.

Turns are walked in the order they were accepted, a bounded piece at a time; there is no index by
end, because every turn would pay for it. The walk remembers where it was: `Walk` holds its place
between two pieces, and starts over once a day, for what it had to leave standing.

A turn that is past its age loses what nobody needs: its input (the messages have it), options,
body, errors and key. Its row goes altogether when no message and no call refers to it any more.
What is needed is never looked at: see `turns_from` for the list.
"""

from __future__ import annotations

import msgspec

from thinkwell.store.base import Transaction


class Walk(msgspec.Struct):
    """How far a walk over all turns has come."""

    after: int = 0
    """The last row that was looked at."""
    began_at: float | None = None
    """When this walk began; None before the first."""


REPEAT = 24 * 3600.0
"""Seconds after which a walk that has come to its end begins anew."""


def next_walk(walk: Walk, now: float) -> Walk:
    """The walk to go on with: the same one, or a new one if it began too long ago."""
    if walk.began_at is None or not walk.began_at <= now < walk.began_at + REPEAT:
        return Walk(0, now)
    return walk


async def age_turns(
    tx: Transaction, walk: Walk, *, calls: float | None, turns: float | None, limit: int
) -> int | None:
    """Look at the next rows; the last one that was old enough, or None at the end of the walk.

    `calls` and `turns` are the times before which ledger rows and turns are past their age; None:
    they have none.
    """
    before = max(time for time in (calls, turns) if time is not None)
    rows = await tx.fetch_all("turns_from", {"after": walk.after, "limit": limit})
    old = [row for row in rows if row["created_at"] < before]
    ended = [row for row in old if row["settled_at"] is not None]
    if calls is not None:
        names = [{"agent": row["agent"], "turn": row["id"], "before": calls} for row in ended]
        await tx.execute_many("drop_old_calls", names)
        await tx.execute_many("trim_old_claims", names)
    if turns is not None:
        spent = [{"seq": row["seq"]} for row in ended if row["spent"] and row["settled_at"] < turns]
        await tx.execute_many("trim_turn", spent)
        await tx.execute_many("drop_trimmed_turn", spent)
    return old[-1]["seq"] if len(old) == limit else None


async def drop_old_decisions(tx: Transaction, *, before: float, limit: int) -> int:
    """Drop a piece of the decisions made before then; how many."""
    return await tx.execute("drop_old_decisions", {"before": before, "limit": limit})


async def drop_old_approvals(tx: Transaction, *, before: float, limit: int) -> int:
    """Drop a piece of the questions decided before then, with whom they named; how many."""
    piece = {"before": before, "limit": limit}
    await tx.execute("drop_approvers_of_old", piece)
    return await tx.execute("drop_old_approvals", piece)


async def drop_old_rules(tx: Transaction, *, before: float, limit: int) -> int:
    """Drop a piece of the rules revoked before then; how many."""
    return await tx.execute("drop_old_rules", {"before": before, "limit": limit})
