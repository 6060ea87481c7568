"""Which turns run one after another, because one of them may be what kills the process.

After two deaths soon after a start, the turns that had begun in both lives are the suspects. While
the new life is young, they run one at a time over all agents; so an innocent one ends, or makes
progress, before the guilty one takes it down again. Once the process has lasted, all run as usual:
no turn waits for ever, whatever the suspects wait for among themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager

from thinkwell.journal.turns import TurnRecord

TurnKey = tuple[str, str]
"""Agent and request id."""


class Suspects:
    """The suspects of one life of the process."""

    def __init__(
        self,
        keys: Collection[TurnKey] = (),
        *,
        until: float = 0.0,
        monotonic: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.keys = frozenset(keys)
        self._until = until
        self._monotonic = monotonic
        self._running: TurnKey | None = None
        self._waiting: dict[Callable[[], None], None] = {}

    def pause_before(self, record: TurnRecord, wake: Callable[[], None]) -> float:
        """Seconds a turn has to wait at most; `wake` is called when it may be sooner."""
        if self._running is None or _key(record) not in self.keys:
            return 0.0
        rest = self._until - self._monotonic()
        if rest > 0:
            self._waiting[wake] = None
        return rest

    @contextmanager
    def running(self, record: TurnRecord) -> Generator[None]:
        """Around a turn: the next suspect comes after it."""
        if not self.keys or _key(record) not in self.keys:
            yield
            return
        self._running = _key(record)
        try:
            yield
        finally:
            if self._running == _key(record):
                self._running = None
            waiting, self._waiting = self._waiting, {}
            for wake in waiting:
                wake()


def _key(record: TurnRecord) -> TurnKey:
    return record.agent_id, record.request_id
