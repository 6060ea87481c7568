"""Typed timetables, prompts and handlers of declared tasks, and what schedules give (M-084)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import assert_type

from thinkwell import Think, scheduled
from thinkwell.schedules import (
    RetryOptions,
    Schedule,
    ScheduledTask,
    ScheduledTaskContext,
    TaskState,
    define_scheduled_tasks,
    every,
)

TASKS = define_scheduled_tasks(
    {
        "digest": ScheduledTask(every.weekday.at(9, 30, "Europe/Berlin"), prompt="Write it."),
        "report": ScheduledTask(every.week_on("mon", "thu").at(18), prompt=lambda ctx: ctx.task_id),
        "poll": ScheduledTask(every.minutes(15), handler=lambda: None, retry={"max_attempts": 2}),
        "text": ScheduledTask("every day at 09:00", timezone="UTC", prompt="Good morning."),
    }
)
assert_type(TASKS, Mapping[str, ScheduledTask])


class Clerk(Think):
    model = "demo"

    def get_scheduled_tasks(self) -> Mapping[str, ScheduledTask]:
        clean = ScheduledTask(every.hour, handler=self.clean_up, metadata={"team": "a"})
        return {**TASKS, "clean": clean}

    @scheduled(every.day.at(4, timezone="UTC"), retry=RetryOptions(max_attempts=5))
    async def sweep(self, ctx: ScheduledTaskContext) -> None:
        assert_type(ctx.scheduled_for_date, datetime)

    @scheduled("every 5 minutes")
    async def look(self) -> None: ...

    async def clean_up(self, ctx: ScheduledTaskContext) -> None:
        print(ctx.idempotency_key)

    async def remind(self, payload: dict[str, str]) -> None: ...

    async def plan(self) -> None:
        made = await self.schedules.schedule(self.remind, {"to": "ann"}, delay=timedelta(hours=1))
        assert_type(made, Schedule)
        await self.schedules.schedule("remind", at=datetime(2030, 1, 1, tzinfo=UTC))
        await self.schedules.schedule("remind", every=60, retry={"max_attempts": 1})
        assert_type(await self.schedules.tasks(), Sequence[TaskState])
        assert_type(await self.schedules.cancel(made.id), bool)
