"""What every client should show, encoded: the active path, then accepted inputs (DESIGN §8.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from thinkwell.core import json
from thinkwell.messages.message import visible_text
from thinkwell.session.kept_path import KeptPath, PathEnd
from thinkwell.session.session import Session
from thinkwell.turn.handle import TurnHandle
from thinkwell.turn.run.running import RunningTurn
from thinkwell.wire import encode
from thinkwell.wire.encode import Frame


class Transcript(msgspec.Struct, frozen=True):
    """What a client should show."""

    messages: Sequence[bytes] = ()
    """The messages behind the blocks, as JSON texts."""
    last: str | None = None
    """The id of the last one."""
    blocks: Sequence[bytes] = ()
    """The older messages of a long conversation: JSON texts, each with a comma behind it."""
    version: int = 0
    """The version of the stored path in it."""
    since: Callable[[int], PathEnd | None] = lambda _: None
    """What is new since an older version; None if only the whole will do."""

    def frame(self, *, connect: bool = False) -> Frame:
        """The whole of it."""
        return encode.chat_messages(self.blocks, self.messages, connect=connect)

    def short_frame(self, known: int | None) -> Frame:
        """What somebody lacks who was told the path of an older version."""
        tail = None if known is None else self.since(known)
        return self.frame() if tail is None else encode.chat_tail(tail.after, tail.messages)


NOTHING = Transcript()


async def encoded_transcript(
    session: Session,
    line: Iterable[TurnHandle],
    growing: RunningTurn | None = None,
    *,
    keep: bool = False,
) -> Transcript:
    """The stored messages, the reply that grows if one is given, and what waits in `line`.

    `keep`: somebody watches, so what is encoded now is kept for all.
    """
    kept = session.history.kept or KeptPath(session.history, visible_text)
    if keep:
        session.history.kept = kept  # first: writes during the refresh must reach it
    await kept.refresh()
    if keep:
        session.cache.paths.keep(session.history, kept)
    waiting = _waiting(kept, line, growing)
    behind = [text.encode() for text in waiting.values()]
    newest = kept.newest
    if kept.last in waiting:  # a stored reply goes on growing
        newest = newest[:-1]

    def since(version: int) -> PathEnd | None:
        tail = kept.since(version)
        return None if tail is None else PathEnd(tail.after, [*tail.messages, *behind])

    return Transcript(
        messages=[*newest, *behind],
        last=next(reversed(waiting), kept.last),
        blocks=kept.blocks,
        version=kept.version,
        since=since,
    )


def forget_transcript(session: Session) -> None:
    """Nobody watches any more: an agent that nobody looks at should cost little memory."""
    session.cache.paths.drop(session.history)


def _waiting(
    kept: KeptPath, line: Iterable[TurnHandle], growing: RunningTurn | None
) -> dict[str, str]:
    """What comes behind the path, by id."""
    shown: dict[str, str] = {}
    if growing is not None and growing.reply.fold.message["parts"]:
        shown[growing.message_id] = visible_text(json.dumps(growing.reply.fold.message))
    for handle in line:
        for message in handle.record.input:
            if not kept.holds(message["id"]) and message["id"] not in shown:
                shown[message["id"]] = visible_text(json.dumps(message))
    return shown
