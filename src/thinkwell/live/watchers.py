"""The connections of one agent, and sending to some of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from thinkwell.live.streams import Recovery
from thinkwell.turn.transcript import NOTHING, Transcript
from thinkwell.wire.encode import Frame


class Sink(Protocol):
    """The way to one client. Contract: never blocks, never raises; called on the host's loop."""

    def send(self, frames: Sequence[Frame], *, apart: bool = False) -> None:
        """Take frames, in order.

        `apart`: they may leave only when the client has dealt with everything before them.
        """
        ...

    def close(self, code: int, reason: str) -> None:
        """Close the connection once the frames before have gone out."""
        ...


REMEMBERED = 64
"""How many connections that left are known when they come back."""


class Watcher:
    """One connection."""

    __slots__ = (
        "awaits",
        "brief",
        "gone",
        "id",
        "known_version",
        "offered",
        "parked",
        "protocol",
        "recovery",
        "returned",
        "shown",
        "sink",
        "uninformed",
    )

    def __init__(self, connection_id: str, sink: Sink) -> None:
        self.id = connection_id
        self.sink = sink
        self.protocol = True
        """Whether it wants identity, state and the like; chat it gets in any case."""
        self.brief = False
        """It declared that it takes what changed instead of whole transcripts."""
        self.known_version: int | None = None
        """The version of the stored path it knows; None if it was never told one."""
        self.shown: Transcript | None = None
        """The transcript it was told to show last; none before its first, in a new page."""
        self.returned = False
        """It was here before: whoever uses it may write before it has read its transcript."""
        self.uninformed = False
        """It was offered a stream instead of the transcript when it connected."""
        self.gone = False
        """The socket is closed."""
        self.offered: str | None = None
        """A running stream it was offered and has not taken: until then it gets no chunks."""
        self.parked = False
        """It waits for an accepted turn to begin streaming."""
        self.awaits: str | None = None
        """A continuation it asked for: it is offered that stream, whatever streams before."""
        self.recovery: Recovery | None = None
        """What it was told about a turn that was cut."""

    def send(self, *frames: Frame) -> None:
        """Send frames to this connection alone."""
        self.sink.send(frames)

    def show(self, transcript: Transcript, *, connect: bool = False, apart: bool = False) -> None:
        """Have it show a transcript; `connect`: as a part of its connect sequence."""
        brief = self.brief and not connect
        frame = (
            transcript.short_frame(self.known_version)
            if brief
            else transcript.frame(connect=connect)
        )
        self.knows(transcript)
        if connect:
            self.shown = NOTHING if self.returned else None
        self.sink.send((frame,), apart=apart)

    def tell(self, recovery: Recovery | None) -> None:
        """Tell how it stands with a turn that was cut.

        That it is over is told once. Clients forget the rest when they join a stream, so it is told
        again whenever they have.
        """
        if recovery is not None and (recovery.pending or recovery != self.recovery):
            self.recovery = recovery
            self.send(recovery.frame())

    def knows(self, transcript: Transcript) -> None:
        """It shows a transcript once it has read what it was sent."""
        self.shown, self.known_version = transcript, transcript.version


class Watchers:
    """All connections of one agent.

    A new one with a known id replaces the old one (spec/01 §1.3.1).
    """

    def __init__(self) -> None:
        self._by_id: dict[str, Watcher] = {}
        self._left: dict[str, None] = {}
        self.emptied: Callable[[], None] = lambda: None
        """Called when nobody is left."""

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Watcher]:
        return iter(tuple(self._by_id.values()))

    def add(self, watcher: Watcher) -> None:
        """From now on it gets what is sent to all."""
        self._by_id[watcher.id] = watcher

    def knew(self, connection_id: str) -> bool:
        """Whether a connection of that id is here or was here before."""
        return connection_id in self._left or connection_id in self._by_id

    def remove(self, watcher: Watcher) -> None:
        """It is gone. One that was replaced is gone already."""
        if self._by_id.get(watcher.id) is watcher:
            del self._by_id[watcher.id]
            self._left[watcher.id] = self._left.pop(watcher.id, None)
            if len(self._left) > REMEMBERED:
                del self._left[next(iter(self._left))]
        if not self._by_id:
            self.emptied()

    def get(self, connection_id: str | None) -> Watcher | None:
        """The connection with that id."""
        return None if connection_id is None else self._by_id.get(connection_id)

    def show(
        self, transcript: Transcript, *, where: Callable[[Watcher], bool], apart: bool = False
    ) -> None:
        """Have those `where` picks show a transcript."""
        frames: dict[int | None, Frame] = {}  # encoded once for all who know the same
        for watcher in self:
            if where(watcher):
                known = watcher.known_version if watcher.brief else None
                if known not in frames:
                    frames[known] = transcript.short_frame(known)
                watcher.knows(transcript)
                watcher.sink.send((frames[known],), apart=apart)

    def send(
        self,
        *frames: Frame,
        but: str | None = None,
        where: Callable[[Watcher], bool] | None = None,
        apart: bool = False,
    ) -> None:
        """Send to all, or to those `where` picks; `but` is left out."""
        for watcher in self:
            if watcher.id != but and (where is None or where(watcher)):
                watcher.sink.send(frames, apart=apart)
