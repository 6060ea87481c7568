"""An agent to try: `make run`, or `thinkwell chat examples/demo.py`. Ask it "What can you do?"

Without a key it runs on the built-in demo model, which needs no network. With ANTHROPIC_API_KEY or
OPENAI_API_KEY set it takes a real model and says so.
"""

import asyncio
import os
import random
import zlib
from datetime import datetime
from importlib.util import find_spec
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from thinkwell import App, Think, ToolError, rpc, tool
from thinkwell.features import Suggestions


def choose_model() -> str:
    if os.environ.get("ANTHROPIC_API_KEY"):
        if find_spec("pydantic_ai") and find_spec("anthropic"):
            return "anthropic:claude-sonnet-4-5"
        print("For the model of ANTHROPIC_API_KEY: pip install 'pydantic-ai-slim[anthropic]'")
    return "openai-chat:gpt-4.1-mini" if os.environ.get("OPENAI_API_KEY") else "demo"


MODEL = choose_model()
EMPTY = {"notes": [], "reports": 0}
SUGGESTIONS = {  # the page offers them in an empty conversation
    "A tour": "What can you do?",
    "Tools side by side": "Compare the weather in Paris and Tokyo",
    "Progress": "Build the report",
    "Your approval": "Delete the report",
    "A tool in this page": "Switch to the dark theme",
    "A long answer": "Count to 300",
}


class Assistant(Think):
    model = MODEL
    system_prompt = "You are a friendly assistant. Answer briefly. Use the tools when they help."
    initial_state = EMPTY  # every connected client sees the state and its changes
    features = (Suggestions(SUGGESTIONS),)

    @tool(effect="pure")
    async def get_weather(self, city: str) -> dict[str, object]:
        """The weather in a city right now.

        Args:
            city: Name of the city.
        """
        await asyncio.sleep(0.5)
        number = zlib.crc32(city.lower().encode())
        sky = ("sunny", "cloudy", "rainy", "windy")[number % 4]
        return {"city": city, "sky": sky, "celsius": 5 + number % 25}

    @tool(effect="pure")
    async def get_time(self, timezone: str = "UTC") -> str:
        """The time in a timezone.

        Args:
            timezone: A name such as Europe/Paris.
        """
        try:
            zone = ZoneInfo(timezone)
        except (ZoneInfoNotFoundError, ValueError) as error:
            raise ToolError(f"There is no timezone {timezone!r}.") from error
        return datetime.now(zone).strftime("%A %H:%M")

    @tool
    async def roll_dice(self) -> int:
        """Roll a dice."""
        return random.randint(1, 6)

    @tool
    async def add_note(self, text: str) -> str:
        """Keep a note in the state that every connected client sees."""
        notes = [*self.state["notes"], text]
        await self.set_state({**self.state, "notes": notes})
        return f"That is note number {len(notes)}."

    @tool
    async def build_report(self):
        """Build the report about everything. Takes a few seconds."""
        for percent in range(0, 100, 20):  # what is yielded before the end shows how far it is
            yield {"percent": percent}
            await asyncio.sleep(0.5)
        await self.set_state({**self.state, "reports": self.state["reports"] + 1})
        yield {"percent": 100, "reports": self.state["reports"]}

    @tool(needs_approval=True)
    async def delete_report(self) -> str:
        """Delete all reports. A person has to allow it."""
        await self.set_state({**self.state, "reports": 0})
        return "All reports are gone."

    @rpc
    async def forget_notes(self) -> None:
        """For buttons: `agent.call("forget_notes")` in the browser."""
        await self.set_state({**self.state, "notes": []})


app = App(agents=[Assistant])

hint = " (set ANTHROPIC_API_KEY or OPENAI_API_KEY for a real one)" if MODEL == "demo" else ""
print(f"Model: {MODEL}{hint}")
