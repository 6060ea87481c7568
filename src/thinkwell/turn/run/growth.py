"""What grows while a turn runs: its reply, and what is known of its calls, its place and its past.

Each record has one reason to change. What was asked is the turn's handle; what holds for the turn
is its settings; neither changes once the turn is assembled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from thinkwell.journal.budget import GivenUp, RecoveryKind
from thinkwell.journal.ledger import LedgerRow
from thinkwell.messages.fold import Fold
from thinkwell.messages.message import Part, UIMessage, is_tool_part, tool_parts
from thinkwell.messages.usage import Usage
from thinkwell.models.base import Finish
from thinkwell.session.rows import Appended
from thinkwell.turn.run.step_result import has_result, last_block, step_blocks

Declined: TypeAlias = Literal["already_answered", "continue_disabled", "stopped", "cleared"]


class OutsideAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a client or a person said about a call of the turn that runs. Stored format."""

    part: dict[str, Any]
    """The call as it is now."""
    stop_reason: Literal["approval", "client_tool"]
    auto_continue: bool
    client_tools: tuple[dict[str, Any], ...] | None = None


class GrowingReply:
    """The message that a turn writes, and where it goes."""

    __slots__ = (
        "answered",
        "continuation_owed",
        "earlier_bytes",
        "earlier_steps",
        "fold",
        "forgotten",
        "known",
        "message_id",
        "newest_at_start",
        "parent",
        "stored",
        "written",
    )

    def __init__(self, message_id: str, *, parent: str | None, known: bool) -> None:
        self.message_id = message_id
        self.fold = Fold(self.empty())
        self.known = known
        """Whether `fold` holds the whole reply: a continuation has to read it first."""
        self.parent = parent
        """The message it is stored under."""
        self.newest_at_start = 0
        """The newest message when the turn began: later ones were added while it ran."""
        self.earlier_steps = 0
        """Steps of earlier turns in the reply that a continuation goes on with."""
        self.earlier_bytes = 0
        """How large that reply is."""
        self.answered: Literal["approval", "client_tool"] | None = None
        """A call of the last step was answered from outside: its continuation goes on."""
        self.continuation_owed = False
        """A client asked to go on once every open call of this reply has its result."""
        self.written: Sequence[Appended] = ()
        """What the last transaction of the turn added to the tree."""
        self.stored = False
        """The settling transaction has written it: from then on answers go to the row."""
        self.forgotten = False
        """What was answered could not be stored and was dropped."""

    def empty(self) -> UIMessage:
        """The reply before its first chunk."""
        return {"id": self.message_id, "role": "assistant", "parts": []}

    def forget(self, *, known: bool) -> None:
        """Drop what was answered: it cannot be stored. A stored beginning stays as it is."""
        self.fold, self.known, self.forgotten = Fold(self.empty()), known, True

    def go_on(self, stored: UIMessage, size: int) -> None:
        """A continuation writes on in a stored reply."""
        self.fold = Fold(stored, continuation=True)
        self.earlier_steps = len(step_blocks(stored["parts"]))
        self.earlier_bytes = size
        self.parent = self.message_id
        self.known = True

    def take(self, answer: OutsideAnswer) -> None:
        """An answer from outside for one of its calls."""
        self.fold.replace_call(answer.part)
        self.answered = answer.stop_reason
        self.continuation_owed = self.continuation_owed or answer.auto_continue

    def keeper(self, tool_call_id: str) -> Callable[[], None]:
        """What puts back, as it is now, all that an outcome of this call may change."""
        put_back = self.fold.call_keeper(tool_call_id)
        answered, owed = self.answered, self.continuation_owed

        def keep() -> None:
            put_back()
            self.answered, self.continuation_owed = answered, owed

        return keep

    def take_repaired(self, message: UIMessage) -> None:
        """The stored reply that this continuation goes on with was repaired."""
        for part in tool_parts(message):
            self.fold.replace_call(part)

    def last_step(self) -> list[Part]:
        """The parts of its last step."""
        return last_block(self.fold.message["parts"])

    def waiting_calls(self) -> set[str]:
        """States of calls in the last step that wait for a person or a client."""
        if not self.fold.has_calls:
            return set()
        calls = (part for part in self.last_step() if is_tool_part(part))
        return {str(part["state"]) for part in calls if not has_result(part)}

    def own_parts(self) -> list[Part]:
        """The parts of this turn's steps, without those of earlier turns in the same reply."""
        blocks = step_blocks(self.fold.message["parts"])[self.earlier_steps :]
        return [part for block in blocks for part in block]


class Pauses(msgspec.Struct, frozen=True):
    """Model calls that ended because the provider paused amid its own tools."""

    count: int = 0
    """How many there were in this turn."""
    usage: Usage = Usage()
    """Their tokens, of those in the open step."""
    options: Mapping[str, Any] | None = None
    """What the next call sends along; None if the model has said something since."""


class Past:
    """What earlier attempts left, after a crash or a stall."""

    __slots__ = (
        "declined",
        "drops",
        "finish",
        "given_up",
        "kind",
        "ledger",
        "milestones",
        "open_text",
        "pauses",
        "progress",
        "step_open",
    )

    def __init__(self) -> None:
        self.progress = 0
        """How far the turn was when its attempt began, as the budget counts it."""
        self.milestones = 0
        """How much work was done then."""
        self.kind: RecoveryKind = "retry"
        """How the running attempt takes the turn up, if it is not the first one."""
        self.given_up: GivenUp | None = None
        """Why no other attempt is made."""
        self.declined: Declined | None = None
        """Why there was nothing to recover, or somebody did not want it."""
        self.drops = False
        """Whether a hook wants the words of the interrupted step to go."""
        self.step_open = False
        """Whether the step that comes now was begun."""
        self.finish: Finish | None = None
        """How the model call of that step had ended, as far as the journal knows."""
        self.pauses = Pauses()
        """How often the provider has paused, and where."""
        self.open_text: str | None = None
        """A text part left open, which the next text goes on with."""
        self.ledger: Mapping[str, LedgerRow] = {}
        """What was recorded of tool calls, by call id."""


class Calls:
    """The tool calls of this attempt."""

    __slots__ = ("claimed", "running")

    def __init__(self) -> None:
        self.claimed: set[str] = set()
        """Ids of calls whose tool was started."""
        self.running: set[str] = set()
        """Calls that run, or have a result on its way to the ledger."""


class Places:
    """Where the turn is, as far as it keeps a record of it (`places.py`)."""

    __slots__ = ("now", "written")

    def __init__(self) -> None:
        self.now: tuple[str, ...] = ()
        self.written: tuple[str, ...] = ()
        """What of that its row says."""
