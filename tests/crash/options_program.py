"""A program that asks for a turn with options, is killed inside it, and looks at it when it lives
again: `options_program.py STORE WHAT` dies, with the turn's id behind it tells what came of it.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from typing import Any

from pydantic import BaseModel, field_validator

from thinkwell import App, Think
from thinkwell.testing import ScriptedModel


class City(BaseModel):
    name: str

    @field_validator("name")
    @classmethod
    def shout(cls, name: str) -> str:
        return name.upper()


def double(number: int) -> int:
    """Doubles a number."""
    return number * 2


NAMED = {"model": "openai-chat:m", "max_steps": 1, "body": {"city": "Oslo"}, "output": City}
OPTIONS: dict[str, dict[str, Any]] = {
    "data": NAMED,
    "tool": {**NAMED, "tools": [double]},
    "model": {"model": ScriptedModel(["never"])},
}


class Clerk(Think):
    model = ScriptedModel([])  # has no answer: whoever asks it in place of the other one fails
    found: Any = None

    async def before_turn(self, ctx: Any) -> None:
        if len(sys.argv) == 3:
            print(ctx.request_id, flush=True)  # noqa: T201
            os.kill(os.getpid(), signal.SIGKILL)
        self.found = dict(ctx.body or {})

    async def look(self, request_id: str) -> Any:
        turn = await self._turns.find(request_id)
        return turn and {"output": turn.output, "body": self.found}


async def main(store: str, what: str, request_id: str = "") -> None:
    async with App(agents=[Clerk], store=f"sqlite:///{store}") as app:
        agent = app.agent(Clerk)
        if not request_id:
            await agent.run("which?", **OPTIONS[what])
        await agent.wait_until_stable()
        turn = await agent.get_turn(request_id)
        seen = {"status": turn.status, "error": turn.error, "attempt": turn.attempt}
        print(json.dumps({**seen, **await agent.look(request_id)}))  # noqa: T201


asyncio.run(main(*sys.argv[1:]))
