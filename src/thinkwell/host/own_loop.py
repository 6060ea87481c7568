"""An event loop for code that is not async: `run_sync` and `with` of an agent without a class.

One loop for all calls, because what an agent has started stays where it began. It runs only inside
a call, in the thread that calls.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Coroutine
from typing import Any, TypeVar

from thinkwell.core.errors import ConfigurationError

T = TypeVar("T")


class OwnLoop:
    """Runs one piece of async work after another."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._left = weakref.finalize(self, _leave, self._runner)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` to its end."""
        return self._runner.run(work)

    def close(self) -> None:
        """There is no more work."""
        self._left.detach()
        self._runner.close()


def refuse_running_loop(wrong: str, right: str) -> None:
    """Raises `ConfigurationError` where a loop runs already: to wait there would block it."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise ConfigurationError(
        f"`{wrong}` was used where an event loop runs already (a notebook, a web server, an async "
        f"test), and would block it. Write `{right}`."
    )


def _leave(runner: asyncio.Runner) -> None:
    """The program ends and nobody has closed the loop.

    Threads can do no more work then, so it is left as a kill would leave it: everything is stored.
    Nobody has to read which tasks of ours were still waiting for more.
    """
    loop = runner.get_loop()
    loop.set_exception_handler(lambda _loop, _context: None)
    loop.close()
