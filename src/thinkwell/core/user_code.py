"""Calling code that is not ours: tools, hooks, callbacks (DESIGN §8.16).

It may raise anything. What is no `Exception` (`sys.exit()`, `KeyboardInterrupt`, a `CancelledError`
nobody asked for) must not get past the call: asyncio hands the first two to whoever runs the event
loop, and that ends the process. `contained` turns it into an `Exception`, once, here. `AbortTurn`,
`FailTurn` and a real cancellation of the task pass through.

What user code raises is logged once: by whoever catches it for good, through `log_failure`.
`contained` and `in_hook` note on the error whose it is, so that a line written far away can still
name the code: in the field `hook` if it is a hook, in `code` if it is anything else.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from inspect import isawaitable
from types import MappingProxyType, TracebackType
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar

from thinkwell.core.errors import AbortTurn, FailTurn, UserCodeError
from thinkwell.core.tasks import is_cancelled
from thinkwell.core.visits import visit

T = TypeVar("T")
MaybeAsync: TypeAlias = T | Awaitable[T]
"""What a method gives that may be `def` or `async def`: the value, or something to await for it."""

log_fields: ContextVar[Mapping[str, str]] = ContextVar("log_fields", default=MappingProxyType({}))
"""Agent and turn of the code that runs, for the log."""
CodeField: TypeAlias = Literal["hook", "code"]
"""Which field of a line in the log names the code that failed."""
_RAISED_IN = "__thinkwell_code__"


class WrongAnswerError(TypeError):
    """User code returned what is not taken there; the text says what to return.

    It is logged without a traceback: the code has ended, so every frame is ours.
    """


class contained:  # noqa: N801 - reads as a statement
    """`with contained("tool x"):` around every call of user code, awaiting its result included."""

    __slots__ = ("_what",)
    field: ClassVar[CodeField] = "code"

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, Exception):
            blame(error, self._what, self.field)
        elif error is not None:
            raise as_exception(error, self._what, self.field) from error


class in_hook(contained):  # noqa: N801 - reads as a statement
    """The same around a hook: of a turn, of connections, of a feature, or a method we ask."""

    __slots__ = ()
    field = "hook"


def as_exception(error: BaseException, what: str, field: CodeField = "code") -> Exception:
    """What user code raised, as an `Exception`; raises it again if it is none of the code's."""
    if isinstance(error, Exception):
        return error
    # These two are how user code ends a turn on purpose; they derive from `BaseException` so that
    # its own `except Exception` does not catch them.
    if isinstance(error, AbortTurn | FailTurn) or _is_ours(error):
        raise error
    made = UserCodeError(what, error)
    made.__cause__ = error
    blame(made, what, field)
    return made


def blame(error: BaseException, what: str, field: CodeField = "code") -> None:
    """Note on an error which code it came from; where several called one another, the outer."""
    # On the error itself: it crosses layers that know nothing of hooks before somebody logs it.
    vars(error)[_RAISED_IN] = {field: what}


def raised_in(error: BaseException) -> str | None:
    """Which user code an error came from, if it is known."""
    return next(iter(code_fields(error).values()), None)


def code_fields(error: BaseException) -> Mapping[str, str]:
    """The same as a field of the log: `hook` or `code`; empty if it is not known."""
    return vars(error).get(_RAISED_IN, {})


def log_failure(
    log: logging.Logger,
    what: str,
    error: BaseException,
    about: Mapping[str, str],
    *,
    level: int = logging.ERROR,
) -> None:
    """The one line about user code that failed: what, whose and in which turn, and a traceback.

    A wrong answer is told in the line itself. Agent and turn are those of the code that runs,
    unless `about` says others.
    """
    facts = {**log_fields.get(), **about}
    where = ", ".join(
        f"{name} {facts[name]}" for name in ("agent", "turn", "job") if facts.get(name)
    )
    text = f"{what} failed" + (f" ({where})" if where else "")
    raised = (error.__cause__ or error) if isinstance(error, UserCodeError) else error
    trace = None if is_wrong_answer(raised) else raised
    text = text if trace is not None else f"{text}: {raised}"
    log.log(level, "%s", text, exc_info=trace, extra={"action": "failed", **facts})


def is_wrong_answer(error: BaseException) -> bool:
    """Whether it says what user code should have returned, itself or in other words."""
    return isinstance(error, WrongAnswerError) or isinstance(error.__cause__, WrongAnswerError)


def _is_ours(error: BaseException) -> bool:
    if isinstance(error, asyncio.CancelledError):
        return is_cancelled()
    # A coroutine that is collected after its loop has ended is closed outside of any task.
    return isinstance(error, GeneratorExit) and not _in_task()


def _in_task() -> bool:
    try:
        return asyncio.current_task() is not None
    except RuntimeError:
        return False


async def call_user(what: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call user code that may be async."""
    with contained(what):
        value = function(*arguments)
        return await visit(what, value) if isawaitable(value) else value


async def call_hook(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a hook that may be async, outside of those of a turn (`hooks/dispatch.py`)."""
    with in_hook(name):
        value = function(*arguments)
        if value is None or type(value) is str:  # what most of them give
            return value
        return await visit(name, value) if isawaitable(value) else value
