"""An agent whose tools want to be allowed, on a clock that a test moves, and its clients."""

from __future__ import annotations

import asyncio
import itertools
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

from tests.jobs.support import Hours, Stage, serving
from tests.turns.support import Client, Log, part_of
from thinkwell import Principal, Think, tool
from thinkwell.host.client import AgentAddress
from thinkwell.testing import ScriptedModel, call
from thinkwell.wire.http import HttpRequest

HOUR = 3600.0
ANN, BOB, BOSS = Principal(id="ann"), Principal(id="bob"), Principal(id="boss")


def delete(path: str = "tmp/a", **more: Any) -> Any:
    """The model wants to delete a file."""
    return call("delete", {"path": path, **more})


class Careful(Think, name="careful"):
    """Its tools want to be allowed; what ran is in `ran`."""

    ran: ClassVar[list[str]] = []

    @tool(needs_approval=True)
    async def delete(self, path: str) -> str:
        """Delete a file."""
        self.ran.append(path)
        return f"deleted {path}"

    @tool(needs_approval=True, approval_expires=HOUR)
    async def hurried(self, path: str) -> str:
        """Delete a file, if somebody allows it soon."""
        self.ran.append(path)
        return f"deleted {path}"

    @tool(needs_approval=True, approvers={"boss"})
    async def pay(self, amount: int) -> str:
        """Pay somebody."""
        self.ran.append(f"paid {amount}")
        return f"paid {amount}"


class Newer(Think, name="careful"):
    """The same agent after a deploy: its tool takes one more argument."""

    ran: ClassVar[list[str]] = Careful.ran

    @tool(needs_approval=True)
    async def delete(self, path: str, trash: bool = False) -> str:
        """Delete a file."""
        self.ran.append(path)
        return f"deleted {path}, trash {trash}"


class Desk:
    """The stage of one agent named `x`."""

    def __init__(self, stage: Stage, agent: Any, model: ScriptedModel) -> None:
        self.stage = stage
        self.hours = stage.hours
        self.agent = agent
        self.model = model
        self.ran: list[str] = agent.ran

    async def connect(self, principal: Principal | None = None, tab: str = "tab") -> Tab:
        """A client of this person."""
        client = Client(Log())
        client.connection = await self.stage.host.client().open_connection(
            AgentAddress(self.agent.agent_class, self.agent.name),
            tab,
            HttpRequest(method="GET", path="", query={}, principal=principal),
            client.sink,
        )
        return Tab(client)

    async def idle(self) -> None:
        """Until no turn runs or waits."""
        await self.agent._turns.wait_until_idle()

    async def part(self, call_id: str = "call-1") -> dict[str, Any]:
        """The part of a call in the newest message."""
        return part_of((await self.agent.get_messages())[-1], call_id)

    def results(self) -> list[Any]:
        """What the model read of its last calls."""
        return [
            content.value
            for message in self.model.requests[-1].messages
            if message.role == "tool"
            for content in message.content
        ]


class Tab:
    """A client that can also call."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._ids = itertools.count()

    async def ask(self, text: str = "go", request: str = "q1") -> None:
        """Ask and wait for the end of that turn."""
        await self.client.ask(text, request)
        await self.client.until_end(request)

    async def decide(self, *, approved: bool = True, call_id: str = "call-1") -> None:
        """Press a button."""
        frame = {"toolCallId": call_id, "approved": approved, "autoContinue": True}
        await self.client.send(type="cf_agent_tool_approval", **frame)

    async def call(self, method: str, *args: Any) -> Any:
        """Call a method; the error is raised as a text."""
        number = f"c{next(self._ids)}"
        await self.client.send(type="rpc", id=number, method=method, args=list(args))
        frame = await self.client.until(lambda f: f.get("type") == "rpc" and f.get("id") == number)
        if not frame["success"]:
            raise RuntimeError(frame["error"])
        return frame.get("result")


@asynccontextmanager
async def desk(
    cls: type[Think] = Careful,
    *steps: Any,
    store: Path | None = None,
    hours: Hours | None = None,
) -> AsyncIterator[Desk]:
    """Serve one agent whose model plays `steps`."""
    model = ScriptedModel(steps)
    made = type(cls.__name__, (cls,), {"model": model}, name=cls.agent_class)
    async with serving(made, store=store, hours=hours) as stage:
        agent = await stage.agent(made)
        yield Desk(stage, agent, model)


def rows(path: Path, query: str) -> list[dict[str, Any]]:
    """Read the file as anybody could."""
    with sqlite3.connect(path) as link:
        link.row_factory = sqlite3.Row
        return [dict(row) for row in link.execute(query)]


async def settle_down() -> None:
    """Let what was started come to its next wait."""
    for _ in range(50):
        await asyncio.sleep(0)
