"""The one road to the disk for everything agents write.

Chunks of all agents wait here and share a commit. A leading-edge window decides when: at the end
of the current loop iteration if the last commit is old enough, else when the window is over.
Whatever must be durable at once (accepting a turn, tool boundaries, the end of a turn) goes
through `run`, which takes everything that waits along in its own transaction. What is asked for in
one iteration of the loop, by whatever agents, shares a transaction too: each work in a savepoint of
its own, so that one that fails takes no other with it. Only what a client waits for goes at once
when nobody else has just written: then there is nobody to share with. So commits are ordered, and a
log hears of its chunks only after the transaction that holds them is done.

A commit that has begun runs to its end whatever happens to the task that asked for it: otherwise a
stop at the wrong moment would leave rows that nobody knows of.

An agent whose epoch moved on has lost its ownership: its rows are left out, its log fails, the
others commit.

A work that changes memory says how to take that back (`asked.py`): a failed one leaves nothing that
the next commit would store. Tasks here have an empty context, for they tell the logs of all agents:
nobody hears of its chunks inside the turn of a stranger.

While the store does not write (a full disk), chunks stay here and turns wait: `flush` and `insist`
return when the store has taken them. `run` refuses at once: it is for new work.
"""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator
from contextvars import Context
from typing import Any, NamedTuple, TypeVar

from thinkwell.core.bus import EventBus
from thinkwell.core.clock import Clock
from thinkwell.core.errors import StoreError, StoreUnavailableError
from thinkwell.core.tasks import TaskOwner, begin, wait_to_the_end
from thinkwell.journal.asked import Asked, refuse_inside_work
from thinkwell.journal.blobs import Blob, BlobStore
from thinkwell.journal.commit_figures import CommitFigures
from thinkwell.journal.store_health import Sleep, StoreHealth
from thinkwell.journal.trimming import TRIM_EVERY, trim_journal
from thinkwell.journal.turn_log import Owner, TurnLog
from thinkwell.store.base import Store, Transaction, Work
from thinkwell.store.ownership import bear, check_epochs, is_current

T = TypeVar("T")
log = logging.getLogger("thinkwell.store")

WINDOW = 0.005
"""Seconds between two commits of chunks."""
CAP = 256
"""Waiting chunks at which a turn must wait for the commit itself."""

JOINED = 0.001
"""Seconds after a commit of somebody else in which even the next urgent one waits for others to go
with it. In a quiet moment it needs neither a task nor another iteration of the loop.
"""

MOST_TOGETHER = 32
"""Works in one transaction: nobody else gets the loop while it runs."""

PROBE = " " * 32_768
"""As large as a longish reply: fewer bytes may still fit on a disk that is as good as full."""


def _nothing() -> None:
    """Nothing to take back, nobody to tell."""


class Written(NamedTuple):
    """What one commit holds of a log: its chunks before `upto`, its events before `events`."""

    log: TurnLog
    upto: int
    events: int


