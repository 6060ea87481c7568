"""The turns of one agent: accept them, run them one at a time, tell whoever waits.

Everything that starts a turn comes through `ask`; everything that runs one goes through `_run`.
After a start of the host, `recover` puts unsettled turns back into the same queue: there is no
second path.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import msgspec

from thinkwell.core import json
from thinkwell.core.errors import HostClosedError
from thinkwell.core.ids import new_id
from thinkwell.core.signal import AbortSignal
from thinkwell.core.tasks import TaskOwner, run_to_the_end
from thinkwell.journal.crash_points import crash_here
from thinkwell.journal.reading import read_packed
from thinkwell.journal.turn_log import TurnLog
from thinkwell.journal.turns import (
    TurnEnd,
    TurnRecord,
    find_turn,
    newest_turn,
    request_cancel,
    settle_turn,
    turns_owing_hooks,
    unsettled_turns,
)
from thinkwell.live.live import EndedStream, Live, TerminalRecord
from thinkwell.messages.chunks import Chunk
from thinkwell.store.base import Transaction
from thinkwell.turn.admission import Admission, TurnRequest, admit, is_inside_turn
from thinkwell.turn.ending import TurnOutcome, TurnResult
from thinkwell.turn.face import Parts
from thinkwell.turn.notify import notify, redeliver, result_of
from thinkwell.turn.queue import TurnQueue
from thinkwell.turn.running import RunningTurn
from thinkwell.turn.settle import SAFE_ERROR
from thinkwell.turn.ticket import InputFunction, Ticket
from thinkwell.turn.turn import run_turn

log = logging.getLogger("thinkwell.agent")


class Turns:
    """Accepts and runs the turns of one agent. Is the `TurnOutput` of its own turns."""

    def __init__(self, tasks: TaskOwner, generation: int) -> None:
        self._tasks = tasks
        self._queue = TurnQueue(run=self._run, stale=self._skip, tasks=tasks, generation=generation)
        self.live = Live(self.transcript, self._find_ended)
        self._closed = False
        self._parts: Parts | None = None

    @property
    def parts(self) -> Parts:
        """The collaborators, once the agent is wired."""
        if self._parts is None:
            raise RuntimeError("the agent is not wired yet")
        return self._parts

    def wire(self, parts: Parts) -> None:
        """Take the collaborators; they refer back to this object as their output."""
        self._parts = parts

    # Ways in

    async def ask(
        self,
        request: TurnRequest,
        *,
        input_function: InputFunction | None = None,
        origin: str | None = None,
        signal: AbortSignal | None = None,
    ) -> tuple[Admission, Ticket | None]:
        """Accept a turn and put it in line. No ticket if it was known before."""
        if self._closed:
            raise HostClosedError("The app is stopping and accepts no new turns.")
        return await run_to_the_end(self._accept(request, input_function, origin, signal))

    async def _accept(
        self,
        request: TurnRequest,
        input_function: InputFunction | None,
        origin: str | None,
        signal: AbortSignal | None,
    ) -> tuple[Admission, Ticket | None]:
        admission = await admit(self.parts, request, self._queue.generation)
        if not admission.accepted:
            return admission, None
        ticket = Ticket(admission.record, input_function)
        if signal is not None:
            stop = signal.add_listener(lambda reason: self._cancel_soon(ticket, reason))
            ticket.result.add_done_callback(lambda _: stop())
        self.live.accepted(admission.record, origin)
        self._queue.put(ticket)
        await self.live.send_transcript(but=origin)
        crash_here("c1")
        self._queue.wake()
        return admission, ticket

    async def wait(self, ticket: Ticket) -> TurnResult:
        """Wait for the result. Cancelling the task that waits stops the turn."""
        try:
            return await asyncio.shield(ticket.result)
        except asyncio.CancelledError:
            self._cancel_soon(ticket, "the caller was cancelled")
            raise

    async def follow(self, ticket: Ticket) -> AsyncIterator[Chunk]:
        """The chunks of a turn as they become durable. Leaving the iteration stops the turn."""
        news = asyncio.Event()
        ticket.result.add_done_callback(lambda _: news.set())
        ticket.on_log(lambda log: log.subscribe(lambda _first, _bodies: news.set()))
        told = 0
        try:
            while True:
                ended = ticket.result.done()
                for body in ticket.written_from(told):
                    told += 1
                    yield json.loads(body)
                if ended:
                    break
                news.clear()
                if not ticket.result.done() and not ticket.written_from(told):
                    await news.wait()
        finally:
            if not ticket.result.done():
                await self.cancel(ticket.record.request_id, "the reader left the stream")

    async def cancel(self, request_id: str, reason: str) -> bool:
        """Stop a turn: recorded first, so that a crash does not revive it."""
        parts = self.parts
        stopped = await parts.commits.run(
            parts.owner,
            lambda tx: request_cancel(tx, parts.owner.agent_id, request_id, reason),
        )
        crash_here("c16")
        ticket = self._queue.find(request_id)
        if ticket is not None:
            ticket.controller.abort(reason)
        return stopped

    async def cancel_running(self, reason: str) -> bool:
        """Stop the turn that runs now, if any."""
        active = self._queue.active
        return active is not None and await self.cancel(active.record.request_id, reason)

    async def clear(self, *, but: str | None = None) -> None:
        """Forget the conversation: a new generation; what runs stops, what waits is skipped
        (spec/01 §8.3).
        """
        parts = self.parts

        async def store(tx: Transaction) -> int:
            agent = {"agent": parts.owner.agent_id}
            row = await tx.fetch_one("bump_generation", {"id": parts.owner.agent_id})
            generation: int = 0 if row is None else row["generation"]
            await tx.execute(
                "skip_older_turns",
                {**agent, "generation": generation, "settled_at": parts.clock.now()},
            )
            await tx.execute("drop_packed_journals", agent)
            await parts.session.clear(tx)
            return generation

        generation = await parts.commits.run(parts.owner, store)
        self._queue.generation = max(self._queue.generation, generation)
        stale = [t for t in self._queue.tickets() if t.record.generation < generation]
        for ticket in stale:
            ticket.controller.abort("cleared")
        # Ends go out before the clear: after it, a client would show an empty answer. Inside a turn
        # nobody can wait for them: they come when this turn has left its slot.
        if stale and not is_inside_turn(parts.owner.agent_id):
            await asyncio.wait([ticket.result for ticket in stale])
        self.live.cleared(but)

    async def recover(self) -> None:
        """After a start: unsettled turns go back in line, owed hooks are delivered again."""
        parts = self.parts
        agent_id = parts.owner.agent_id
        newest = await newest_turn(parts.store, agent_id)
        if newest is not None and newest.client_error is not None:
            self.live.terminal = TerminalRecord(newest.request_id, newest.client_error)
        for record in await turns_owing_hooks(parts.store, agent_id):
            self._tasks.spawn(redeliver(parts, record), name="redeliver")
        for record in await unsettled_turns(parts.store, agent_id):
            self.live.accepted(record)
            self._queue.put(Ticket(record))
        self._queue.wake()

    # Questions

    async def find(self, request_id: str) -> TurnRecord | None:
        """The row of a turn."""
        return await find_turn(self.parts.store, self.parts.owner.agent_id, request_id)

    async def transcript(self) -> list[str]:
        """What every client should show, encoded: the active path, then accepted inputs (DESIGN
        §8.1).
        """
        stored = await self.parts.session.get_stored_history()
        known = {message.id for message in stored}
        waiting = [
            json.dumps(message)
            for ticket in self._queue.tickets()
            for message in ticket.record.input
            if message["id"] not in known
        ]
        return [message.text for message in stored] + waiting

    @property
    def busy(self) -> bool:
        """Whether a turn runs or waits."""
        return bool(self._queue.tickets())

    async def wait_until_idle(self) -> None:
        """Until no turn runs and none waits."""
        await self._queue.wait_until_idle()

    def close(self) -> None:
        """Accept nothing more, and free whoever waits: unsettled turns go on at the next start."""
        self._closed = True
        for ticket in self._queue.tickets():
            if not ticket.result.done():
                ticket.result.set_exception(
                    HostClosedError("The app stopped; the turn goes on at its next start.")
                )
                ticket.result.exception()  # seen: nobody may be waiting

    # The slot

    async def _run(self, ticket: Ticket) -> None:
        record = msgspec.structs.replace(
            ticket.record, message_id=ticket.record.message_id or new_id()
        )
        turn = RunningTurn(record, self.parts, ticket.controller.signal)
        began = self.parts.clock.monotonic()
        facts = {
            "request_id": record.request_id,
            "trigger": record.trigger,
            "continuation": record.continuation,
            "generation": record.generation,
        }
        self.parts.bus.emit("chat:turn:start", **facts)
        try:
            outcome = await run_turn(ticket, turn)
        except Exception as error:  # noqa: BLE001 - the queue goes on, and nobody waits for ever
            await self._fail(ticket, record, error)
            return
        self.parts.bus.emit(
            "chat:turn:finish",
            **facts,
            status=outcome.record.status,
            duration_ms=(self.parts.clock.monotonic() - began) * 1000,
            error=outcome.error,
        )
        self._tasks.spawn(self._finish(ticket, outcome), name="notify")

    async def _fail(self, ticket: Ticket, record: TurnRecord, error: Exception) -> None:
        """A defect of ours: the turn has no stored end, so the next start takes it up again."""
        log.critical("a turn broke", exc_info=error, extra={"action": "turn"})
        told = msgspec.structs.replace(record, status="error", error=repr(error))
        await self.live.ended(told, SAFE_ERROR)
        if not ticket.result.done():
            ticket.result.set_exception(error)
            ticket.result.exception()  # seen: nobody may be waiting

    async def _finish(self, ticket: Ticket, outcome: TurnOutcome) -> None:
        """After the slot: hooks, then whoever waits."""
        try:
            await notify(self.parts, outcome)
        finally:
            if not ticket.result.done():
                ticket.result.set_result(result_of(outcome))

    async def _skip(self, ticket: Ticket) -> None:
        """A turn of an older generation ends without running; its requester hears the end."""
        parts = self.parts
        end = TurnEnd(status="skipped", stop_reason="cleared")
        # The clear has ended it already, unless it was accepted while the clear committed.
        await parts.commits.run(
            parts.owner, lambda tx: settle_turn(tx, ticket.record, end, now=parts.clock.now())
        )
        record = msgspec.structs.replace(ticket.record, status="skipped", stop_reason="cleared")
        await self.live.ended(record, None)
        message_id = record.message_id or ""
        outcome = TurnOutcome(
            record=record, message={"id": message_id, "role": "assistant", "parts": []}
        )
        ticket.result.set_result(result_of(outcome))

    # What its own turns tell (TurnOutput)

    def started(self, record: TurnRecord, log: TurnLog) -> None:
        """See `TurnOutput`."""
        self.live.started(record, log)
        ticket = self._queue.find(record.request_id)
        if ticket is not None:
            ticket.log_started(log)

    async def ended(self, record: TurnRecord, error: str | None) -> None:
        """See `TurnOutput`."""
        await self.live.ended(record, error)

    def _cancel_soon(self, ticket: Ticket, reason: str) -> None:
        ticket.controller.abort(reason)
        self._tasks.spawn(self.cancel(ticket.record.request_id, reason), name="cancel")

    async def _find_ended(self, request_id: str) -> EndedStream | None:
        record = await self.find(request_id)
        if record is None or not record.settled:
            return None
        bodies = await read_packed(self.parts.store, record.agent_id, request_id)
        return EndedStream(record, bodies)
