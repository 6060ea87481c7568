"""Settings and answers about turns that are interrupted: `chat_recovery`, `on_chat_recovery`.

`journal/budget.py` decides; here is what an app may say about it (spec/04 §5.3, §5.9).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias, cast

import msgspec

from thinkwell.core.named_fields import NamedFields, unknown_field
from thinkwell.core.user_code import WrongAnswerError
from thinkwell.hooks import values
from thinkwell.hooks.contexts import ChatRecoveryContext, RecoveryExhaustedContext
from thinkwell.journal.budget import RecoveryBudget

KeepRecovering: TypeAlias = Callable[[ChatRecoveryContext], "bool | Awaitable[bool]"]
"""Says whether a turn is taken up once more. Contract: one that raises has no answer."""
OnExhausted: TypeAlias = Callable[[RecoveryExhaustedContext], object]
"""Hears that a turn was given up. May be async; what it raises is logged."""

_KINDS: Final[Mapping[str, values.ValueKind]] = {
    "max_attempts": values.whole(0),
    "max_recovery_work": values.ValueKind(
        lambda value: values.is_number(value) and value >= 0,
        "a number, 0 or more; `math.inf` for no limit",
    ),
    "no_progress_timeout": values.SECONDS,
    "on_exhausted": values.FUNCTION,
    "should_keep_recovering": values.FUNCTION,
    "terminal_message": values.TEXT,
}


class ChatRecovery(RecoveryBudget, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How an agent's interrupted turns are taken up again, and when they are given up."""

    should_keep_recovering: KeepRecovering | None = None
    """Asked from the second interruption on; False gives the turn up."""
    terminal_message: str | None = None
    """What clients read of a turn that was given up, now and when they come back."""
    on_exhausted: OnExhausted | None = None
    """Called when a turn was given up and that is stored."""

    def __post_init__(self) -> None:
        """Refuse what would only fail when a turn is interrupted."""
        values.check_fields(self, _KINDS)


DEFAULT: Final = ChatRecovery()


def recovery_of(given: object) -> ChatRecovery:
    """The setting `chat_recovery` as it is used. True and False mean the defaults."""
    return given if isinstance(given, ChatRecovery) else DEFAULT


SETTING: Final = values.ValueKind(
    lambda value: isinstance(value, ChatRecovery | bool), "`ChatRecovery(max_attempts=3)`"
)


class RecoveryOptions(msgspec.Struct, frozen=True, kw_only=True, metaclass=NamedFields):
    """Answer of `on_chat_recovery`."""

    persist: bool = True
    """Whether the words of the interrupted step stay. Tool calls and finished steps always do."""
    continue_: bool = True
    """Whether another attempt is made. If not, the turn ends with an error."""

    def __post_init__(self) -> None:
        """Refuse what is neither True nor False."""
        values.check_fields(self, dict.fromkeys(self.__struct_fields__, values.YES_NO))


AS_USUAL: Final = RecoveryOptions()


def as_recovery_options(answer: object, hook: str) -> RecoveryOptions:
    """The answer of an `on_chat_recovery` hook: `RecoveryOptions`, a dict of its fields or None."""
    if answer is None:
        return AS_USUAL
    if isinstance(answer, RecoveryOptions):
        return answer
    if not isinstance(answer, Mapping):
        raise WrongAnswerError(
            f"{hook} returned {answer!r:.100}; return `RecoveryOptions(continue_=False)` or None."
        )
    given = dict(cast("Mapping[str, Any]", answer))
    if "continue" in given:  # a word of Python's, so only a dict can say it
        given.setdefault("continue_", given.pop("continue"))
    wrong = unknown_field(RecoveryOptions, given)
    if wrong is not None:
        raise WrongAnswerError(f"{hook}: {wrong}")
    try:
        return RecoveryOptions(**given)
    except TypeError as error:
        raise WrongAnswerError(f"{hook}: {error}") from None


def merged(one: RecoveryOptions, other: RecoveryOptions) -> RecoveryOptions:
    """What two hooks want: whoever says no to something is heard."""
    return RecoveryOptions(
        persist=one.persist and other.persist, continue_=one.continue_ and other.continue_
    )
