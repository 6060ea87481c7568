"""A recorded turn as a test: the agent's code of today with the recorded replies and results.

No tool runs and nobody is contacted. The first difference that is not allowed fails the test, with
both values.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from thinkwell.core.errors import ConfigurationError

if TYPE_CHECKING:
    from thinkwell.host.replaying import Prepare, Replay
    from thinkwell.turn.travel.case import Case

T = TypeVar("T")


def replay(
    case: str | Path | Case,
    agent: type[Any],
    *,
    allow: Collection[str] = (),
    output: Any = None,
    prepare: Prepare | None = None,
) -> Replay:
    """Replay a case that `thinkwell turns export` wrote; raise `ReplayError` where it differs.

    `allow` names differences that do not count: `"prompt"`, `"descriptions"`, `"tools"`, `"model"`,
    `"settings"`, `"chunks"`, or the path of one (`"messages[0].content*"`). `output` is the type
    that `run` was given. `prepare` is called with the agent before the turn begins, to store what
    its code looks up. Works in tests with and without async.
    """
    from thinkwell.agent.think import Think
    from thinkwell.host.replaying import replay_case
    from thinkwell.turn.travel.case import Case

    given = cast("object", agent)
    if not (isinstance(given, type) and issubclass(given, Think)):
        raise ConfigurationError(
            f"replay(..., {agent!r}): give the class of the agent, for example "
            'replay("case.json", Assistant).'
        )
    if isinstance(allow, str):
        allow = (allow,)
    loaded = case if isinstance(case, Case) else Case.load(case)
    cls = cast("type[Think]", agent)
    done = _run(replay_case(loaded, cls, output=output, prepare=prepare))
    done.check(allow)
    return done


def _run(work: Coroutine[Any, Any, T]) -> T:
    """Wait for `work`, also inside an event loop: it has a thread and a loop of its own then."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()
