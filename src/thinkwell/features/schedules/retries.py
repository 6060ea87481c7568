"""How often something is tried, and how long it waits in between: checked where it is said."""

from __future__ import annotations

import asyncio
import inspect
import math
import random as randomness
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar, cast

import msgspec

from thinkwell.core.back_off import pause_after
from thinkwell.core.errors import ScheduleError
from thinkwell.core.spelling import unknown_names
from thinkwell.core.user_code import MaybeAsync

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[object]]


class RetryOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How often something is tried. Times are seconds.

    Before attempt n + 1 it waits a random time, shorter than `base_delay` doubled n times and never
    longer than `max_delay`.
    """

    max_attempts: int = 3
    base_delay: float = 0.1
    max_delay: float = 3.0


_NAMES = RetryOptions.__struct_fields__
_MILLISECONDS = {f"{name}_ms": name for name in _NAMES if name.endswith("delay")}


def check_retry(retry: Any, default: RetryOptions | None = None) -> RetryOptions:
    """What a user gave as `retry=`; what it leaves open is as in `default`, the setting of the
    class. Raises `ScheduleError`.
    """
    default = default or RetryOptions()
    if retry is None:
        return default
    if isinstance(retry, RetryOptions):
        options = retry
    elif isinstance(retry, Mapping):
        options = _from_mapping(cast("Mapping[Any, Any]", retry), default)
    else:
        raise ScheduleError(
            f"retry={retry!r} is no set of options. Write `retry=RetryOptions(max_attempts=5)`."
        )
    _check(options)
    return options


def is_retry(value: object) -> bool:
    """Whether a class may have it as its `retry_options`."""
    try:
        return isinstance(value, RetryOptions) and check_retry(value) is value
    except ScheduleError:
        return False


def _from_mapping(retry: Mapping[Any, Any], default: RetryOptions) -> RetryOptions:
    given = {str(name): value for name, value in retry.items()}
    for name, ours in _MILLISECONDS.items():
        if name in given:
            raise ScheduleError(
                f"retry= has {name!r}. Times are seconds here: write "
                f"`{ours}={_seconds(given[name])}`."
            )
    if (problem := unknown_names("retry=", given, _NAMES)) is not None:
        raise ScheduleError(problem)
    return msgspec.structs.replace(default, **given)


def _seconds(milliseconds: Any) -> str:
    return f"{milliseconds / 1000:g}" if _is_number(milliseconds) else "0.1"


def _check(options: RetryOptions) -> None:
    attempts = cast("Any", options.max_attempts)
    if type(attempts) is not int or attempts < 1:
        raise ScheduleError(
            f"max_attempts={attempts!r} would never run it. Give a whole number, 1 or more."
        )
    for name in ("base_delay", "max_delay"):
        value = getattr(options, name)
        if not _is_number(value) or value <= 0:
            raise ScheduleError(f"{name}={value!r} is no pause. Give seconds above 0.")
    if options.base_delay > options.max_delay:
        raise ScheduleError(
            f"base_delay={options.base_delay:g} is longer than max_delay={options.max_delay:g}. "
            f"Write `max_delay={options.base_delay * 10:g}` as well."
        )


def _is_number(value: Any) -> bool:
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return plain and math.isfinite(value)


async def retry(
    work: Callable[[int], MaybeAsync[T]],
    options: RetryOptions,
    *,
    should_retry: Callable[[Exception, int], bool] | None = None,
    sleep: Sleep = asyncio.sleep,
    random: Callable[[], float] = randomness.random,
) -> T:
    """Call `work(attempt)` until it returns; the last error is raised.

    For as long as the process lives: what must outlive it is a job.
    """
    attempt = 1
    while True:
        try:
            value = work(attempt)
            return await value if inspect.isawaitable(value) else cast("T", value)
        except Exception as error:
            if attempt >= options.max_attempts:
                raise
            if should_retry is not None and not should_retry(error, attempt + 1):
                raise
        delays = {"base_delay": options.base_delay, "max_delay": options.max_delay}
        await sleep(pause_after(attempt, **delays, random=random))
        attempt += 1
