"""Tools with the effect `tx`: what they write is stored with their result (DESIGN §8.9)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.turns.support import Stage, running
from thinkwell import Think, tool
from thinkwell.core.errors import ToolDefinitionError, ToolError
from thinkwell.jobs import JobContext
from thinkwell.messages.message import tool_parts
from thinkwell.testing import call
from thinkwell.tools import Tool


class Books(Think):
    seen: Any = None
    late: asyncio.Task[None] | None = None

    @tool(effect="tx")
    async def book(self, title: str) -> str:
        """Put a book on the shelf."""
        await self.storage.set(f"book/{title}", 1)
        await self.storage.set("count", await self.storage.get("count", 0) + 1)
        await asyncio.sleep(0)
        return f"{await self.storage.get('count')} on the shelf"

    @tool(effect="tx")
    async def look(self, title: str) -> list[str]:
        """Change several things and list them."""
        await self.storage.set("book/b", 2)
        await self.storage.delete("book/a")
        await self.storage.set(f"book/{title}", 3)
        self.seen = {
            "outside": await other_task(self),
            "deleted": await self.storage.get("book/a", "gone"),
            "page": list(await self.storage.list("book/", limit=1)),
            "rest": list(await self.storage.list("book/", after="book/b")),
        }
        return list(await self.storage.list("book/"))

    @tool(effect="tx")
    async def fail(self, title: str) -> str:
        """Write, then fail."""
        await self.storage.set(f"book/{title}", 1)
        raise ToolError("The shelf is full.")

    @tool(effect="tx", timeout=0.01)
    async def hang(self, title: str) -> str:
        """Write, then never end."""
        await self.storage.set(f"book/{title}", 1)
        await asyncio.Event().wait()
        return "never"

    @tool(effect="tx")
    async def gather(self, title: str) -> str:
        """Write from tasks, one of which goes on."""
        await asyncio.gather(*(self.storage.set(f"book/{title}{n}", n) for n in range(3)))
        released = asyncio.Event()

        async def go_on() -> None:
            await released.wait()
            await self.storage.set("book/late", 1)

        self.late = asyncio.get_running_loop().create_task(go_on())
        self.seen = released
        return "done"

    @tool(effect="tx")
    async def undo(self, title: str) -> str:
        """A block inside the call that fails takes only itself back."""
        await self.storage.set("book/kept", 1)
        try:
            async with self.storage.together():
                await self.storage.set(f"book/{title}", 1)
                raise ValueError("never mind")
        except ValueError:
            return str(await self.storage.get(f"book/{title}"))

    @tool(effect="tx")
    async def order(self, title: str) -> str:
        """A job goes with the writes."""
        await self.storage.set("ordered", title)
        await self.jobs.enqueue("deliver", {"title": title}, key=title)
        return "ordered"

    async def deliver(self, ctx: JobContext) -> None:
        await self.storage.set("delivered", await self.storage.get("ordered"))


async def other_task(agent: Books) -> dict[str, Any]:
    """What is committed, as somebody outside the call sees it."""
    rows = await agent._turns.parts.store.fetch_all(  # pyright: ignore[reportPrivateUsage]
        "list_stored",
        {
            "agent": "books/x",
            "owner": "agent",
            "prefix": "book/",
            "stop": "book0",
            "after": "",
            "limit": 99,
        },
    )
    return {row["key"]: row["value"] for row in rows}


async def results(stage: Stage[Books]) -> list[Any]:
    """What the calls gave: the output, or the text of the error."""
    parts = [part for message in await stage.messages() for part in tool_parts(message)]
    return [part.get("output", part.get("errorText")) for part in parts]


async def books(agent: Books) -> list[str]:
    return list(await agent.storage.list("book/"))


async def test_its_writes_are_there_with_the_result():
    steps = [call("book", {"title": "a"})], [call("book", {"title": "b"})], "Done."
    async with running(Books, *steps) as stage:
        await stage.agent.run("two books")
        assert await results(stage) == ["1 on the shelf", "2 on the shelf"]
        assert await books(stage.agent) == ["book/a", "book/b"]


async def test_reads_inside_the_call_see_its_own_writes_and_nobody_else_does():
    async with running(Books, [call("look", {"title": "c"})], "Done.") as stage:
        await stage.agent.storage.set("book/a", 1)
        await stage.agent.run("look")
        assert await results(stage) == [["book/b", "book/c"]]
        assert stage.agent.seen == {
            "outside": {"book/a": "1"},
            "deleted": "gone",
            "page": ["book/b"],
            "rest": ["book/c"],
        }
        assert await stage.agent.storage.list("book/") == {"book/b": 2, "book/c": 3}


async def test_a_tool_that_fails_writes_nothing():
    async with running(Books, [call("fail", {"title": "a"})], "Sorry.") as stage:
        await stage.agent.run("a book")
        assert await results(stage) == ["The shelf is full."]
        assert await books(stage.agent) == []


async def test_a_tool_that_is_stopped_writes_nothing_and_may_be_called_again():
    steps = [call("hang", {"title": "a"})], [call("hang", {"title": "a"})], "Sorry."
    async with running(Books, *steps) as stage:
        await stage.agent.run("a book")
        assert await results(stage) == ["Tool 'hang' did not finish within 0.01 s."] * 2
        assert await books(stage.agent) == []
        row = await stage.agent._turns.parts.store.fetch_all(  # pyright: ignore[reportPrivateUsage]
            "open_calls", {"agent": "books/x", "tool": "hang"}
        )
        assert row == []


async def test_tasks_of_the_tool_write_with_it_until_it_ends():
    async with running(Books, [call("gather", {"title": "t"})], "Done.") as stage:
        agent = stage.agent
        await agent.run("three books")
        assert await books(agent) == ["book/t0", "book/t1", "book/t2"]
        agent.seen.set()
        assert agent.late is not None
        with pytest.raises(RuntimeError, match="'gather' has ended, and its effect is 'tx'"):
            await agent.late
        assert "book/late" not in await books(agent)


async def test_a_block_inside_that_raises_takes_back_its_own_writes_only():
    async with running(Books, [call("undo", {"title": "a"})], "Done.") as stage:
        await stage.agent.run("a book")
        assert await results(stage) == ["None"]
        assert await books(stage.agent) == ["book/kept"]


async def test_a_job_it_enqueues_is_stored_with_its_writes_and_runs():
    async with running(Books, [call("order", {"title": "a"})], "Done.") as stage:
        await stage.agent.run("order it")
        while await stage.agent.storage.get("delivered") is None:
            await asyncio.sleep(0.001)
        assert await stage.agent.storage.get("delivered") == "a"


def test_an_ordinary_function_cannot_be_tx():
    with pytest.raises(ToolDefinitionError, match=r"is no coroutine function.*`async def add`"):

        class Wrong(Think):
            @tool(effect="tx")
            def add(self, title: str) -> None:
                """Add a book."""

    with pytest.raises(ToolDefinitionError, match="effect='tx'"):
        Tool(
            name="add",
            description="",
            input_schema={"type": "object"},
            execute=lambda value, ctx: None,
            validate=lambda value: value,
            effect="tx",
            blocking=True,
        )
