"""Several writes of an agent's own code as one commit.

User code is never run inside a transaction: it may wait for anything (DESIGN §8.9). So a block of
it collects what it wants to write, and all of it is committed when the block has ended; a block
that raises writes nothing. Whoever has a transaction anyway (a clear, the settling of a tool call)
takes the collected writes into that one. So a value and the job that goes with it are stored both
or not at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from thinkwell.core.tasks import run_to_the_end
from thinkwell.journal.group_commit import GroupCommit
from thinkwell.journal.turn_log import Owner
from thinkwell.store.base import Transaction, Work

T = TypeVar("T")


class Together:
    """What a block wants to write. Open until its end, and only for the task that runs it."""

    def __init__(self, agent_id: str) -> None:
        self._agent_id = agent_id
        self.writes: list[Work[object]] = []
        self.promised: dict[str, Any] = {}
        """What the block was told will be there, by name: it asks for the same again."""
        self._afterwards: list[Callable[[], object]] = []
        self._task: asyncio.Task[Any] | None = None

    def takes(self, agent_id: str) -> bool:
        """Whether a write of this agent, made by the current code, belongs to the block.

        A task that was started inside may go on after its end, so it writes for itself.
        """
        return self._agent_id == agent_id and self._task is asyncio.current_task()

    @contextmanager
    def collecting(self) -> Generator[None]:
        """What the block writes is collected here; the caller carries it out."""
        token = _current.set(self)
        self._task = asyncio.current_task()
        try:
            yield
        finally:
            self._task = None
            _current.reset(token)

    def add(self, write: Work[object], afterwards: Callable[[], object] | None = None) -> None:
        """One more write, and what to do when it is committed."""
        self.writes.append(write)
        if afterwards is not None:
            self._afterwards.append(afterwards)

    def take(self, other: Together) -> None:
        """What another block has collected comes behind."""
        self.writes += other.writes
        self.promised |= other.promised
        self._afterwards += other._afterwards

    @contextmanager
    def all_or_none(self) -> Generator[None]:
        """A block inside this one: what it has added is dropped again if it raises."""
        writes, afterwards = len(self.writes), len(self._afterwards)
        promised = dict(self.promised)
        try:
            yield
        except BaseException:
            del self.writes[writes:], self._afterwards[afterwards:]
            self.promised = promised
            raise

    async def write(self, tx: Transaction) -> None:
        """Carry it all out, in the order it was asked for."""
        for write in self.writes:
            await write(tx)

    def committed(self) -> None:
        """The transaction is done: whoever waits for its writes hears of it."""
        for notify in self._afterwards:
            notify()


class CallWrites(Together):
    """What one call of a `tx` tool wants to write, to be committed with its result.

    The tasks that the tool starts belong to the call: until it ends, their writes are its own.
    Afterwards there is nothing left that they could be committed with, so they are refused.
    """

    def __init__(self, agent_id: str, tool_name: str) -> None:
        super().__init__(agent_id)
        self._tool_name = tool_name
        self._ended = False
        self.pending: dict[tuple[str, str], str | None] = {}
        """What stored values will be, by owner and key; None: deleted."""

    def takes(self, agent_id: str) -> bool:
        """Whether a write of this agent belongs to the call."""
        if self._agent_id == agent_id and self._ended:
            raise RuntimeError(
                f"The call of the tool {self._tool_name!r} has ended, and its effect is 'tx': all "
                "that it writes is stored together with its result. Await what the tool starts "
                "before it returns."
            )
        return self._agent_id == agent_id

    @contextmanager
    def all_or_none(self) -> Generator[None]:
        """A block inside the call: what it has added is dropped again if it raises."""
        pending = dict(self.pending)
        try:
            with super().all_or_none():
                yield
        except BaseException:
            self.pending = pending
            raise

    def sees(self, agent_id: str) -> bool:
        """Whether a read of this agent sees what the call has written so far."""
        return self._agent_id == agent_id and not self._ended

    async def collect(self, running: Coroutine[Any, Any, T]) -> T:
        """Run the tool; what it writes is kept here."""
        _current.set(self)  # never reset: this is the call's own task
        return await running

    def end(self) -> None:
        """The call has its outcome, whatever its tasks still do."""
        self._ended = True


_current: ContextVar[Together | None] = ContextVar("together", default=None)


@asynccontextmanager
async def as_one_commit(commits: GroupCommit, owner: Owner) -> AsyncGenerator[None]:
    """What the block writes is committed at its end; nothing of it, if it raises.

    Inside another such block it belongs to that one.
    """
    if (outer := open_block(owner.agent_id)) is not None:
        with outer.all_or_none():
            yield
        return
    together = Together(owner.agent_id)
    with together.collecting():
        yield
    if together.writes:
        await run_to_the_end(_commit(commits, owner, together))


async def _commit(commits: GroupCommit, owner: Owner, together: Together) -> None:
    await commits.run(owner, together.write)
    together.committed()


def open_block(agent_id: str) -> Together | None:
    """The block inside which the current code writes for this agent, if it is in one."""
    together = _current.get()
    return together if together is not None and together.takes(agent_id) else None


def pending_values(agent_id: str) -> dict[tuple[str, str], str | None] | None:
    """What the current code has written and not yet committed, if it is to see it."""
    together = _current.get()
    if not isinstance(together, CallWrites) or not together.sees(agent_id):
        return None
    return together.pending


async def write_soon(
    commits: GroupCommit,
    owner: Owner,
    write: Work[object],
    afterwards: Callable[[], object] | None = None,
) -> None:
    """Commit a write now, or with the block inside which this is called; then do `afterwards`."""
    together = open_block(owner.agent_id)
    if together is not None:
        together.add(write, afterwards)
        return
    await commits.run(owner, write)
    if afterwards is not None:
        afterwards()
