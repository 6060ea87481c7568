"""A diary that knows what you told it: the model looks things up, and so does the page.

thinkwell serve examples/diary.py
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from thinkwell import App, Think, rpc
from thinkwell.features import Search


class Diary(Think):
    """Tell it about your days. Months later, ask: "When did I last see Ada?" """

    model = "demo"
    system_prompt = (
        "You keep a diary for one person. Look things up before you say you do not know."
    )
    features = (Search(clients=True),)
    search: Search

    @rpc(read_only=True)
    async def last_time(self, words: str) -> str:
        """When something was last mentioned, as the page shows it."""
        hits = await self.search(words, mode="all", roles="user", limit=1)
        if not hits:
            return "never"
        day = datetime.fromtimestamp(hits[0].created_at, UTC)
        return f"{day:%Y-%m-%d}: {hits[0].snippet}"

    async def this_week(self, words: str) -> list[str]:
        """What was said about something in the last seven days."""
        since = datetime.now(UTC) - timedelta(days=7)
        return [hit.text for hit in await self.search(words, after=since)]


app = App(agents=[Diary])
