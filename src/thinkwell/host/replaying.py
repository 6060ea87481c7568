"""Replaying a turn: the agent's code of today, in a store of its own, with the recorded world.

The store is in memory, tools and models are stand-ins, jobs and the hooks of the end do not run.
Nothing that the agent has stored is read or written: what a replay knows is in its case.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, TypeAlias

import msgspec

from thinkwell.agent.think import Think
from thinkwell.agent.wiring import Activation
from thinkwell.core import json
from thinkwell.core.clock import SystemClock
from thinkwell.core.errors import ReplayError
from thinkwell.core.tasks import TaskOwner
from thinkwell.core.user_code import call_user
from thinkwell.hooks.feature import Feature
from thinkwell.host.client import AgentAddress
from thinkwell.host.host import Host
from thinkwell.journal.reading import StoredJournal
from thinkwell.journal.turns import Chosen, TurnRecord
from thinkwell.messages.usage import Usage
from thinkwell.models.resolve import ModelLike
from thinkwell.store.sqlite import SqliteStore
from thinkwell.turn.ask.run_options import as_output
from thinkwell.turn.recorded_requests import journal_of
from thinkwell.turn.travel.case import Case
from thinkwell.turn.travel.differences import Difference, compare_chunks, not_allowed
from thinkwell.turn.travel.planting import fresh, plant
from thinkwell.turn.travel.recording import Tools, TurnRecording

Prepare: TypeAlias = Callable[[Any], Awaitable[object] | object]
"""Called with the agent before the turn begins: to store what its code looks up."""


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a replay."""

    case: Case
    turn: TurnRecord
    """The row of the replayed turn."""
    journal: StoredJournal
    differences: tuple[Difference, ...]
    """Where the code of today does something else, in the order it came."""
    seconds: float
    """How long it took."""

    @property
    def identical(self) -> bool:
        """Whether every request, every tool's input and every byte of the stream is the same."""
        return not self.differences

    @property
    def first(self) -> Difference | None:
        """The first difference."""
        return self.differences[0] if self.differences else None

    @property
    def usage(self) -> Usage:
        """The tokens it used: recorded ones, or those of the model that was tried."""
        return self.turn.usage

    def check(self, allow: Collection[str] = ()) -> None:
        """Raise `ReplayError` with the first difference that `allow` does not name."""
        left = not_allowed(self.differences, allow)
        if left:
            more = len(left) - 1
            rest = f"\n  ({more} more difference{'s' if more > 1 else ''})" if more else ""
            raise ReplayError(f"{left[0]}{rest}")


async def replay_case(
    case: Case,
    cls: type[Think],
    *,
    model: ModelLike = None,
    tools: Tools = "recorded",
    features: Sequence[Feature] = (),
    output: Any = None,
    prepare: Prepare | None = None,
) -> Replay:
    """Run the turn of a case again.

    Without `model`, with the recorded replies: the stream is compared byte for byte. With one, that
    model answers, and calls that were made before get their recorded results. `output` is the type
    that `run` was given, of which the turn's row keeps only the schema.
    """
    given = None if output is None else as_output(output)
    recording = await TurnRecording.of(case, tools=tools, model=model, output=given)
    clock = _RecordedClock(recording)
    store = SqliteStore(":memory:")
    host = _ReplayHost(
        [cls],
        store,
        clock=clock,
        features=features,
        sleep=_at_once,
        drain_timeout=0,
    )
    address = AgentAddress(cls.agent_class, case.turn.agent_id.partition("/")[2])
    began = clock.monotonic()
    host.play(recording)
    await host.start()
    try:
        if prepare is not None:
            with (await host.agent(address)).in_use() as agent:
                await call_user("prepare", prepare, agent)
        await _plant(store, recording, cls, address)
        await _run(host, address, recording)
        record, journal = await _read(store, case, address)
    finally:
        await host.stop(0)
    seconds = clock.monotonic() - began
    return _result(recording, record, journal, seconds)


class _ReplayHost(Host):
    """Runs one recorded turn and nothing else: no jobs, no upkeep, no other agent's work."""

    def play(self, recording: TurnRecording) -> None:
        """Before the start: what stands for the world."""
        self._shared.recording, self._shared.models = recording, recording.models

    async def _start(self) -> None:
        await self._begin_boot()

    async def restart(self, address: AgentAddress) -> Activation:
        """End an agent as a crash would and wake it: what it left goes on from its journal."""
        task = self._awake.pop(address.id, None)
        if task is not None and task.done():
            await task.result().stop()
        return await self.agent(address)


