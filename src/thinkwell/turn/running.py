"""The state of one running turn, and the one way a chunk leaves it.

`emit` is the hot path: fold, `on_chunk`, encode, append to the log. The log's commit tells the
clients.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from thinkwell.core import json
from thinkwell.core.signal import AbortSignal
from thinkwell.hooks.contexts import ChunkContext, StepResult
from thinkwell.hooks.read_only import ReadOnlyDict
from thinkwell.journal.ledger import LedgerRow
from thinkwell.journal.turn_log import TurnLog
from thinkwell.journal.turns import TurnRecord
from thinkwell.messages.chunks import Chunk
from thinkwell.messages.fold import Fold
from thinkwell.messages.message import UIMessage
from thinkwell.messages.usage import Usage
from thinkwell.models.base import Finish
from thinkwell.turn.face import Parts

current_turn: ContextVar[RunningTurn | None] = ContextVar("current_turn", default=None)
"""The turn inside which the current code runs, if any."""


class RunningTurn:
    """One turn while it holds the slot."""

    def __init__(self, record: TurnRecord, parts: Parts, signal: AbortSignal) -> None:
        if record.message_id is None:
            raise ValueError("a running turn has a message id")
        self.record = record
        self.parts = parts
        self.signal = signal
        self.active = True
        """False once the slot is free: from then on, code started here may wait for other turns."""
        self.message_id = record.message_id
        self.log = TurnLog(parts.owner, record.request_id)
        self.fold = Fold(self.empty_answer())
        self.answer_parent: str | None = record.branch_from
        """The message the answer is stored under."""
        self.input_applied = False
        self.started = False
        """Whether the `start` chunk is in the journal."""
        self.steps: list[StepResult] = []
        self.step_number = 0
        self.open_text: str | None = None
        """A text part left open by a crash, which the next text goes on with."""
        self.interrupted = False
        """Whether a crash left the step `step_number` open."""
        self.ledger: Mapping[str, LedgerRow] = {}
        """What earlier attempts recorded of tool calls, by call id."""
        self.interrupted_finish: Finish | None = None
        """How the interrupted step's model call had ended, as far as the journal knows."""

    def empty_answer(self) -> UIMessage:
        """The answer before its first chunk."""
        return {"id": self.message_id, "role": "assistant", "parts": []}

    def forget_answer(self) -> None:
        """Drop what was answered: it cannot be stored."""
        self.fold = Fold(self.empty_answer())

    @property
    def usage(self) -> Usage:
        """Token counts of all finished steps."""
        return sum((step.usage for step in self.steps), start=Usage())

    def hook_fields(self) -> dict[str, Any]:
        """What every hook context carries (spec/02 §5.0.9)."""
        return {
            "request_id": self.record.request_id,
            "trigger": self.record.trigger,
            "continuation": self.record.continuation,
            "agent": self.parts.agent_ref,
            "abort_signal": self.signal,
        }

    async def emit(self, chunk: Chunk) -> None:
        """Send one chunk: hooks see it, it joins the message and the log; the commit tells the
        clients.
        """
        await self.show(chunk)
        self.record_chunk(chunk)
        if self.parts.commits.note(self.log):
            await self.parts.commits.flush()
            await asyncio.sleep(0)  # a burst must not starve the other agents

    async def show(self, chunk: Chunk) -> None:
        """Let `on_chunk` hooks see a chunk."""
        hooks = self.parts.hooks
        observers = hooks.registry.hooks("on_chunk")
        if not observers:
            return
        context = ChunkContext(
            request_id=self.record.request_id,
            trigger=self.record.trigger,
            continuation=self.record.continuation,
            agent=self.parts.agent_ref,
            abort_signal=self.signal,
            chunk=ReadOnlyDict(chunk),
            step_number=self.step_number,
            message_id=self.message_id,
        )
        for observer in observers:
            if observer.alive:
                await hooks.tell("on_chunk", observer, context)

    def record_chunk(self, chunk: Chunk) -> None:
        """Fold and log a chunk without waiting; whoever calls this commits."""
        body = json.dumps(chunk)  # first: what cannot be encoded joins neither message nor log
        self.fold.apply(chunk)
        self.log.append(body)
