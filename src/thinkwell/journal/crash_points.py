"""Named places where a test may kill the process (spec/04 §1.2.7, §6).

Always compiled in: `THINKWELL_CRASH_AT=c4:3` kills the process with SIGKILL when the point `c4` is
reached for the third time. Without the variable a call costs one comparison.
"""

from __future__ import annotations

import os
import signal

CRASH_POINTS: dict[str, str] = {
    "c0": "before the accepting transaction commits",
    "c1": "accepted, waiting for the slot",
    "c2": "running, while the prompt is assembled",
    "c3": "the model was called, nothing of its answer is durable",
    "c4": "a text or reasoning delta is durable",
    "c5": "a piece of tool input is durable",
    "c6": "the tool input is complete, the call is not claimed",
    "c7": "the call is claimed, the tool runs",
    "c8": "the tool returned, its result is not recorded",
    "c9": "a step with tools ended, the next has not begun",
    "c10": "the finish chunk is durable, the message is not stored",
    "c11": "the turn is settled, its last frames are not sent",
    "c12": "settled and told, the response hooks have not run",
    "c13": "a tx tool's writes are in the transaction of its result, which has not committed",
    "c14": "a tx tool's writes and its result are committed, nobody has heard of it",
    "c15": "an answer from outside is stored, its continuation is not in line",
    "c16": "a stop is recorded, not yet honoured",
    "b0": "before the transaction that reserves a step's worst case commits",
    "b1": "a step's worst case is reserved, the model is not called",
    "b2": "before the transaction that settles a reservation commits",
    "b3": "a reservation is settled, the step has not ended",
    "a0": "before the transaction that stores a question commits",
    "a1": "a question is stored, nobody has been asked",
    "a2": "before the transaction that applies an answer from outside commits",
    "a3": "a rule's yes is stored, the call is not claimed",
    "a4": "a rule is stored or revoked, whoever asked has not heard",
    "j0": "before the transaction that enqueues a job commits",
    "j1": "a job is enqueued, the runner does not know",
    "j2": "a job is leased, its handler is not called",
    "j3": "a handler has stashed something",
    "j4": "a handler has ended, what became of it is not stored",
    "j5": "the end of a job is stored, nobody has heard of it",
    "j6": "a job waits for its next attempt, the runner does not know",
    "j7": "the cancel of a job is stored, not yet honoured",
    "c17": "the provider keeps the answer, none of it has been shown",
    "c18": "an agent is paused, what runs does not know",
    "s0": "before the transaction that brings declared tasks up to date commits",
    "s1": "declared tasks are up to date, the runner does not know",
    "s2": "the outcome of a run and the next one are stored, nobody has heard of them",
    "s3": "a schedule that runs is to come no more, nobody has heard of it",
    "s4": "items of the queue are withdrawn, nobody has heard of it",
    "x0": "some messages are in the search index, the rest of what was read is not",
    "x1": "a slice of messages is in the search index, the next one is not read",
    "x2": "messages that changed or went are indexed again or taken out, some",
    "d0": "an agent is marked as deleted, its rows are there",
    "d1": "a piece of a deleted agent's rows is gone",
    "i0": "an import has begun, none of its rows is there",
    "i1": "a piece of an imported agent's rows is there",
    "e0": "the erasure of a person is stored as a job, nothing is erased",
    "e1": "a piece of a person's turns is erased",
    "e2": "a person's rows in one agent are erased",
    "e3": "all rows of a person are erased, the file is not rewritten",
    "e5": "nothing of a person is left in the search index, the file is not rewritten",
    "e4": "the file is rewritten, the end of the erasure is not stored",
}

BY_COMMAND = frozenset({"i0", "i1", "e0", "e1", "e2", "e3", "e4", "e5"})
"""Points that only a command of the operator reaches, never the work of an app."""

_armed = os.environ.get("THINKWELL_CRASH_AT", "")
_name, _, _count = _armed.partition(":")
_left = int(_count or 1)


def crash_here(point: str) -> None:
    """Die here if this point is armed and its turn has come."""
    global _left
    if point != _name:
        return
    _left -= 1
    if _left <= 0:
        os.kill(os.getpid(), signal.SIGKILL)


def crash_is_armed(point: str) -> bool:
    """Whether `point` is the armed one, for places that would have to prepare something first."""
    return point == _name
