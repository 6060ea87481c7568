"""How an attempt ended, as values, and what the caller of a turn is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Self, TypeAlias, cast

import msgspec
from msgspec import UNSET

from thinkwell.core import json
from thinkwell.core.errors import StoreError, TurnFailedError
from thinkwell.hooks.contexts import ModelResponse, Stage
from thinkwell.hooks.dispatch import HookFailedError
from thinkwell.journal.budget import GivenUp
from thinkwell.journal.turns import EndStatus, StopReason, TurnRecord
from thinkwell.messages.message import UIMessage, text_of
from thinkwell.messages.usage import Usage

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    # `TurnResult` without brackets is `TurnResult[Any]`; Python itself knows defaults from 3.13 on.
    OutputT = TypeVar("OutputT", default=Any)
else:
    from typing import TypeVar

    OutputT = TypeVar("OutputT")

GAVE_UP = "The assistant was interrupted and could not recover. Please try again."
"""What clients read of a turn that was given up after stalls of its model."""
SET_ASIDE = (
    "This answer was set aside after it stopped the server several times. "
    "The operator can retry it."
)
"""What clients read of a parked turn: to ask again would stop the server again."""


UNANSWERED = ("approval", "client_tool", "steered")
"""Stop reasons after which the reply is still to come, in a later turn."""


class Completed(msgspec.Struct, frozen=True):
    """The model has nothing more to say, or may not say more."""

    stop_reason: StopReason
    output: Any = None
    """The validated structured output."""


class Aborted(msgspec.Struct, frozen=True):
    """Somebody asked to stop."""

    reason: str


class Failed(msgspec.Struct, frozen=True):
    """Something went wrong at `stage`."""

    stage: Stage
    error: Exception


class Parked(msgspec.Struct, frozen=True):
    """The process died too often in this turn, or for too long: it is not run again by itself.

    None of the agent's code runs until that is stored: it may be what kills.
    """

    given_up: GivenUp


class Skipped(msgspec.Struct, frozen=True):
    """There was nothing to run: the turn was cleared away, or its input died with its caller."""

    reason: StopReason


Ending: TypeAlias = Completed | Aborted | Failed | Parked | Skipped


class StageError(Exception):
    """Carries an error together with the stage it happened in. Never leaves `turn/`."""

    def __init__(self, stage: Stage, error: Exception) -> None:
        super().__init__(json.error_text(error))
        self.stage: Stage = stage
        self.error = error


class StalledError(Exception):
    """The model fell silent or its reply broke off: the turn makes another attempt.

    `seconds` is how long it was silent; None if the connection was lost. Never leaves `turn/`.
    """

    def __init__(self, text: str, seconds: float | None = None) -> None:
        super().__init__(text)
        self.seconds = seconds


def ends_turn(error: Exception) -> Exception | None:
    """The error itself if it already says how the turn ends; None if its stage must be added."""
    return (
        error
        if isinstance(error, StageError | StoreError | HookFailedError | StalledError)
        else None
    )


class TurnOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What `settle` stored."""

    record: TurnRecord
    message: UIMessage
    """The reply; its parts may be empty."""
    error: Exception | None = None
    output: Any = None
    """The validated structured output."""
    response: ModelResponse = ModelResponse()
    """The last step's reply."""
    continuation: TurnRecord | None = None
    """A turn that goes on with this reply, accepted together with its end."""
    cleared: bool = False
    """It ran when the conversation was cleared away."""


class TurnResult(msgspec.Struct, Generic[OutputT], frozen=True, kw_only=True):
    """What `run` and `save_messages` return; with `run(output=T)` it is a `TurnResult[T]`."""

    request_id: str
    """The turn's id; `get_turn` finds it later."""
    status: EndStatus
    """`completed`, `error`, `aborted` or `skipped`."""
    message: UIMessage | None
    """The reply, or None when nothing was answered."""
    error: str | None = None
    """The error's text when status is `error`."""
    stop_reason: StopReason | None = None
    """Why it ended: `end`, `max_steps`, `length`, `aborted`, `error`, …"""
    usage: Usage = msgspec.field(default_factory=Usage)
    """Token counts of all steps."""
    steps: int = 0
    """How many model calls it took."""
    continuation: bool = False
    output: OutputT = cast("OutputT", None)
    """The validated structured output; None if none was asked for.

    Reading it raises `TurnFailedError` if `run(output=...)` asked for one and the turn has none.
    """

    def raise_for_status(self) -> Self:
        """The result itself if the turn completed, with its output if one was asked for.

        Raises `TurnFailedError` that says why otherwise.
        """
        if self.status != "completed" or _stored_output(self) is UNSET:
            raise _failure(self)
        return self

    @property
    def text(self) -> str:
        """The text of the reply, all steps joined."""
        return "" if self.message is None else text_of(self.message)


def _failure(result: TurnResult[Any]) -> TurnFailedError:
    turn = f"The turn {result.request_id}" if result.request_id else "The turn"
    match result.status:
        case "error":
            text = f"{turn} failed: {result.error}"
        case "aborted":
            text = f"{turn} was stopped before its end."
        case "completed" if result.stop_reason == "steered":
            text = f"{turn} has no output: a later message steered it, and is answered instead."
        case "completed":
            text = f"{turn} has no output yet: it waits ({result.stop_reason})."
        case _:
            why = result.stop_reason or "there was nothing to answer"
            text = f"{turn} was skipped: {why}."
    return TurnFailedError(
        text,
        request_id=result.request_id,
        status=result.status,
        stop_reason=result.stop_reason,
        error=result.error,
    )


_stored_output = vars(TurnResult)["output"].__get__
"""Reads the field as it is stored: UNSET if an output was asked for and there is none."""


def _output(result: TurnResult[OutputT]) -> OutputT:
    """The validated structured output; None if none was asked for."""
    stored = _stored_output(result)
    if stored is UNSET:
        raise _failure(result)
    return stored


# Only reading goes through the check, so it is put over the field after the class is made: a result
# is still made with `output=...`, shown and encoded with it.
TurnResult.output = property(_output)  # pyright: ignore[reportGeneralTypeIssues]
