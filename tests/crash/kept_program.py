"""A program whose agent talks to a provider that keeps its answers.

`kept_program.py STORE ask` asks and is killed, `stop` asks and stops it at its first word, `look`
waits for the end of the turn, `stay` also for a file `STORE.seen`. Each prints what clients were
told of the turn. `THINKWELL_TEST_PROMPT` is the agent's prompt.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from thinkwell import App, Think, tool
from thinkwell.journal.tail import Chunks
from thinkwell.models import OpenAIModel

TURN = "q1"


class Keeper(Think):
    system_prompt = os.environ.get("THINKWELL_TEST_PROMPT", "You look things up.")
    model = OpenAIModel("m", api_key="k", background=True)

    @tool(effect="pure")
    async def look(self, what: str) -> str:
        """Looks something up."""
        return f"found {what}"

    async def follow(self, *, stops: bool) -> None:
        """Print every chunk as clients are told of it; `stops`: stop the turn at its first word."""
        async for event in self._turns.tail(TURN):
            if isinstance(event, Chunks):
                for body in event.bodies:
                    print("told", body, flush=True)  # noqa: T201
                    if stops and "text-delta" in body:
                        await self.cancel_chat(TURN)


async def main(store: str, what: str) -> None:
    async with App(agents=[Keeper], store=f"sqlite:///{store}") as app:
        agent: Any = app.agent(Keeper)
        if what in ("look", "stay"):
            await agent.wait_until_stable()
        else:
            await agent.submit("look it up", submission_id=TURN)
        await agent.follow(stops=what == "stop")
        await agent.wait_until_stable()
        turn = await agent.get_turn(TURN)
        seen = {"status": turn.status, "error": turn.error, "attempt": turn.attempt}
        print("end", json.dumps(seen), flush=True)  # noqa: T201
        while what == "stay" and not Path(f"{store}.seen").exists():
            await asyncio.sleep(0.01)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
