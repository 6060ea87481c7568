"""A concierge that keeps its promises: reminders, a daily question, and letters sent in order.

thinkwell serve examples/reminders.py
"""

from __future__ import annotations

from collections.abc import Mapping

from thinkwell import App, Think, scheduled, tool
from thinkwell.schedules import ScheduledTask, ScheduledTaskContext, every


class Concierge(Think):
    """Ask it: "Remind me in 5 minutes to call Ada"."""

    model = "demo"

    def get_default_timezone(self) -> str:
        return "Europe/Berlin"

    def get_scheduled_tasks(self) -> Mapping[str, ScheduledTask]:
        return {"digest": ScheduledTask(every.weekday.at(9, 30), prompt="What is due today?")}

    @tool
    async def remind(self, text: str, minutes: float) -> str:
        """Remind the guest of something later.

        Args:
            text: What to say then.
            minutes: In how many minutes.
        """
        await self.schedules.schedule(self.say, text, delay=60 * minutes)
        return f"I will say so in {minutes:g} minutes."

    async def say(self, text: str) -> None:
        """A reminder is due: whoever is connected hears it, and letters go out in order."""
        self.broadcast({"reminder": text})
        await self.schedules.queue(self.send_letter, text)

    async def send_letter(self, text: str) -> None:
        """One at a time, in the order they were asked for."""
        sent = await self.storage.get("sent", [])
        await self.storage.set("sent", [*sent, text])

    @scheduled("every day at 03:00")
    async def forget_old_letters(self, ctx: ScheduledTaskContext) -> None:
        """At night; `ctx.occurrence_key` says for which one."""
        sent = await self.storage.get("sent", [])
        await self.storage.set("sent", sent[-100:])


app = App(agents=[Concierge])
