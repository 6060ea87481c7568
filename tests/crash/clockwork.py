"""An agent with schedules, tasks and a queue, for the tests that kill its process."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.crash.model import write_line
from thinkwell import HttpRequest, Think, scheduled
from thinkwell.jobs import JobContext
from thinkwell.schedules import ScheduledTask, ScheduledTaskContext
from thinkwell.testing import ScriptedModel

FOLDER = Path(os.environ["THINKWELL_TEST_FOLDER"])


class Clockwork(Think):
    """A POST to its address calls one of its methods: `{"call": "plan", "with": 60}`."""

    model = ScriptedModel(["Done."] * 20)

    def get_scheduled_tasks(self) -> Mapping[str, ScheduledTask]:
        return {"digest": ScheduledTask("every day at 09:00 in UTC", prompt="Write the digest.")}

    @scheduled("every day at 10:00 in UTC")
    async def sweep(self, ctx: ScheduledTaskContext) -> None:
        """Leaves a line."""
        self._leave("sweep", ctx.attempt, ctx.idempotency_key)

    async def on_request(self, request: HttpRequest) -> Any:
        asked = json.loads(request.body)
        return {"answer": await getattr(self, f"ask_{asked['call']}")(asked.get("with"))}

    async def ask_wake(self, _: Any) -> None:
        """Come into being, and have the declared tasks."""
        await self.storage.set("awake", True)  # whoever only looks arms nothing
        await self.reconcile_scheduled_tasks()

    async def ask_every(self, seconds: float) -> str:
        return (await self.schedules.schedule("lasting", every=seconds)).id

    async def ask_poll(self, seconds: float) -> str:
        return (await self.schedules.schedule("poll", every=seconds)).id

    async def ask_queue(self, notes: list[str]) -> None:
        for note in notes:
            await self.schedules.queue("work", note)

    async def ask_clear(self, _: Any) -> int:
        return await self.schedules.clear_queue()

    async def lasting(self, ctx: JobContext) -> None:
        self._leave("lasting", ctx.attempt)
        await self._held()

    async def poll(self, ctx: JobContext) -> None:
        self._leave("poll", ctx.attempt)
        await self.schedules.cancel(ctx.id)

    async def work(self, note: str, ctx: JobContext) -> None:
        self._leave(note, ctx.attempt)
        await self._held()

    async def _held(self) -> None:
        while (FOLDER / "hold-job").exists():
            await asyncio.sleep(0.001)

    def _leave(self, what: str, attempt: int, key: str | None = None) -> None:
        write_line(FOLDER / "clock.jsonl", {"what": what, "attempt": attempt, "key": key})