class _RecordedClock(SystemClock):
    """The time of the recording, for what is stored and told."""

    def __init__(self, recording: TurnRecording) -> None:
        self._recording = recording

    def now(self) -> float:
        """When it was then; with another model, when it is."""
        return super().now() if self._recording.live_model else self._recording.now


async def _at_once(_: float) -> None:
    """Pauses before another try are not waited for."""
    await asyncio.sleep(0)


async def _plant(
    store: SqliteStore, recording: TurnRecording, cls: type[Think], address: AgentAddress
) -> None:
    case, now = recording.case, recording.now
    record = fresh(case, address.id, case.turn.request_id, now=now)
    if cls.model is None and cls.get_model is Think.get_model:
        # It gets its model elsewhere, from its start for example: the recorded one stands for it.
        names = [f"{call.provider}:{call.model}" for call in recording.script.calls[:1]]
        chosen = record.chosen or Chosen()
        model = chosen.model or next(iter(names), "recorded:none")
        record = msgspec.structs.replace(
            record, chosen=msgspec.structs.replace(chosen, model=model)
        )
    named = {"id": address.id, "class": address.class_name, "name": address.name, "now": now}
    async with store.transaction() as tx:
        await tx.fetch_one("claim_agent", named)
        if case.state is not None:
            state = json.dumps(case.state)
            await tx.execute("set_agent_state", {"id": address.id, "state": state})
        await plant(tx, case, record, now=now)


async def _run(host: _ReplayHost, address: AgentAddress, recording: TurnRecording) -> None:
    """Until the turn has ended, through every crash and stop that was recorded."""
    tasks, turn = TaskOwner("replay"), recording.case.turn
    try:
        while True:
            activation = await host.restart(address)
            over = tasks.spawn(activation.until_over(turn.request_id), name="over", awaited=True)
            if not await _until_cut(tasks, over, recording):
                await over
                return
            if turn.status == "aborted" and recording.cut_is_last:
                await activation.cancel_turn(turn.request_id, turn.error or "")
                await over
                return
            over.cancel()
            if recording.cut_is_last:
                return  # it was parked, or has not ended yet
            recording.go_on()
    finally:
        await tasks.close(0)


async def _until_cut(
    tasks: TaskOwner, over: asyncio.Task[TurnRecord], recording: TurnRecording
) -> bool:
    """Whether the turn was cut before it ended."""
    cut = tasks.spawn(recording.cuts.get(), name="cut", awaited=True)
    await asyncio.wait([over, cut], return_when=asyncio.FIRST_COMPLETED)
    cut.cancel()
    return not over.done()


async def _read(
    store: SqliteStore, case: Case, address: AgentAddress
) -> tuple[TurnRecord, StoredJournal]:
    found = await store.fetch_one("turn_by_id", {"agent": address.id, "id": case.turn.request_id})
    if found is None:
        raise ReplayError("The replayed turn has disappeared: a hook has cleared the conversation.")
    record = TurnRecord.from_row(found)
    return record, await journal_of(store, record) or StoredJournal((), ())


def _result(
    recording: TurnRecording, record: TurnRecord, journal: StoredJournal, seconds: float
) -> Replay:
    case, found = recording.case, list(recording.differences)
    if not recording.live_model:
        found += _at_the_end(recording, record, journal)
    return Replay(
        case=case, turn=record, journal=journal, differences=tuple(found), seconds=seconds
    )


def _at_the_end(
    recording: TurnRecording, record: TurnRecord, journal: StoredJournal
) -> list[Difference]:
    case, found = recording.case, list[Difference]()
    left = len(recording.script.calls) - recording.played
    if left and record.settled:
        called = len(recording.script.calls)
        found.append(
            Difference(where="calls", recorded=f"{called} model calls", now=f"{called - left}")
        )
    recorded = case.journal.bodies
    if not record.settled:  # what was written at the end of a parked turn is not played
        recorded = recorded[: len(journal.bodies)]
    chunk = compare_chunks(recorded, journal.bodies)
    if chunk is not None:
        found.append(chunk)
    for name in ("status", "stop_reason", "output") if record.settled and case.turn.settled else ():
        before, after = getattr(case.turn, name), getattr(record, name)
        if before != after:
            found.append(Difference(where="end", path=name, recorded=before, now=after))
    return found
