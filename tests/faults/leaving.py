"""An app whose tools and hooks leave the process: no cleaning up, no exception."""

from __future__ import annotations

import os
import resource

from thinkwell import App, Think, tool
from thinkwell.hooks import StepContext
from thinkwell.testing import ScriptedModel, call


class Leaver(Think):
    model = ScriptedModel([lambda _: [call("leave")]] * 20)

    @tool(effect="idempotent")
    async def leave(self) -> str:
        """Ends the process."""
        os._exit(3)


class Hooked(Think):
    model = ScriptedModel([lambda _: "never"] * 20)

    async def before_step(self, ctx: StepContext) -> None:
        os._exit(4)


class Quiet(Think):
    model = ScriptedModel([lambda _: "still here"] * 200)


app = App(agents=[Leaver, Hooked, Quiet])


def few_descriptors(pid: int, count: int) -> tuple[int, tuple[int, int]]:
    """Leave a process so many more files and sockets: its new limit, and the one it had."""
    most = len(os.listdir(f"/proc/{pid}/fd")) + count
    _, hard = before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (most, hard))
    return most, before
