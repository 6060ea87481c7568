"""Erasing a person: what they asked and were answered, in every agent and every table.

It is a job of the host, so that a process that dies half-way goes on at its next start. The job
knows the person by a digest: what remains of it afterwards names nobody. Every step finds what is
left by itself, and a person's turns go last in each piece, because everything else is found by
them.

An agent in which every turn and every job is theirs is deleted whole. In one that others use too,
their turns go with the messages, calls and journals; it sleeps meanwhile, and whoever asks for it
waits. What they wrote into a block of a class stands in the requests of all its agents: the
journals of these go as well.
`store/tables.py` says what happens to each table.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

from thinkwell.core import json
from thinkwell.core.ids import new_id
from thinkwell.host.deletions import delete_unserved
from thinkwell.journal.approvals import EXPIRE_JOB
from thinkwell.journal.crash_points import crash_here
from thinkwell.journal.job_ends import move_queue_up
from thinkwell.journal.jobs import Job, begin_job, finish_job, insert_job
from thinkwell.journal.spending import close_orphans
from thinkwell.journal.trimming import erase_live_rows
from thinkwell.session.search.askers import messages_of_turn as messages_of
from thinkwell.session.search.index import SearchIndex
from thinkwell.session.session import Session
from thinkwell.store.base import Commit, Row, Store, Transaction, commit_alone

log = logging.getLogger("thinkwell.host")

HOST = "/host"
"""Whose job it is: the class of an agent is never empty."""
JOB = "erase_principal"
PIECE = 25
"""Turns that one transaction erases, with all that belongs to them."""
_BY_PERSON = (
    *("erase_decisions_by", "erase_jobs_of", "unname_approver"),
    *("erase_blocks_of", "erase_prompts_of"),
    *("erase_approvals_by", "erase_rules_for", "erase_rules_by", "unname_rule_maker"),
)
_BY_MESSAGE = ("erase_decisions_about", "erase_approvers_of", "erase_approvals_of")
_BLANKED = ("erase_later_class_blocks", "blank_class_blocks_of")
_SHARED = ("erase_prompts_of_class", "erase_shared_blocks_of", "erase_spending_of")
"""What agents share is nobody's row in particular. Prompts first: the blocks lead to them."""
_JOURNALS = ("drop_packed_journals", "drop_own_blobs", "drop_blob_uses")


def digest_of(principal_id: str) -> str:
    """What an erasure knows a person by."""
    return hashlib.blake2b(principal_id.encode(), digest_size=16).hexdigest()


async def find_by_digest(store: Store, digest: str) -> str | None:
    """The person with that digest; None if nothing is left that names them."""
    for row in await store.fetch_in_background("principal_ids", {}):
        if isinstance(row["id"], str) and digest_of(row["id"]) == digest:
            return row["id"]
    return None


async def agents_of(store: Store, principal_id: str) -> list[str]:
    """The agents with rows of a person."""
    rows = await store.fetch_in_background("agents_of_principal", {"principal": principal_id})
    return [row["agent"] for row in rows]


async def is_alone(store: Store, agent_id: str, principal_id: str) -> bool:
    """Whether nobody else has asked an agent anything, nor has work there."""
    rows = await store.fetch_in_background("agent_of_one", asked_alone(agent_id, principal_id))
    return bool(rows[0]["alone"])


def asked_alone(agent_id: str, principal_id: str) -> dict[str, str]:
    """What the query `agent_of_one` takes."""
    return {"agent": agent_id, "principal": principal_id, "expire": EXPIRE_JOB}


Asleep = Callable[[str, str], AbstractAsyncContextManager[bool]]
"""`async with asleep(agent_id, principal_id) as free`: nobody runs the agent meanwhile; False: it
has work of somebody else at the moment."""


