"""What the watchers of one agent see: the stream, its end, the transcript (spec/01 §2.4, §6, §10).

`Live` follows every turn from its acceptance: the frames of a stream are a reading of its tail,
which is told after the commit of what it tells. So the order of frames is the order of commits. A
connection that was offered a stream gets its chunks only after it took the offer; replay and switch
to live happen without an await, so there is no gap and no double within one reading. Every offer
that is taken begins a new reading from the start.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Coroutine, Set
from typing import Any, Protocol

from thinkwell.core import json
from thinkwell.core.errors import StoreError, StoreUnavailableError
from thinkwell.journal.tail import Chunks, Ended, EndedTurn, Started, TailEvent, Updated
from thinkwell.journal.turns import TurnRecord
from thinkwell.live.streams import Recovery, TerminalRecord, end_frame, news, replay
from thinkwell.live.watchers import Watcher, Watchers
from thinkwell.messages.message import UIMessage, visible_message, visible_text
from thinkwell.turn.handle import TurnHandle
from thinkwell.turn.transcript import NOTHING, Transcript
from thinkwell.wire import encode

log = logging.getLogger("thinkwell.live")

FindEnded = Callable[[str], "Awaitable[EndedTurn | None]"]


class ReadTranscript(Protocol):
    """Reads what every client should show now: the active path, then accepted inputs."""

    def __call__(self, *, keep: bool = False) -> Awaitable[Transcript]:
        """`keep`: it will be asked for again, as long as somebody watches."""
        ...


class Live:
    """The watchers of one agent and what they are told."""

    def __init__(
        self, watchers: Watchers, transcript: ReadTranscript, find_ended: FindEnded
    ) -> None:
        self.watchers = watchers
        self.terminal: TerminalRecord | None = None
        self._transcript = transcript
        self._find_ended = find_ended
        self._stream: TurnHandle | None = None
        self._accepted: dict[str, str | None] = {}
        self._askers: dict[str, Watcher] = {}
        self._continuations: set[str] = set()
        self._plain: str | None = None
        self._recovery: Recovery | None = None
        self._paused: str | None = None
        self._model_waits: tuple[str, str] | None = None
        self.unreadable: Callable[[StoreError], None] = _log_unreadable
        """Told that the transcript could not be read for whoever connects."""
        self._changes = 0

    # Turns tell

    def accepted(
        self, handle: TurnHandle, origin: str | None = None, *, crossed: bool = True
    ) -> None:
        """A turn is durable and waits; `origin` is the connection that asked for it.

        `crossed`: that connection may show another list than the stored one.
        """
        record = handle.record
        self._changes += 1
        alone = not crossed and not self._accepted
        self._plain = record.request_id if alone and _is_plain(record) else None
        self._accepted[record.request_id] = origin
        self.terminal = None
        asker = self.watchers.get(origin)
        if asker is not None:
            self._askers[record.request_id] = asker
        if record.continuation and asker is not None:
            asker.awaits = record.request_id  # then offer and acknowledgement (spec/01 §11.7)
            self._continuations.add(record.request_id)
        self._follow(handle)

    def _follow(self, handle: TurnHandle) -> None:
        record = handle.record
        frame = encode.chunk_frame_maker(record.request_id, continuation=record.continuation)

        def read(event: TailEvent) -> Coroutine[Any, Any, None] | None:
            match event:
                case Chunks(first=first, bodies=bodies):
                    if bodies:
                        self._tell_chunks(record.request_id, first)
                        if len(self.watchers):
                            frames = [frame(body, first + i) for i, body in enumerate(bodies)]
                            self.watchers.send(*frames, where=_takes_chunks)
                case Started(written=written):
                    self._started(handle, written)
                case Updated(message=message):
                    self.updated(message)
                case Ended():
                    return None if event.failure is not None else self._ended(event)
            return None

        handle.follow(read)

    def _started(self, handle: TurnHandle, written: int) -> None:
        """A turn streams from now on: parked connections are offered it, the others just get it."""
        self._stream = handle
        if written:  # after a crash everybody has something to catch up with
            for watcher in self.watchers:
                self._offer(watcher, handle.record.request_id)

    def _tell_chunks(self, request_id: str, first: int) -> None:
        if self._recovery is not None and self._recovery.pending:
            self.recovered(self._recovery.request_id)
        if first == 0:  # now there is something to join; what follows is for the others
            self._offer_to_waiting(request_id)

    def _offer_to_waiting(self, request_id: str) -> None:
        asker = self._askers.get(request_id)
        for watcher in self.watchers:
            parked = watcher.parked and watcher is not asker  # whoever asks needs no offer (§10.7)
            if parked or watcher.awaits == request_id:
                self._offer(watcher, request_id)

    def recovering(self, request_id: str) -> None:
        """A turn was cut and is taken up again: said once, until it streams or ends (§12.1)."""
        self._plain = None
        self._tell_recovery(Recovery(request_id, pending=True))

    def recovered(self, request_id: str) -> None:
        """It goes on, or is over. Whoever was told the opposite and is away now hears it later."""
        self._tell_recovery(Recovery(request_id, pending=False))

    def _tell_recovery(self, recovery: Recovery) -> None:
        if self._recovery != recovery:
            self._recovery = recovery
            for watcher in filter(_takes_chunks, self.watchers):
                watcher.tell(recovery)

    async def _ended(self, event: Ended) -> None:
        """A turn has ended: what is stored now to all, then the end to those who saw the stream."""
        record, error = event.record, event.error
        self._changes += 1
        stream = self._take_stream(record.request_id)
        origin = self._accepted.pop(record.request_id, None)
        asker = self._askers.pop(record.request_id, None)
        self._continuations.discard(record.request_id)
        self.terminal = TerminalRecord(record.request_id, error) if error is not None else None
        if self._recovery == Recovery(record.request_id, pending=True):
            self.recovered(record.request_id)
        if not len(self.watchers):
            return
        audience = frozenset(self.watchers)  # whoever connects from here on has seen no stream
        if record.status != "skipped" and record.stop_reason != "cleared":
            await self._show_result(record, event.reply, asker)
        saw = audience if stream is not None and stream.written else frozenset[Watcher]()
        self._send_end(record, error, origin, saw)
        self._release(ended=record.request_id)

    def _take_stream(self, request_id: str) -> TurnHandle | None:
        """The stream of a turn that has ended; another one goes on."""
        stream = self._stream
        if stream is None or stream.record.request_id != request_id:
            return None
        self._stream = None
        return stream

    # Clients ask

    async def connect(self, watcher: Watcher) -> None:
        """The chat part of the connect sequence; from then on the connection is told everything."""
        watcher.returned = self.watchers.knew(watcher.id)
        try:
            messages = await self._newest_transcript(keep=True)
        except StoreUnavailableError:
            raise
        except StoreError as error:  # what is damaged is not the client's fault: it can still ask
            self.unreadable(error)
            messages = NOTHING
        stream = self._flowing()
        if stream is not None:
            watcher.uninformed = True
            self._offer(watcher, stream.record.request_id)
        else:
            pending = self._pending_for(watcher)
            if pending is not None:
                watcher.parked = True
                watcher.send(encode.stream_pending(pending))
            watcher.show(messages, connect=True)
            watcher.tell(self._recovery)
        if self._paused is not None:
            watcher.send(encode.agent_paused(self._paused))
        if self._model_waits is not None:
            watcher.send(encode.model_waiting(*self._model_waits))
        self.watchers.add(watcher)

    def resume_request(self, watcher: Watcher, probe_id: str | None) -> None:
        """Answer "is there a stream to join?" with exactly one frame (spec/01 §10.2)."""
        pending, stream = self._pending_for(watcher), self._flowing()
        if stream is not None:
            request_id = stream.record.request_id
            if self._belongs_to_another(request_id, watcher):
                watcher.send(encode.stream_resume_none("continuation-owned", probe_id))
                return
            watcher.offered = request_id
            watcher.send(encode.stream_resuming(request_id, probe_id))
        elif watcher.awaits is not None:
            watcher.send(encode.stream_pending(watcher.awaits, probe_id))
        elif self.terminal is not None:
            watcher.send(encode.stream_resuming(self.terminal.request_id, probe_id))
        elif pending is not None:
            watcher.parked = True
            watcher.send(encode.stream_pending(pending, probe_id))
        else:
            watcher.send(encode.stream_resume_none("idle", probe_id))

    async def resume(self, watcher: Watcher, request_id: str) -> None:
        """Replay a stream to one connection from its start (spec/01 §10.4)."""
        stream = self._stream
        if stream is not None and stream.record.request_id == request_id:
            await self._inform(watcher)
            if self._stream is stream:
                self._replay_live(watcher, stream)
                return
        ended = await self._find_ended(request_id)
        if ended is None:
            if self._flowing() is None:
                watcher.send(encode.replay_done(request_id))
            return
        (_, said, last), record = ended, ended[2].record
        end = end_frame(record, last.error, replay=True)
        messages = await self._newest_transcript()
        if record.continuation and last.error is None:
            # The transcript at its end held it already: a replay would show its words twice. Older
            # clients make an empty message of a bare end; the transcript takes it away again.
            watcher.send(end)
            watcher.show(messages)
        else:
            bodies = news(said.bodies) if record.continuation else dict(enumerate(said.bodies))
            watcher.send(*replay(record, bodies), end)
            if messages.last != record.message_id:
                watcher.show(messages)  # it has kept this reply at its end, and put others behind
        self._offer_again(watcher)

    async def tell_again(self, watcher: Watcher, record: TurnRecord) -> None:
        """A client sent a request twice: offer it the stream, or tell it the end."""
        if record.settled:
            await self.resume(watcher, record.request_id)
        else:
            self.resume_request(watcher, None)

    async def send_transcript(self) -> None:
        """Something has changed beside the turns: show everybody the transcript."""
        self._plain = None
        await self.show_input()

    async def show_input(self, but: str | None = None) -> None:
        """Show everybody the transcript, except the connection that knows it."""
        self._changes += 1
        if any(watcher.id != but for watcher in self.watchers):
            transcript = await self._newest_transcript()
            self.watchers.show(transcript, where=lambda watcher: watcher.id != but)

    async def show_asker(self, request_id: str) -> None:
        """Show the transcript to the connection that asked for a turn.

        Clients put a reply behind the last message they show; that may be a later question.
        """
        asker = self._askers.get(request_id)
        if asker is not None:
            asker.show(await self._newest_transcript())

    def remember_failure(self, request_id: str, error: str) -> None:
        """The last turn before this start failed: whoever connects is told."""
        self.terminal = TerminalRecord(request_id, error)

    def paused(self, reason: str | None) -> None:
        """An operator has paused the agent, and why; None: it goes on. Whoever asks must see why
        nothing comes.
        """
        if reason != self._paused:
            self._paused = reason
            self.watchers.send(encode.agent_paused(reason))

    def model_waiting(self, request_id: str, model: str | None) -> None:
        """A turn waits for a free slot of its model, or does no longer. Whoever asked must see why
        nothing comes.
        """
        if model is not None or self._model_waits is not None:
            self._model_waits = None if model is None else (request_id, model)
            self.watchers.send(encode.model_waiting(request_id, model))

    def cleared(self, but: str | None) -> None:
        """The conversation is gone: whoever waits is released, the others empty their list.

        Whoever cleared has emptied its own, but chunks and transcripts may have crossed that. Words
        that a client has yet to read would come back after the clear.
        """
        self._changes += 1
        self._plain = None
        asker = self.watchers.get(but)
        if asker is not None:
            asker.show(NOTHING, apart=True)
        self.terminal = None
        self._release()
        for watcher in self.watchers:
            watcher.shown = NOTHING  # a question may be under way that this crosses
        self.watchers.send(encode.chat_clear(), but=but, apart=True)

    def _offer(self, watcher: Watcher, request_id: str) -> None:
        watcher.parked = False
        watcher.awaits = None if watcher.awaits == request_id else watcher.awaits
        watcher.offered = request_id
        watcher.send(encode.stream_resuming(request_id))

    def _offer_again(self, watcher: Watcher) -> None:
        """Clients observe one stream at a time: one that is replayed takes the place of the other.

        What came after would become a message of its own, so they join that stream anew.
        """
        stream = self._flowing()
        if stream is not None and watcher.offered is None:
            request_id = stream.record.request_id
            if self._askers.get(request_id) is not watcher:  # its own stream it reads beside
                self._offer(watcher, request_id)

    def _replay_live(self, watcher: Watcher, stream: TurnHandle) -> None:
        record, bodies = stream.record, stream.chunks()
        asked = self._askers.get(record.request_id) is watcher
        told = dict(enumerate(bodies)) if asked or not record.continuation else news(bodies)
        frames = replay(record, told)
        watcher.offered = None
        watcher.send(
            *frames, encode.replay_complete(record.request_id, continuation=record.continuation)
        )
        watcher.tell(self._recovery)  # it may have changed since the offer

    async def _show_result(
        self, record: TurnRecord, reply: str | None, asker: Watcher | None
    ) -> None:
        """What is stored now to all; if it cannot be read, clients still hear the end.

        Of a plain turn everybody who has followed it needs its reply only (DESIGN §8.19).
        """
        try:
            transcript = await self._newest_transcript()
        except StoreError:
            log.exception("the transcript could not be read", extra={"action": "ended"})
            return
        plain = self._plain == record.request_id and record.status == "completed"
        followed = {w for w in self.watchers if plain and (w is asker or _follows(w))}
        for watcher in followed:
            watcher.knows(transcript)
        if followed and reply is not None:
            frame = encode.message_updated(visible_text(reply))
            self.watchers.send(frame, where=followed.__contains__)
        # The words of a continuation belong to a message that stock clients know by another id
        # while they stream: until they have read them, they would show them twice.
        self.watchers.show(
            transcript, where=lambda watcher: watcher not in followed, apart=record.continuation
        )

    def _send_end(
        self, record: TurnRecord, error: str | None, origin: str | None, saw: Set[Watcher]
    ) -> None:
        frame = end_frame(record, error)
        # The end of a stream it never saw makes a client show an empty message (spec/01 §6.14); an
        # error is safe for everybody, but makes stock clients drop words they have yet to read.
        failed = error is not None

        def hears(watcher: Watcher) -> bool:
            if watcher.id == origin:  # whoever asked, also while it is offered another stream
                return watcher.offered != record.request_id
            return _takes_chunks(watcher) and (failed or watcher in saw)

        self.watchers.send(frame, where=hears, apart=failed)

    def _flowing(self) -> TurnHandle | None:
        """The stream there is to join: a turn may take its time before its first chunk."""
        return self._stream if self._stream is not None and self._stream.written else None

    def _release(self, *, ended: str | None = None) -> None:
        """Nothing comes any more for whoever waited for the turn `ended` (None: for anything)."""
        for watcher in self.watchers:
            if ended is not None and watcher.offered == ended:
                watcher.offered = None
                watcher.tell(self._recovery)
            in_vain = watcher.awaits is not None and ended in (None, watcher.awaits)
            if in_vain or (watcher.parked and not self._accepted):
                watcher.parked = False
                watcher.awaits = None
                watcher.send(encode.stream_resume_none())

    def _pending_for(self, watcher: Watcher) -> str | None:
        """The newest accepted turn that this connection may wait for."""
        waiting = reversed(self._accepted)
        mine = (turn for turn in waiting if not self._belongs_to_another(turn, watcher))
        return next(mine, None)

    def _belongs_to_another(self, request_id: str, watcher: Watcher) -> bool:
        """A continuation belongs to the connection that asked for it, as long as that is open."""
        if request_id not in self._continuations:
            return False
        owner = self._accepted.get(request_id)
        return owner != watcher.id and self.watchers.get(owner) is not None

    async def _newest_transcript(self, *, keep: bool = False) -> Transcript:
        """Read again if something changed meanwhile: whoever gets it may not have been told."""
        while True:
            seen = self._changes
            messages = await self._transcript(keep=keep)
            if seen == self._changes:
                return messages

    async def _inform(self, watcher: Watcher) -> None:
        """A client that joins a stream may have missed messages before it: first the transcript.

        Otherwise it puts the reply behind the last message it knows, for good.
        """
        if watcher.uninformed:
            watcher.uninformed = False
            watcher.show(await self._newest_transcript(), connect=True)

    def updated(self, message: UIMessage) -> None:
        """A stored message has changed: everybody shows it anew."""
        self._changes += 1
        if len(self.watchers):
            self.watchers.send(encode.message_updated(json.dumps(visible_message(message))))


def _log_unreadable(error: StoreError) -> None:
    log.error("the transcript could not be read", exc_info=error, extra={"action": "connect"})


def _is_plain(record: TurnRecord) -> bool:
    """Whether it adds a question and its reply at the end, in that order, and nothing else."""
    below_the_head = record.branch_from is None and not record.continuation
    return below_the_head and bool(record.input) and record.attempt == 0


def _follows(watcher: Watcher) -> bool:
    """Whether it shows the question and has seen the whole stream."""
    return watcher.offered is None and not watcher.uninformed


def _takes_chunks(watcher: Watcher) -> bool:
    return watcher.offered is None
