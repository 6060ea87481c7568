"""A feature as somebody else would write it: one file, public names only.

A notebook: the model can take notes, a job files each of them, and clients see them. It uses
everything a feature can bring.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from thinkwell import Connection, HttpResponse, rpc, tool
from thinkwell.features import Feature, Kit, Refusal, Route, RouteRequest
from thinkwell.hooks import ChatResponse, HookContext
from thinkwell.jobs import JobContext


class Notebook(Feature):
    """Notes that outlive the conversation."""

    name = "notebook"

    def __init__(self, closed: Callable[[], bool] = lambda: False) -> None:
        self.closed = closed
        """Whether the filing room is closed just now."""

    async def on_boot(self, kit: Kit) -> None:
        self.notes: list[str] = await kit.storage.get("notes", [])

    # A tool and a line of the prompt

    @tool(effect="idempotent")
    async def take_note(self, text: str) -> str:
        """Remember something for later."""
        await self._take(text)
        return f"That is note {len(self.notes)}."

    def tools(self, turn: HookContext) -> Mapping[str, Any]:
        return {"take_note": self.take_note}

    def prompt(self, turn: HookContext) -> str:
        return f"Your notebook holds {len(self.notes)} notes."

    async def _take(self, text: str) -> None:
        self.notes.append(text)
        await self.kit.storage.set("notes", self.notes)
        await self.kit.enqueue("file", text, key=f"file:{text}")

    # A hook

    def hooks(self) -> Mapping[str, Callable[..., Any]]:
        return {"on_chat_response": self.count_turn}

    async def count_turn(self, ctx: ChatResponse) -> None:
        turns = await self.kit.storage.get("turns", 0) + 1
        await self.kit.storage.set("turns", turns)
        self.kit.broadcast({"type": "notebook:turn", "status": ctx.status, "turns": turns})

    # A job

    def jobs(self) -> Mapping[str, Callable[..., Any]]:
        return {"file": self.file}

    async def file(self, text: str, ctx: JobContext) -> None:
        self.kit.broadcast({"type": "notebook:filing", "note": text, "attempt": ctx.attempt})
        while self.closed():
            await asyncio.sleep(0.01)
        await self.kit.storage.set(f"filed:{text}", {"attempt": ctx.attempt})
        self.kit.broadcast({"type": "notebook:filed", "note": text})

    # A call of clients

    def calls(self) -> Mapping[str, Callable[..., Any]]:
        return {"listNotes": self.list_notes}

    @rpc(read_only=True)
    async def list_notes(self, last: int = 10) -> list[str]:
        return self.notes[-last:]

    # HTTP

    def routes(self) -> Sequence[Route]:
        return [
            Route("GET", "notes/{number}", self.get_note),
            Route("POST", "notes", self.add_note),
        ]

    async def get_note(self, request: RouteRequest) -> HttpResponse:
        number = request.params["number"]
        if not number.isdigit() or int(number) >= len(self.notes):
            raise Refusal(404, f"There is no note {number}.")
        text = self.notes[int(number)]
        filed = await self.kit.storage.get(f"filed:{text}")
        body = json.dumps({"text": text, "filed": filed}).encode()
        return HttpResponse(body=body, content_type="application/json")

    async def add_note(self, request: RouteRequest) -> HttpResponse:
        await self._take(request.request.body.decode())
        return HttpResponse(status=201)

    # A frame for whoever connects

    def greet(self, connection: Connection) -> Sequence[str]:
        return [json.dumps({"type": "notebook", "notes": len(self.notes)})]
