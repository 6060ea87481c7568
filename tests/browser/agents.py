"""The agents behind the bare pages: what they say is written down by the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from types import new_class
from typing import Any

from thinkwell import (
    Agent,
    Connection,
    HttpRequest,
    RpcStream,
    Think,
    ToolError,
    rpc,
    tool,
)
from thinkwell.hooks import ChatResponse
from thinkwell.testing import ScriptedModel


@dataclass
class Inside:
    """What a test and its agents share."""

    may_count: asyncio.Event = field(default_factory=asyncio.Event)
    """Lets the tool `counts` come to its end."""
    deleted: list[str] = field(default_factory=list)
    """What the tool `delete` was allowed to do."""
    ends: list[str] = field(default_factory=list)
    """How each turn ended, in order."""
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)


class Talker(Think):
    """Has a tool of every kind."""

    scripted: ScriptedModel
    inside: Inside

    def get_model(self) -> Any:
        return self.scripted

    async def on_chat_response(self, ctx: ChatResponse) -> None:
        async with self.inside.changed:
            self.inside.ends.append(ctx.status)
            self.inside.changed.notify_all()

    @tool
    async def get_weather(self, city: str) -> dict[str, str]:
        """Weather in a city."""
        return {"sky": f"{city} is sunny"}

    @tool
    async def fails(self) -> str:
        """Never works."""
        raise ToolError("no such luck")

    @tool
    async def counts(self) -> AsyncIterator[str]:
        """Shows how far it is; the test lets it go on."""
        yield "one"
        await self.inside.may_count.wait()
        yield "two"

    @tool(needs_approval=True)
    async def sweep(self) -> AsyncIterator[str]:
        """Has to be allowed, and shows how far it is."""
        yield "one"
        await self.inside.may_count.wait()
        yield "two"

    @tool(needs_approval=True)
    async def delete(self, target: str) -> str:
        """Somebody has to allow it."""
        self.inside.deleted.append(target)
        return f"{target} is gone"


class Callable(Agent):
    """A state that clients may change, and methods they may call."""

    initial_state = {"count": 0}

    def validate_state_change(self, state: Any, source: Any) -> None:
        if state["count"] < 0:
            raise ValueError("a count is never negative")

    def should_connection_be_readonly(self, connection: Connection, request: HttpRequest) -> bool:
        return "readonly" in request.query

    @rpc(read_only=True)
    def add(self, a: int, b: int) -> int:
        return a + b

    @rpc(name="addToCount")
    async def add_to_count(self, number: int) -> dict[str, int]:
        await self.set_state({"count": self.state["count"] + number})
        return self.state

    @rpc
    async def fail(self) -> None:
        raise RuntimeError("no such luck")

    @rpc
    async def count_to(self, number: int) -> AsyncIterator[int]:
        for each in range(1, number + 1):
            yield each

    @rpc(streaming=True)
    async def write(self, stream: RpcStream, word: str) -> None:
        stream.send(word)
        stream.end(f"{word}!")

    @rpc(streaming=True)
    async def write_and_fail(self, stream: RpcStream) -> None:
        stream.send("so far")
        raise RuntimeError("no such luck")

    def hidden(self) -> str:
        return "not for clients"


class Counter(Callable):
    """No chat at all."""


class Stateful(Callable, Talker):
    """A chat agent with a state."""


def classes(model: ScriptedModel, inside: Inside) -> list[type[Agent]]:
    """Classes of their own for one test, so that no test sees what another one left behind."""
    own = {"scripted": model, "inside": inside, "__module__": __name__}
    return [new_class(cls.__name__, (cls,), None, lambda body: body.update(own)) for cls in KINDS]


KINDS: tuple[type[Agent], ...] = (Talker, Stateful, Counter)
