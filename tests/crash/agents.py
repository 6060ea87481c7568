"""The agents a crash test serves: every tool leaves a line each time it runs.

The folder of the test, named by THINKWELL_TEST_FOLDER, holds the store, the lines, and the files
whose existence makes the model (`hold:X`) or a tool (`hold-tool`) wait, or a hook kill the process
once (`die-in-<hook>`) or always (`always-die-in-<hook>`).
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from tests.crash.clockwork import Clockwork
from tests.crash.model import PlannedModel, write_line
from thinkwell import Agent, App, ChatRecovery, HttpRequest, ModelLimits, Think, ToolContext, tool
from thinkwell.core.ids import new_id
from thinkwell.fibers import FiberContext, FiberRecovery, fiber
from thinkwell.hooks.contexts import ChatResponse, ChunkContext, StepContext, StepFinishContext
from thinkwell.jobs import JobContext
from thinkwell.session.session import Session

FOLDER = Path(os.environ["THINKWELL_TEST_FOLDER"])


async def effect(note: str, ctx: ToolContext) -> None:
    """What a tool does to the world; then it waits as long as `hold-tool` exists."""
    line = {"tool": ctx.tool_name, "note": note, "key": ctx.idempotency_key, "pid": os.getpid()}
    write_line(FOLDER / "effects.jsonl", line)
    while (FOLDER / "hold-tool").exists():
        await asyncio.sleep(0.001)


def die_once(place: str) -> None:
    """Kill the process if the test asked for it, the first time only."""
    order = FOLDER / f"die-in-{place}"
    if order.exists():
        order.unlink()
        os.kill(os.getpid(), signal.SIGKILL)


def die_always(place: str) -> None:
    """Kill every process that comes here while the test wants it."""
    if (FOLDER / f"always-die-in-{place}").exists():
        os.kill(os.getpid(), signal.SIGKILL)


class Talker(Think):
    model = PlannedModel(FOLDER)

    @tool
    async def once(self, note: str, ctx: ToolContext) -> str:
        """An effect nobody declared safe to repeat."""
        await effect(note, ctx)
        return f"did {note}"

    @tool(effect="idempotent")
    async def idempotent(self, note: str, ctx: ToolContext) -> str:
        """An effect the destination knows by its key."""
        await effect(note, ctx)
        return f"did {note}"

    @tool(effect="pure")
    async def pure(self, note: str, ctx: ToolContext) -> str:
        """No effect at all."""
        await effect(note, ctx)
        return f"did {note}"

    @tool(effect="pure")
    async def growing(self, note: str, ctx: ToolContext) -> AsyncIterator[str]:
        """A result that grows."""
        yield "begun"
        await effect(note, ctx)
        yield f"did {note}"

    @tool(effect="tx")
    async def book(self, note: str, ctx: ToolContext) -> str:
        """Writes a row of its own each time it runs, and counts them."""
        await self.storage.set(f"row/{new_id()}", note)
        await self.storage.set("count", await self.storage.get("count", 0) + 1)
        await effect(note, ctx)
        return f"did {note}"

    async def on_chat_response(self, ctx: ChatResponse) -> None:
        line = {"request": ctx.request_id, "again": ctx.redelivered, "status": ctx.status}
        write_line(FOLDER / "responses.jsonl", line)


class Watched(Talker):
    """Has the hooks that run while the answer is made."""

    async def on_chunk(self, ctx: ChunkContext) -> None:
        await asyncio.sleep(0)
        die_once(f"chunk-{ctx.chunk['type']}")

    async def on_step_finish(self, ctx: StepFinishContext) -> None:
        die_once(f"step-{ctx.step_number}")


class Poisoned(Talker):
    """Has tools and hooks that kill every process they run in."""

    @tool(effect="idempotent")
    async def kill(self, note: str, ctx: ToolContext) -> str:
        """Never comes back."""
        await effect(note, ctx)
        os.kill(os.getpid(), signal.SIGKILL)
        return "never"

    @tool(effect="pure")
    async def kill_late(self, note: str, ctx: ToolContext) -> AsyncIterator[str]:
        """Shows something of a result first."""
        yield f"begun by {os.getpid()}"
        await asyncio.sleep(0.05)  # until that is stored
        await effect(note, ctx)
        os.kill(os.getpid(), signal.SIGKILL)
        yield "never"

    async def before_step(self, ctx: StepContext) -> None:
        if ctx.request_id == "poison":
            die_always("before_step")

    def on_chunk(self, ctx: ChunkContext) -> None:
        if ctx.chunk["type"] == "text-start" and ctx.request_id == "poison":
            die_always("on_chunk")


class Doomed(Talker):
    """Has a start that kills every process it runs in."""

    def configure_session(self, session: Session) -> Session:
        die_always("configure_session")
        return session

    async def on_start(self) -> None:
        die_always("on_start")


class Shelf:
    """Documents to load."""

    def get(self) -> str:
        return "- doc"

    def load(self, key: str) -> str:
        return f"the text of {key}"


class Rememberer(Talker):
    """Has context blocks."""

    def configure_session(self, session: Session) -> Session:
        session.with_context("soul", "You remember.").with_context("skills", Shelf())
        return session.with_context("memory").with_cached_prompt()


class Fragile(Talker):
    """Gives up soon."""

    chat_recovery = ChatRecovery(max_attempts=2)


class Brief(Talker):
    """May call its model once."""

    max_steps = 1


class Worker(Agent):
    """Has jobs. A POST to its address enqueues one, or cancels it."""

    async def on_request(self, request: HttpRequest) -> Any:
        asked = json.loads(request.body)
        if "cancel" in asked:
            (job,) = await self.jobs.list(name=asked["cancel"])
            return {"cancelled": await self.jobs.cancel(job.id)}
        job = await self.jobs.enqueue(asked["job"], asked.get("payload"), key=asked["job"])
        return {"id": job.id}

    async def simple(self, ctx: JobContext) -> None:
        """Leaves a line."""
        self._leave(ctx)

    async def stepwise(self, ctx: JobContext) -> None:
        """Three steps, each stashed."""
        for step in range((ctx.stashed or 0) + 1, 4):
            self._leave(ctx, step)
            await ctx.stash(step)

    async def failing(self, ctx: JobContext) -> None:
        """Fails once."""
        self._leave(ctx)
        if ctx.attempt == 1:
            raise ConnectionError("not yet")

    async def lasting(self, ctx: JobContext) -> None:
        """Runs until it is cancelled, or `hold-job` is gone."""
        self._leave(ctx)
        while (FOLDER / "hold-job").exists() and not ctx.signal.aborted:
            await asyncio.sleep(0.001)

    async def deadly(self, ctx: JobContext) -> None:
        """Kills every process it runs in."""
        self._leave(ctx)
        os.kill(os.getpid(), signal.SIGKILL)

    def _leave(self, ctx: JobContext, step: int = 0) -> None:
        line = {"job": ctx.name, "attempt": ctx.attempt, "step": step, "id": ctx.id}
        write_line(FOLDER / "jobs.jsonl", line)


class Careful(Think):
    """Asks before it does anything."""

    model = PlannedModel(FOLDER)

    @tool(needs_approval=True, effect="idempotent")
    async def growing(self, note: str, ctx: ToolContext) -> AsyncIterator[str]:
        """A result that grows once somebody has allowed it."""
        yield "begun"
        await effect(note, ctx)
        yield f"did {note}"

    @tool(needs_approval=True)
    async def once(self, note: str, ctx: ToolContext) -> str:
        """An effect somebody has to allow."""
        await effect(note, ctx)
        return f"did {note}"

    @tool(needs_approval=True, approval_expires=0.1)
    async def hasty(self, note: str, ctx: ToolContext) -> str:
        """An effect somebody has to allow at once."""
        await effect(note, ctx)
        return f"did {note}"


class Weaver(Talker):
    """Has fibers. A POST to its address starts one: `{"method": ...}` or `{"closure": ...}`."""

    async def on_request(self, request: HttpRequest) -> Any:
        asked = json.loads(request.body)
        if "method" in asked:
            started = await self.start_fiber("weave", idempotency_key="weave")
        else:
            started = await self.start_fiber("loose", self._loose, idempotency_key="loose")
        return {"id": started.fiber_id, "accepted": started.accepted}

    @fiber("weave")
    async def weave(self, ctx: FiberContext) -> None:
        """Three steps, each stashed."""
        await self._steps(ctx)

    async def _loose(self, ctx: FiberContext) -> None:
        await self._steps(ctx)

    async def _steps(self, ctx: FiberContext) -> None:
        for step in range((ctx.snapshot or 0) + 1, 4):
            write_line(FOLDER / "fibers.jsonl", {"step": step, "attempt": ctx.attempt})
            await ctx.stash(step)

    async def on_fiber_recovered(self, ctx: FiberRecovery) -> Any:
        write_line(FOLDER / "recovered.jsonl", {"name": ctx.name, "snapshot": ctx.snapshot})
        return {"status": "aborted", "reason": f"cut at {ctx.snapshot}"}


class Queued(Think):
    """One model call at a time, in all its agents together."""

    model = PlannedModel(FOLDER, "narrow")


app = App(
    agents=[
        *(Talker, Watched, Poisoned, Doomed, Fragile, Brief, Worker, Careful, Weaver, Clockwork),
        Queued,
        Rememberer,
    ],
    model_limits={"planned:narrow": ModelLimits(parallel=1)},
)
