"""The transactions behind a reset and a clear.

A clear erases: messages, streams, inputs, errors, outputs and tool calls go; what stays of a turn
is its id, its status, its times and what it cost, so that a repeated request is still known. A turn
that runs meanwhile has lost its row: nothing it writes afterwards is stored.
"""

from __future__ import annotations

from functools import partial

from thinkwell.core.errors import TurnActiveError
from thinkwell.journal.asked import if_not_stored
from thinkwell.journal.joined_writes import Together
from thinkwell.journal.trimming import erase_live_rows
from thinkwell.journal.turn_log import TurnLog
from thinkwell.journal.turns import unsettled_turns
from thinkwell.store.base import Reader, Transaction
from thinkwell.turn.end.end_turn import end_older
from thinkwell.turn.parts import Parts

_ERASED = (
    *("erase_turns", "drop_tool_calls", "drop_packed_journals"),
    *("drop_own_blobs", "drop_blob_uses", "drop_decisions", "drop_approvers"),
    *("drop_approvals", "drop_expiries"),
)
"""What a clear does beside deleting the messages."""


async def refuse_if_busy(reader: Reader, parts: Parts, call: str) -> None:
    """Raises `TurnActiveError`, which names `call`, while a turn runs or waits.

    Only inside the transaction that then changes something is the answer sure: a turn that is
    accepted meanwhile comes before it or after it.
    """
    if await unsettled_turns(reader, parts.owner.agent_id):
        raise TurnActiveError(call)


async def next_generation(
    parts: Parts,
    running: TurnLog | None,
    *,
    forget: Together | None,
    idle_for: str | None = None,
) -> int:
    """Store the next generation and skip what is unsettled; with `idle_for`, refuse instead.

    `forget` also erases the rest, and is what features write on that occasion.
    """

    async def work(tx: Transaction) -> int:
        if idle_for is not None:
            await refuse_if_busy(tx, parts, idle_for)
        generation = await _bump(tx, parts)
        if running is not None:
            if_not_stored(partial(_keep, running))
            running.packed = running.erased = True
        if forget is not None:
            await _forget(tx, parts)
            parts.commits.forget_blobs(parts.owner.agent_id)
            await forget.write(tx)
        return generation

    return await parts.commits.run(parts.owner, work)


def _keep(running: TurnLog) -> None:
    """There was no clear: the turn goes on, and so does its journal."""
    running.packed = running.erased = False


async def erase_traces(parts: Parts) -> None:
    """What a clear leaves in the live journal and in the files of the store goes too.

    In slices: other agents write in between. A process that dies here loses nothing but time, for
    the live journal is trimmed anyway.
    """
    commit = partial(parts.commits.insist, parts.owner)
    await erase_live_rows(parts.store, commit, parts.owner.agent_id)
    await parts.store.scrub()


async def _bump(tx: Transaction, parts: Parts) -> int:
    agent = {"agent": parts.owner.agent_id}
    row = await tx.fetch_one("bump_generation", {"id": parts.owner.agent_id})
    generation: int = 0 if row is None else row["generation"]
    await end_older(tx, parts, generation)
    await tx.execute("forgive_continuation", agent)
    return generation


async def _forget(tx: Transaction, parts: Parts) -> None:
    agent = {"agent": parts.owner.agent_id}
    for query in _ERASED:
        await tx.execute(query, agent)
    await parts.session.clear(tx)