class GroupCommit:
    """Collects chunks, commits them in groups, then tells."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        bus: EventBus | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._store = store
        self._clock = clock
        self._tasks = TaskOwner("group-commit")
        # Around transaction and telling: the next one must know what this one has written.
        self._one_at_a_time = asyncio.Lock()
        self._waiting: dict[TurnLog, None] = {}
        self._asked: list[Asked] = []
        """Works that the next transaction takes."""
        self._committing: set[asyncio.Future[None]] = set()
        self._scheduled: asyncio.Handle | None = None
        """The next commit of what waits."""
        self._last_commit = float("-inf")
        self._last_writer: Owner | None = None
        """Who wrote the last commit, if it was one agent alone."""
        self._blobs = BlobStore()
        self._born: list[tuple[Owner, int]] = []
        """Who gets an epoch when the transaction commits that makes its agent's row."""
        self._rows_since_trim = 0
        self._trimming = False
        self.health = StoreHealth(self._probe, self._tasks, bus or EventBus(), sleep)
        """Whether the store writes."""
        self.figures = CommitFigures()
        """What it has done so far."""

    def note(self, log: TurnLog) -> bool:
        """`log` has new chunks. Returns True when so many wait that the caller must `flush` now."""
        if log not in self._waiting:
            self._waiting[log] = None
            if self._scheduled is None:
                self._schedule()
        return len(log.bodies) - log.written >= CAP

    async def flush(self) -> None:
        """Commit what waits and tell; waits as long as the store does not write.

        A store that fails in another way fails the logs, not the caller.
        """
        if self._waiting:
            refuse_inside_work("A flush")
            await self.health.insist(self._flush_to_the_end, _nothing)

    async def run(self, owner: Owner | None, work: Work[T], *, at_once: bool = False) -> T:
        """Commit `work` soon, together with all that waits; then tell; then return its result.

        `owner` is None for what belongs to no agent. Chunks that `work` appends are part of the
        same transaction. Raises `StoreUnavailableError` if the store does not write: nothing is
        stored then, and what `work` said to `if_not_stored` is done before anybody else commits.
        `at_once`: while nobody else writes, without letting others go first. For what a client
        waits for; a loop of such commits would hold everybody up.
        """
        self.health.refuse_if_failing()
        try:
            return await self._commit(owner, work, at_once=at_once)
        except StoreUnavailableError as error:
            self.health.failed(error)
            raise

    async def insist(
        self,
        owner: Owner | None,
        work: Work[T],
        *,
        waits: Callable[[], object] = _nothing,
        at_once: bool = False,
    ) -> T:
        """Like `run`, for work that has begun: waits as long as the store does not write.

        `work` may then run again, after what it said to `if_not_stored`. `waits` hears of the first
        failure.
        """
        return await self.health.insist(lambda: self._commit(owner, work, at_once=at_once), waits)

    async def close(self) -> None:
        """Commit the rest and stop."""
        try:
            await self._flush_to_the_end()
        except StoreUnavailableError as error:  # its turns go on from what is stored
            log.error("the last chunks could not be stored: %s", error.reason)
        await self._tasks.close()

    async def _flush_to_the_end(self) -> None:
        await wait_to_the_end(begin(self._flush(), Context()))

    async def _flush(self) -> None:
        async with self._one_at_a_time:
            if not self._waiting:
                return
            began = self._clock.monotonic()
            try:
                async with self._store.transaction() as tx:
                    await self._check_owners(tx, ())
                    batch = await self._write_waiting(tx)
            except StoreUnavailableError:
                raise
            except StoreError as error:
                self._give_up(error)
                return
            self._tell(batch, (), began)

    async def _commit(self, owner: Owner | None, work: Work[T], *, at_once: bool) -> T:
        """Commit `work` now, or with all that is asked for before the loop comes to it."""
        refuse_inside_work("A commit")
        asked = Asked(owner, work)
        self._asked.append(asked)
        if len(self._asked) == 1:
            self._start_commit(at_once=at_once and self._is_quiet_for(owner))
        return await wait_to_the_end(asked.outcome)

    def _is_quiet_for(self, owner: Owner | None) -> bool:
        """Whether nobody else has written just now, so that waiting for others would be in vain."""
        # None stands for several writers too, so an owner of None never counts as the last one.
        alone = owner is not None and self._last_writer is owner
        return alone or self._clock.monotonic() > self._last_commit + JOINED

    def _start_commit(self, *, at_once: bool = False) -> None:
        if at_once:
            committing = begin(self._commit_asked(), Context())
        else:  # the task starts in the next iteration: what is asked for until then goes with it
            loop = asyncio.get_running_loop()
            committing = loop.create_task(self._commit_asked(), context=Context())
        self._hold(committing)

    def _hold(self, committing: asyncio.Future[None]) -> None:
        """Keep what has to wait for something from being collected."""
        if not committing.done():
            self._committing.add(committing)
            committing.add_done_callback(self._committing.discard)

    async def _commit_asked(self) -> None:
        async with self._one_at_a_time:
            group, self._asked = self._asked[:MOST_TOGETHER], self._asked[MOST_TOGETHER:]
            if self._asked:
                self._start_commit()
            began = self._clock.monotonic()
            try:
                async with self._store.transaction() as tx:
                    lost = await self._check_owners(
                        tx, [asked.owner for asked in group if asked.owner]
                    )
                    for asked in group:
                        await self._carry_out(tx, asked, lost, alone=len(group) == 1)
                    batch = await self._write_waiting(tx)
            except BaseException as error:  # noqa: BLE001 - told to everybody who asked
                for asked in reversed(group):
                    asked.fail(error)
                return
            self._tell(batch, [asked.owner for asked in group], began)
        for asked in group:
            asked.succeed()

    async def _carry_out(
        self, tx: Transaction, asked: Asked, lost: Collection[Owner], *, alone: bool
    ) -> None:
        # `over` again: a work before it in this transaction may have deleted the agent.
        if asked.owner is not None and (asked.owner.over or asked.owner in lost):
            asked.fail(asked.owner.lost())
            return
        if alone:  # the transaction is its savepoint
            await asked.carry_out(tx)
            return
        try:
            async with tx.savepoint():
                await asked.carry_out(tx)
        except StoreUnavailableError:  # that is about all of them
            raise
        except Exception as error:  # noqa: BLE001 - told to whoever asked for it
            asked.fail(error)

    async def _probe(self) -> None:
        """A write that is large enough to prove something, undone in the same transaction."""
        self._store.check()
        async with self._one_at_a_time:
            began = self._clock.monotonic()
            async with self._store.transaction() as tx:
                await self._check_owners(tx, ())
                await tx.execute("write_probe", {"body": PROBE})
                await tx.execute("erase_probe", {})
                batch = await self._write_waiting(tx)
            self._tell(batch, (), began)

    def _schedule(self) -> None:
        loop = asyncio.get_running_loop()
        now = self._clock.monotonic()
        if self.figures.oldest is None:
            self.figures.oldest = now
        rest = self._last_commit + WINDOW - now
        if rest <= 0:
            self._scheduled = loop.call_soon(self._let_others_go_first)
        else:
            self._scheduled = loop.call_later(rest, self._let_others_go_first)

    def _let_others_go_first(self) -> None:
        # One iteration more: a turn that ends now takes its chunks along in its own commit.
        self._scheduled = asyncio.get_running_loop().call_soon(self._start_flush)

    def _start_flush(self) -> None:
        self._scheduled = None
        if self._waiting:
            self._hold(begin(self._flush_soon(), Context()))

    async def _flush_soon(self) -> None:
        try:
            await self._flush()
        except StoreUnavailableError as error:  # they stay, and go with the next write
            self.health.failed(error)
        except Exception:  # nobody waits for it
            log.exception("a commit of chunks failed", extra={"action": "flush"})

    async def _check_owners(self, tx: Transaction, owners: Collection[Owner]) -> Collection[Owner]:
        """Leave out the rows of agents that somebody else owns by now; those of `owners` who lost.

        Two owners of one agent may ask at once; the older one has lost.
        """
        self._born.clear()
        writers = {*owners, *(log.owner for log in self._waiting)}
        if len(writers) == 1:  # as in most commits
            (owner,) = writers
            if not owner.over and await is_current(tx, owner.agent_id, owner.epoch):
                return ()
        self._leave_out(log for log in self._waiting if log.owner.over)
        epochs = {log.owner.agent_id: log.owner.epoch for log in self._waiting}
        asking = {owner for owner in owners if not owner.over}
        for owner in asking:
            epochs[owner.agent_id] = max(epochs.get(owner.agent_id, 0), owner.epoch)
        gone: set[str] = set()
        for agent_id in await check_epochs(tx, epochs):
            epoch = await bear(tx, agent_id, epochs[agent_id], now=self._clock.now())
            if epoch is None:
                self._leave_out(log for log in self._waiting if log.owner.agent_id == agent_id)
                gone.add(agent_id)
            else:
                owning = {*asking, *(log.owner for log in self._waiting)}
                self._born += [(owner, epoch) for owner in owning if owner.agent_id == agent_id]
        lost = {o for o in asking if o.agent_id in gone or o.epoch < epochs[o.agent_id]}
        return lost.union(set(owners) - asking)

    async def _write_waiting(self, tx: Transaction) -> list[Written]:
        for log in self._waiting:
            if log.kept is not log.kept_written:
                log.write_kept()
        batch = [
            Written(log, len(log.bodies), len(log.events))
            for log in self._waiting
            if not log.owner.over  # a work of this transaction may have deleted the agent
        ]
        rows = [row for written in batch for row in _rows(written)]
        if rows:
            await tx.execute_many("append_journal", rows)
            self._rows_since_trim += len(rows)
        await self._blobs.write(tx, list(_blobs(batch)), self._clock.now())
        return batch

    def _tell(self, batch: list[Written], askers: Collection[Owner | None], began: float) -> None:
        self._last_commit = self._clock.monotonic()
        chunks = 0
        writers = {*askers, *(written.log.owner for written in batch)}
        self._last_writer = writers.pop() if len(writers) == 1 else None
        for owner, epoch in self._born:
            owner.epoch = epoch
            if owner.born is not None:
                owner.born()
        self._blobs.committed()
        for log, upto, events in batch:
            told = log.events[log.events_written : events]
            log.events_written = events
            same = upto == len(log.bodies) and events == len(log.events)
            if same and log.kept is log.kept_written:  # nothing came meanwhile
                self._waiting.pop(log, None)
            chunks += upto - log.written
            log.advance(upto, told)
        self._count(began, chunks)
        if self._waiting and self._scheduled is None:
            self._schedule()
        elif not self._waiting and self._scheduled is not None:
            self._scheduled.cancel()  # what comes next has a window of its own
            self._scheduled = None
        if self._rows_since_trim >= TRIM_EVERY and not self._trimming:
            self._rows_since_trim, self._trimming = 0, True
            self._tasks.spawn(self._trim(), name="trim")

    def _count(self, began: float, chunks: int) -> None:
        figures, took = self.figures, self._last_commit - began
        durations, lags = figures.durations, figures.lags
        durations.counts[bisect_left(durations.bounds, took)] += 1
        durations.total += took
        if chunks and figures.oldest is not None:
            lag = self._last_commit - figures.oldest
            lags.counts[bisect_left(lags.bounds, lag)] += 1
            lags.total += lag
        figures.chunks += chunks
        # When those came that wait already was not noted, but not before this commit began.
        figures.oldest = began if self._waiting else None

    async def _trim(self) -> None:
        try:
            await trim_journal(self._store)
        except StoreUnavailableError as error:
            self.health.failed(error)
        except StoreError as error:  # damage to one row must not stop the others
            log.error("the journal cannot be trimmed: %s", error, extra={"action": "trim"})
        finally:
            self._trimming = False

    def forget_blobs(self, agent_id: str) -> None:
        """A clear drops what this agent's journals refer to."""
        self._blobs.forget(agent_id)

    def _leave_out(self, logs: Iterable[TurnLog]) -> None:
        """Their owners may not write any more."""
        for log in tuple(logs):
            log.failure = log.owner.lost()
            del self._waiting[log]

    def _give_up(self, error: StoreError) -> None:
        for log in self._waiting:
            log.failure = error
        self._waiting.clear()


def _rows(written: Written) -> Iterator[dict[str, Any]]:
    log, upto, events = written
    if log.packed:
        return
    who = {"agent": log.owner.agent_id, "turn": log.request_id}
    if upto > log.written:
        body = f"[{','.join(log.bodies[log.written : upto])}]"
        yield {**who, "seq_from": log.written, "seq_to": upto, "kind": "chunks", "body": body}
    for event in log.events[log.events_written : events]:
        place = {"seq_from": event.seq, "seq_to": event.seq}
        yield {**who, **place, "kind": event.kind, "body": event.body}


def _blobs(batch: list[Written]) -> Iterator[tuple[str, Blob]]:
    """What the new events refer to, with the agent; also of a turn that ends in this commit."""
    for log, _, events in batch:
        if not log.erased:
            for event in log.events[log.events_written : events]:
                for blob in event.blobs:
                    yield log.owner.agent_id, blob
