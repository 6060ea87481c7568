"""The example does what it says."""

from __future__ import annotations

import importlib.util
from datetime import UTC, datetime
from typing import Any

from tests.architecture.support import ROOT
from tests.jobs.support import Hours, serving


def concierge() -> Any:
    spec = importlib.util.spec_from_file_location("reminders", ROOT / "examples" / "reminders.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Concierge


async def test_reminders_come_in_time_and_letters_in_order():
    cls = concierge()
    hours = Hours(datetime(2026, 3, 28, 12, 0, tzinfo=UTC).timestamp())
    async with serving(cls, hours=hours) as stage:
        agent = await stage.agent(cls)
        assert [task.name for task in await agent.schedules.tasks()] == [
            "digest",
            "forget_old_letters",
        ]
        await agent.remind("call Ada", 5)
        await agent.remind("water the plants", 10)
        hours.move(300)
        await stage.until("job:finished", 2)
        hours.move(300)
        await stage.until("job:finished", 4)
        assert await agent.storage.get("sent") == ["call Ada", "water the plants"]
