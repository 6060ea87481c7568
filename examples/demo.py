"""An agent to try: `thinkwell serve examples/demo.py`, or `thinkwell chat examples/demo.py`.

Without a key it runs on the built-in demo model, which needs no network. With OPENAI_API_KEY set it
takes a real model and says so.
"""

import os
import zlib
from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from thinkwell import App, Think, ToolError, tool

MODEL = "openai-chat:gpt-4o-mini" if os.environ.get("OPENAI_API_KEY") else "demo"


class Assistant(Think):
    model = MODEL
    system_prompt = "You are a friendly assistant. Answer briefly. Use the tools when they help."

    @tool(effect="pure")
    async def get_weather(self, city: str) -> dict[str, object]:
        """The weather in a city right now.

        Args:
            city: Name of the city.
        """
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


app = App(agents=[Assistant])
print(f"Model: {MODEL}" + (" (set OPENAI_API_KEY for a real one)" if MODEL == "demo" else ""))