class Erasure:
    """Carries an erasure out, on whatever store."""

    def __init__(
        self,
        store: Store,
        commit: Commit,
        *,
        asleep: Asleep,
        delete: Callable[[str], Awaitable[object]],
        forget_blobs: Callable[[str], None],
        index: SearchIndex | None = None,
    ) -> None:
        self._store = store
        self._index = index or SearchIndex(store, commit)
        self._commit = commit
        self._asleep = asleep
        self._delete = delete
        self._forget_blobs = forget_blobs
        self._clean: dict[str, set[str]] = {}
        """Agents without journals from before the blocks were blanked, by digest: if one of many
        is busy, the others need not sleep again. A new process begins anew."""

    async def run(self, digest: str) -> bool:
        """Erase whoever has that digest. False if an agent was busy: then try again soon."""
        crash_here("e0")
        whole = True
        principal = await find_by_digest(self._store, digest)
        if principal is not None:
            # First of all, no prompt that is made from now on shows what they wrote.
            await self._commit(lambda tx: _run(tx, _BLANKED, {"principal": principal}))
            clean = self._clean.setdefault(digest, set())
            for agent_id in await agents_of(self._store, principal):
                if await self._erase_in(agent_id, principal):
                    clean.add(agent_id)
                else:
                    whole = False
                crash_here("e2")
            if await self._erase_quotes(principal, clean):
                await self._commit(lambda tx: _run(tx, _SHARED, {"principal": principal}))
            else:
                whole = False
        if whole:
            self._clean.pop(digest, None)
            crash_here("e3")
            await self._index.purge()
            crash_here("e5")
            await self._store.rewrite()
            crash_here("e4")
        return whole

    async def _erase_in(self, agent_id: str, principal: str) -> bool:
        # Asked only now: while other agents were erased, somebody may have come to this one.
        if await is_alone(self._store, agent_id, principal):
            await self._delete(agent_id)
            return True
        return await self._while_asleep(agent_id, principal, self._erase_rows)

    async def _erase_quotes(self, principal: str, clean: set[str]) -> bool:
        """Drop what agents of a class were shown of a person's blocks. False if one was busy."""
        whole = True
        named = {"principal": principal}
        for row in await self._store.fetch_in_background("agents_shown_blocks_of", named):
            agent_id = row["agent"]
            if agent_id in clean:
                continue
            if await self._while_asleep(agent_id, principal, self._erase_journals):
                clean.add(agent_id)
            else:
                whole = False
            crash_here("e2")
        return whole

    async def _while_asleep(
        self, agent_id: str, principal: str, erase: Callable[[str, str], Awaitable[None]]
    ) -> bool:
        async with self._asleep(agent_id, principal) as free:
            if free:
                await erase(agent_id, principal)
            else:
                about = {"action": "erase", "agent": agent_id}
                log.warning("an erasure waits for an agent that has work of others", extra=about)
        return free

    async def _erase_journals(self, agent_id: str, _principal: str) -> None:
        quoting = ("erase_prompts_of", *_JOURNALS)
        await self._commit(lambda tx: _run(tx, quoting, {"agent": agent_id}))
        self._forget_blobs(agent_id)
        await erase_live_rows(self._store, self._commit, agent_id)

    async def _erase_rows(self, agent_id: str, principal: str) -> None:
        named = {"agent": agent_id, "principal": principal}
        sessions = await self._store.fetch_all("session_ids", {"agent": agent_id})
        trees = [Session(self._store, agent_id, row["id"]) for row in sessions]

        async def piece(tx: Transaction) -> bool:
            rows = await tx.fetch_all("turns_of_principal", {**named, "limit": PIECE})
            turns = json.dumps([row["id"] for row in rows])
            await tx.execute("erase_live_journal", {"agent": agent_id, "ids": turns})
            for tree in trees:
                await tree.delete(tx, [each for row in rows for each in messages_of(row)])
            for row in rows:
                await _erase_turn(tx, agent_id, row)
            while await close_orphans(tx, agent_id=agent_id, limit=PIECE):
                pass  # what those turns have reserved: it names the person, too
            return bool(rows)

        async def rest(tx: Transaction) -> None:
            await _run(tx, _BY_PERSON, named)
            await move_queue_up(tx, agent_id)  # what was in front of the others may be gone

        # Journals first: a later one may quote what is erased, and only turns lead here again.
        await self._erase_journals(agent_id, principal)
        await self._commit(rest)
        while await self._commit(piece):
            crash_here("e1")
            await asyncio.sleep(0)


async def _erase_turn(tx: Transaction, agent_id: str, row: Row) -> None:
    ids = messages_of(row)
    for each in ids or [""]:
        about = {"agent": agent_id, "turn": row["id"], "message_id": each}
        await _run(tx, _BY_MESSAGE, about)
    answer = {"agent": agent_id, "turn": row["id"], "answer": answer_of(row)}
    named = {"agent": agent_id, "ids": json.dumps(ids)}
    await tx.execute("delete_all_versions", named)
    await tx.execute("erase_calls", answer)
    await tx.execute("erase_turn_row", {"seq": row["seq"]})
    await tx.execute("erase_turns_of_answer", answer)
    await tx.execute("erase_inputs", named)


async def _run(tx: Transaction, queries: tuple[str, ...], params: dict[str, Any]) -> None:
    for query in queries:
        await tx.execute(query, params)


def answer_of(row: Row) -> str | None:
    """The answer, if this turn began it: one that only went on with it answers somebody else."""
    return None if row["continuation"] else row["message_id"]


async def erase_unserved(store: Store, principal_id: str, *, now: float) -> None:
    """Erase a person from an open store that no host serves.

    The job is written first: if this process dies, the next host goes on.
    """

    commit = partial(commit_alone, store)
    digest = digest_of(principal_id)
    job = new_job(digest, now)
    await commit(lambda tx: insert_job(tx, job))
    erasure = Erasure(
        store,
        commit,
        asleep=_nobody_runs,
        delete=lambda agent_id: delete_unserved(store, agent_id, now=now),
        forget_blobs=lambda _agent_id: None,
    )
    await erasure.run(digest)

    async def finish(tx: Transaction) -> None:
        begun = await begin_job(tx, job, epoch=0, boot=0, now=now)
        if begun is not None:
            await finish_job(tx, begun, "done", now=now)

    await commit(finish)


def new_job(digest: str, now: float) -> Job:
    """The record of an erasure."""
    return Job(
        agent_id=HOST, id=new_id(), name=JOB, payload={"digest": digest}, due_at=now, created_at=now
    )


class _nobody_runs:  # noqa: N801 - used as a function
    """Where no host serves, every agent sleeps."""

    def __init__(self, _agent_id: str, _principal: str) -> None:
        pass

    async def __aenter__(self) -> bool:
        return True

    async def __aexit__(self, *_: object) -> None:
        return None
