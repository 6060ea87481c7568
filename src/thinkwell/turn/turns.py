"""The turns of one agent: accept them, run them one at a time, tell whoever waits.

Everything that starts a turn comes through `ask`; everything that runs one goes through `_run`.
After a start of the host, `recover` puts unsettled turns back into the same queue: there is no
second path.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from contextvars import copy_context
from typing import Any, TypeAlias

import msgspec

from thinkwell.core import json
from thinkwell.core.errors import (
    AgentDeletedError,
    HostClosedError,
    StoreUnavailableError,
    ThinkwellError,
    TurnChainError,
    TurnNotFoundError,
)
from thinkwell.core.events import MessageCancelled, MessagesCleared
from thinkwell.core.ids import new_id
from thinkwell.core.principal import Principal
from thinkwell.core.signal import AbortSignal, Disposer
from thinkwell.core.tasks import TaskOwner, begin, run_to_the_end, wait_to_the_end
from thinkwell.core.turn_events import ChatTurnFinish, ChatTurnStart
from thinkwell.journal.asked import Work
from thinkwell.journal.crash_points import crash_here
from thinkwell.journal.joined_writes import Together
from thinkwell.journal.tail import Chunks, EndedTurn, TailEvent, Updated, read_tail
from thinkwell.journal.turns import (
    TurnRecord,
    find_turn,
    newest_turn,
    request_cancel,
    turns_owing_hooks,
    unsettled_turns,
)
from thinkwell.messages.chunks import Chunk
from thinkwell.store.base import Transaction
from thinkwell.turn.ask.admission import Admission, TurnRequest, admit, is_inside_turn
from thinkwell.turn.ask.answers import (
    Answer,
    announce_answer,
    apply_answer,
    waits_for_outside,
)
from thinkwell.turn.ask.authority import on_behalf
from thinkwell.turn.ask.checked_answer import check_answer
from thinkwell.turn.ask.clear import erase_traces, next_generation, refuse_if_busy
from thinkwell.turn.ask.policy import Plan, Policy, plan_intake
from thinkwell.turn.ask.run_options import Options
from thinkwell.turn.end.end_turn import (
    SUPERSEDED,
    end_broken,
    end_damaged,
    end_stale,
    end_unrun,
    result_of,
)
from thinkwell.turn.end.ending import TurnOutcome, TurnResult
from thinkwell.turn.end.notify import chain_depth, notify, redeliver
from thinkwell.turn.handle import InputFunction, TurnHandle
from thinkwell.turn.line.line import TurnLine
from thinkwell.turn.parts import Parts
from thinkwell.turn.run.running import RunningTurn, current_turn
from thinkwell.turn.run.turn import run_turn
from thinkwell.turn.transcript import Transcript, encoded_transcript

log = logging.getLogger("thinkwell.agent")


Watch: TypeAlias = Callable[[TailEvent | None], object]
"""Hears the events of every turn of an agent, and None when the conversation or the line has
changed beside them. What it raises is logged.
"""


class Turns:
    """Accepts and runs the turns of one agent."""

    parts: Parts
    """The collaborators, once the agent is wired."""

    def __init__(self, tasks: TaskOwner, generation: int) -> None:
        self.tasks = tasks
        """Runs in the background, as long as the agent is awake."""
        self.line = TurnLine(
            run=self._run,
            stale=self._skip,
            tasks=tasks,
            generation=generation,
            pause=self._pause_before,
        )
        self.owed: list[TurnRecord] = []
        """Turns of an earlier life whose response hooks have not run."""
        self.running: RunningTurn | None = None
        """The turn that holds the slot."""
        self._finishing: dict[str, TurnHandle] = {}
        """Turns that have left the slot and whose end hooks run."""
        self._continuation_origin: str | None = None
        self._kept: tuple[str, Options | None] | None = None
        """The reply that was written last, and what holds for it and whatever goes on with it."""
        self.intake = asyncio.Lock()
        """Held while a submit is judged by the concurrency policy and accepted."""
        self._watchers: dict[object, Watch] = {}
        self._closed, self._deleted, self._forgotten = False, False, 0

    def wire(self, parts: Parts) -> None:
        """Take the collaborators; they refer back to `line`."""
        self.parts, self.line.suspects = parts, parts.suspects

    # Ways in

    async def ask(
        self,
        request: TurnRequest,
        *,
        input_function: InputFunction | None = None,
        options: Options | None = None,
        origin: str | None = None,
        crossed: Callable[[], bool] = bool,
        signal: AbortSignal | None = None,
        awaited: bool = False,
    ) -> tuple[Admission, TurnHandle | None]:
        """Accept a turn and put it in line. No handle if it was known before.

        `crossed` says, once it is accepted, whether its client had not seen the newest transcript;
        `awaited`, that the code that asks goes no further until it has ended.
        """
        if self._closed:
            raise self._ended("The app is stopping and accepts no new turns.")
        depth = chain_depth.get()
        if depth > self.parts.agent.max_turn_chain:
            raise TurnChainError(depth)
        request = on_behalf(request, self.parts.owner.agent_id)

        awaited_in = current_turn.get() if awaited else None

        def make(admission: Admission) -> TurnHandle:
            record = admission.record
            # The functions of `chat` stay with its caller, so only what a row names is looked for.
            kept = None if record.chosen is None else self._kept_for(record)
            return TurnHandle(
                record,
                input_function,
                options=kept if options is None else options,
                depth=depth,
                # One that has started was judged before: now the path ends with its own question.
                crossed=admission.start is None and crossed(),
                start=admission.start,
                awaited_in=awaited_in,
            )

        async def accept() -> tuple[Admission, TurnHandle | None]:
            with self.line.entering():
                admission = await admit(self.parts, request, self.line.generation, crossed=crossed)
                if not admission.accepted:
                    return admission, None
                handle = make(admission)
                await self._enter(handle, request.supersedes, origin, signal)
                return admission, handle

        return await wait_to_the_end(begin(accept(), copy_context()))

    async def _enter(
        self,
        handle: TurnHandle,
        supersedes: Sequence[TurnRecord],
        origin: str | None,
        signal: AbortSignal | None,
    ) -> None:
        """An accepted turn takes its place in the line."""
        if signal is not None:
            stop = signal.add_listener(lambda reason: self._cancel_soon(handle, reason))
            handle.at_end(stop)
        if handle.start is not None:
            self.parts.session.remember(handle.start.written)
        await self._leave_line(supersedes)
        await self._line_up(handle, origin)
        crash_here("c1")

    async def _line_up(self, handle: TurnHandle, origin: str | None) -> None:
        self.line.rows.newest = handle.record
        handle.crossed |= self.busy
        handle.pause(self.parts.clock)
        self._put(handle, origin, crossed=handle.crossed)
        try:
            if not handle.record.continuation:
                await self.parts.audience.show_input(but=origin)
        finally:
            self.line.wake()

    def _put(self, handle: TurnHandle, origin: str | None = None, *, crossed: bool = True) -> None:
        self.parts.audience.accepted(handle, origin, crossed=crossed)  # first: clients hear first
        handle.follow(self._tell_watchers)
        self.line.put(handle)

    async def _leave_line(self, superseded: Sequence[TurnRecord]) -> None:
        """Turns whose place another one took: their requesters hear the end."""
        for record in superseded:
            handle = self.line.find(record.request_id)
            if handle is not None and handle is not self.line.active:
                self.line.remove(handle)
                await end_unrun(self.parts, handle, SUPERSEDED)

    def plan(self, policy: Policy, principal: Principal | None) -> Plan:
        """What to do with a submit of that principal that arrives now."""
        return plan_intake(policy, self._line(), self.parts.clock.now(), principal)

    def _line(self) -> list[TurnHandle]:
        """The running and waiting turns of this generation: a clear makes the others stale."""
        current = self.line.generation
        return [t for t in self.line.handles() if t.record.generation == current]

    async def answer(self, answer: Answer, *, origin: str | None = None) -> bool:
        """Apply a tool result or a decision from outside. False if nothing waited for it."""
        checked = await check_answer(self.parts, self.running, answer)
        if checked is None:
            return False
        with self.line.entering():
            return await run_to_the_end(self._answer(checked, origin))

    async def _answer(self, answer: Answer, origin: str | None) -> bool:
        answered = await apply_answer(self.parts, lambda: self.running, answer)
        if answered.message is None:
            return False
        crash_here("c15")
        active = self.line.active
        message_id = answered.message["id"]
        if active and active.ended is None and active.record.message_id == message_id:
            active.tell(Updated(answered.message))
        else:
            self.parts.audience.updated(answered.message)
            self.changed()
        if answered.asked is not None:
            return False
        await announce_answer(self.parts, answered.applied or answer, answered)
        if answered.continuation is not None:
            await self._line_up(self._following(answered.continuation), origin)
        elif self.running is not None and answer.auto_continue:
            self._continuation_origin = origin
        return answered.counted

    async def wait(self, handle: TurnHandle) -> TurnResult:
        """Wait for the result. Cancelling the task that waits stops the turn."""
        try:
            return await handle.wait()
        except asyncio.CancelledError:
            self._cancel_soon(handle, "the caller was cancelled")
            raise

    async def until_over(self, request_id: str) -> TurnRecord:
        """The row of a turn once it is over, the hooks of its end included. Leaving stops nothing.

        Raises `TurnNotFoundError`, and `HostClosedError` if the app stops first.
        """
        handle = self.line.find(request_id) or self._finishing.get(request_id)
        if handle is not None:
            await handle.until_over()
            if handle.ended is None:
                handle.result()  # raises what keeps it from its end
        record = await self.find(request_id)
        if record is None:
            raise TurnNotFoundError(request_id)
        return record

    async def chunks(self, handle: TurnHandle) -> AsyncGenerator[Chunk]:
        """The chunks of a turn as they become durable. Leaving the iteration stops the turn."""
        try:
            async with aclosing(handle.tail()) as events:
                async for event in events:
                    for body in event.bodies if isinstance(event, Chunks) else ():
                        yield json.loads(body)
            await handle.until_over()
        finally:
            if not handle.over:
                await self.cancel(handle.record.request_id, "the reader left the stream")

    async def tail(
        self, request_id: str, start: int = 0, *, silence: float | None = None
    ) -> AsyncGenerator[TailEvent]:
        """Everything there is to hear of a turn, from its chunk `start` on, up to its end.

        From memory while it waits or runs, from its packed journal afterwards. After `silence`
        seconds in which nothing happened there is one `Chunks` without any. Raises
        `TurnNotFoundError`, and `ValueError` for a negative `start`.
        """
        if start < 0:
            raise ValueError(f"tail: start must not be negative, not {start}")
        handle, record = self.line.find(request_id), None
        if handle is None:
            record = await self.find(request_id)
            handle = self.line.find(request_id)  # it may have come meanwhile
        if handle is not None:
            async with aclosing(handle.tail(start, silence=silence)) as events:
                async for event in events:
                    yield event
        elif record is None or not record.settled:
            raise TurnNotFoundError(request_id)
        else:
            for event in await read_tail(self.parts.store, record, start):
                yield event

    def watch(self, watch: Watch) -> Disposer:
        """Hear of all turns and of changes beside them. Returns an idempotent disposer."""
        token = object()
        self._watchers[token] = watch
        return lambda: self._watchers.pop(token, None) and None

    def changed(self) -> None:
        """Messages, or what waits, have changed beside the turns."""
        self._tell_watchers(None)

    def _tell_watchers(self, event: TailEvent | None) -> None:
        if self._watchers:
            for watch in tuple(self._watchers.values()):
                try:
                    watch(event)
                except BaseException:  # one's bug must not keep the others from hearing
                    log.exception("a watcher of turns failed", extra={"action": "watch"})

    async def cancel(self, request_id: str, reason: str) -> bool:
        """Stop a turn: recorded first, so that a crash does not revive it."""
        return await run_to_the_end(self._cancel(request_id, reason))

    async def _cancel(self, request_id: str, reason: str) -> bool:
        handle, owner = self.line.find(request_id), self.parts.owner
        try:
            if handle is None and await self.find(request_id) is None:
                return False  # there is nothing to write down, and maybe no agent yet
            stopped = await self.parts.commits.run(
                owner, lambda tx: request_cancel(tx, owner.agent_id, request_id, reason)
            )
        except StoreUnavailableError:  # it stops all the same, and its end is stored when it can be
            stopped = handle is not None
        crash_here("c16")
        if stopped:
            self.parts.bus.emit(
                MessageCancelled, agent=owner.agent_id, request_id=request_id, reason=reason
            )
        if handle is not None:
            self._abort(handle, reason)
        return stopped

    def abort(self, request_id: str, reason: str) -> None:
        """Stop a turn of which it is stored already that it must."""
        handle = self.line.find(request_id)
        if handle is not None:
            self._abort(handle, reason)

    def pause(self, reason: str) -> None:
        """An operator wants no turn to begin: clients are told."""
        self.line.held_by.add("paused")
        self.parts.audience.paused(reason)

    def resume(self) -> None:
        """The operator lets turns begin again; whatever else holds them still does."""
        self.line.held_by.discard("paused")
        self.parts.audience.paused(None)
        self.line.wake()

    def _abort(self, handle: TurnHandle, reason: str) -> None:
        handle.controller.abort(reason)
        self.line.wake()  # it may be waiting for its time

    async def cancel_running(self, reason: str) -> bool:
        """Stop the turn that runs now, if any."""
        active = self.line.active
        return active is not None and await self.cancel(active.record.request_id, reason)

    async def clear(self, *, but: str | None = None, idle_for: str | None = None) -> None:
        """Forget the conversation (spec/01 §8.3).

        `idle_for` names a call that must not stop anything: while a turn runs or waits, it raises
        `TurnActiveError`.
        """
        await self.reset(forget=True, idle_for=idle_for)
        self.parts.audience.cleared(but)
        self.parts.bus.emit(MessagesCleared, agent=self.parts.owner.agent_id)
        self.changed()

    async def change_idle(self, change: Work[None], call: str) -> None:
        """Change the message tree, if nothing runs or waits; then every client shows it anew.

        That is looked up in the transaction itself: a turn that is accepted meanwhile comes before
        it, and `TurnActiveError` names `call`, or after it.
        """
        parts = self.parts

        async def write(tx: Transaction) -> None:
            await refuse_if_busy(tx, parts, call)
            await change(tx)

        await parts.commits.run(parts.owner, write)
        await parts.audience.send_transcript()
        self.changed()

    async def reset(self, *, forget: bool = False, idle_for: str | None = None) -> None:
        """A new generation: what runs stops, what waits is skipped (spec/02 §3.5)."""
        more: Together | None = None
        if idle_for is not None:  # now, so that no feature hears of a clear that is not to be
            await refuse_if_busy(self.parts.store, self.parts, idle_for)
        if forget:  # the features' code runs before the transaction, never inside it (DESIGN §8.9)
            parts = self.parts
            more = await parts.offers.forget(parts.owner.agent_id, parts.limits.hook)
        stale = await run_to_the_end(self._next_generation(more, idle_for))
        # Ends go out before a clear: after it, a client would show an empty reply. Inside a turn
        # nobody can wait for them: they come when this turn has left its slot.
        if stale and not is_inside_turn(self.parts.owner.agent_id):
            await asyncio.gather(*(handle.until_over() for handle in stale))

    async def _next_generation(
        self, forget: Together | None, idle_for: str | None
    ) -> list[TurnHandle]:
        """Stores the new generation and stops what is of an older one."""
        running = None if self.running is None else self.running.log
        with self.line.entering():
            generation = await next_generation(
                self.parts, running, forget=forget, idle_for=idle_for
            )
            self.line.generation = max(self.line.generation, generation)
        stale = [t for t in self.line.handles() if t.record.generation < generation]
        for handle in stale:
            self._abort(handle, "cleared")
        if forget is not None:
            forget.committed()
            self._forgotten = generation
            await erase_traces(self.parts)
        return stale

    async def recover(self) -> list[str]:
        """After a start: unsettled turns go back in line, those that owe hooks are remembered.

        The ids of those that could not be read, and have ended for that.
        """
        parts, agent_id = self.parts, self.parts.owner.agent_id
        damaged = await end_damaged(parts)
        newest = await newest_turn(parts.store, agent_id)
        if newest is not None and newest.client_error is not None:
            parts.audience.remember_failure(newest.request_id, newest.client_error)
        if newest is not None and newest.settled and newest.attempt > 1:
            # Whoever lost its line while the turn was taken up again still shows that.
            parts.audience.recovered(newest.request_id)
        # Before any turn runs here: later ones owe theirs only until they have run.
        self.owed = await turns_owing_hooks(parts.store, agent_id)
        for record in await unsettled_turns(parts.store, agent_id):
            if record.attempt > 0:
                self.parts.audience.recovering(record.request_id)
            handle = TurnHandle(record)
            handle.take_over = parts.take_over.ticket()
            self._put(handle)
        self.line.wake()
        return damaged

    async def deliver_owed(self) -> None:
        """Run the hooks that turns of an earlier life owe, in the order of the turns."""
        while self.owed:
            await redeliver(self.parts, self.owed.pop(0))

    # Questions

    async def find(self, request_id: str) -> TurnRecord | None:
        """The row of a turn."""
        return await find_turn(self.parts.store, self.parts.owner.agent_id, request_id)

    async def transcript(self, *, growing: bool = False, keep: bool = False) -> Transcript:
        """What every client should show. With `growing`, the reply that streams now too."""
        now = self.running if growing else None
        return await encoded_transcript(self.parts.session, self._line(), now, keep=keep)

    async def has_pending_interaction(self) -> bool:
        """Whether a call waits for a client or a person."""
        return await waits_for_outside(self.parts, self.running)

    def handles(self) -> list[TurnHandle]:
        """The turn that runs and those that wait, in order."""
        return self.line.handles()

    @property
    def busy(self) -> bool:
        """Whether a turn runs or waits."""
        return bool(self.line.handles())

    async def wait_until_idle(self) -> None:
        """Until no turn runs and none waits."""
        await self.line.wait_until_idle()

    def close(self, *, deleted: bool = False) -> None:
        """Accept nothing more, and free whoever waits.

        Unsettled turns go on at the next start, unless the agent is deleted.
        """
        self._closed, self._deleted = True, self._deleted or deleted
        for handle in self.line.handles():
            handle.release(self._ended("The app stopped; the turn goes on at its next start."))

    def _ended(self, stopping: str) -> ThinkwellError:
        """Why nothing is accepted or told any more."""
        if self._deleted:
            return AgentDeletedError(self.parts.owner.agent_id)
        return HostClosedError(stopping)

    # The slot

    async def _run(self, handle: TurnHandle) -> None:
        message_id = handle.record.message_id or new_id()
        record = handle.record = msgspec.structs.replace(handle.record, message_id=message_id)
        self.running = turn = RunningTurn(handle, self.parts)
        self._kept = message_id, handle.options
        began = self.parts.clock.monotonic()
        facts: dict[str, Any] = {
            **turn.event_fields(),
            "trigger": record.trigger,
            "continuation": record.continuation,
            "generation": record.generation,
        }
        self.parts.bus.emit(ChatTurnStart, **facts)
        try:
            with self.parts.crowd.one_runs():
                outcome = await run_turn(turn)
        except Exception as error:  # noqa: BLE001 - the queue goes on, and nobody waits for ever
            await end_broken(self.parts, handle, error)
            return
        finally:
            self.running = None
        self.parts.bus.emit(
            ChatTurnFinish,
            **facts,
            status=outcome.record.status,
            duration_ms=(self.parts.clock.monotonic() - began) * 1000,
            error=outcome.error,
        )
        if outcome.continuation is not None:
            origin, self._continuation_origin = self._continuation_origin, None
            await self._line_up(self._following(outcome.continuation), origin)
        self.changed()  # now: whoever waited for this turn to leave finds what goes on with it
        if outcome.record.hooks_owed or outcome.cleared:
            self._finishing[record.request_id] = handle
            self.tasks.spawn(self._finish(handle, outcome), name="notify")
        else:  # whoever waits goes on in the next iteration of the loop: the slot is free by then
            handle.finish(result_of(outcome), outcome)

    def _following(self, continuation: TurnRecord) -> TurnHandle:
        """The handle of a turn that goes on with a reply, with what holds for that."""
        return TurnHandle(continuation, options=self._kept_for(continuation))

    def _kept_for(self, record: TurnRecord) -> Options | None:
        """What holds for the reply that a turn goes on with, if that is known here."""
        kept = self._kept
        return kept[1] if kept is not None and kept[0] == record.message_id else None

    async def _finish(self, handle: TurnHandle, outcome: TurnOutcome) -> None:
        """After the slot: hooks, then whoever waits."""
        try:
            await notify(self.parts, outcome, depth=handle.depth)
        finally:
            self._finishing.pop(handle.record.request_id, None)
            handle.finish(result_of(outcome), outcome)

    async def _skip(self, handle: TurnHandle) -> None:
        await end_stale(self.parts, handle, erase=handle.record.generation < self._forgotten)

    def _pause_before(self, handle: TurnHandle) -> float:
        """How long a debounced turn must still wait; one that was stopped waits for nothing."""
        record = handle.record
        over = handle.controller.signal.aborted or record.generation != self.line.generation
        return 0.0 if over else handle.pause(self.parts.clock)

    def _cancel_soon(self, handle: TurnHandle, reason: str) -> None:
        self._abort(handle, reason)
        self.tasks.spawn(self.cancel(handle.record.request_id, reason), name="cancel")

    async def find_ended(self, request_id: str) -> EndedTurn | None:
        """The tail of a turn that has ended."""
        record = await self.find(request_id)
        if record is None or not record.settled:
            return None
        return await read_tail(self.parts.store, record)
