"""Methods of a feature that say what they are: `@tool`, `@hook`, `@rpc` need no second list."""

from __future__ import annotations

from typing import Any

import pytest

from tests.turns.support import Client, running
from thinkwell import Think, rpc, tool
from thinkwell.core.errors import AgentDefinitionError, FeatureError
from thinkwell.features import Feature
from thinkwell.hooks import hook
from thinkwell.testing import call


class Diary(Feature):
    """Lists nothing."""

    name = "diary"

    def __init__(self) -> None:
        self.seen: list[str] = []

    @tool
    async def write(self, text: str) -> str:
        """Write into the diary."""
        self.seen.append(text)
        return "written"

    async def on_turn_start(self, ctx: Any) -> None:
        self.seen.append("start")

    @hook("on_chat_done")
    async def first(self, ctx: Any) -> None:
        self.seen.append("first")

    @hook("on_chat_done")
    async def second(self, ctx: Any) -> None:
        self.seen.append("second")

    @rpc(name="readDiary", read_only=True)
    async def read(self) -> list[str]:
        return self.seen


def keeping(feature: Feature) -> type[Think]:
    class Keeper(Think):
        features = [feature]
        expose_errors = True

    return Keeper


async def ask(client: Client, method: str) -> dict[str, Any]:
    await client.send(type="rpc", id=method, method=method, args=[])
    return await client.until(lambda f: f.get("id") == method)


async def test_what_is_marked_is_a_tool_a_hook_and_a_call():
    async with running(keeping(Diary()), [call("write", {"text": "milk"})], "ok") as stage:
        assert (await stage.agent.run("hello")).status == "completed"
        client = await stage.connect()
        assert (await ask(client, "readDiary"))["result"] == ["start", "milk", "first", "second"]


async def test_what_is_listed_as_well_counts_once_and_under_the_listed_name():
    class Listing(Diary):
        def hooks(self) -> dict[str, Any]:
            return {"on_turn_start": self.on_turn_start, "on_chat_done": self.second}

        def calls(self) -> dict[str, Any]:
            return {"getDiary": self.read}

    async with running(keeping(Listing()), "ok") as stage:
        await stage.agent.run("hello")
        client = await stage.connect()
        assert (await ask(client, "getDiary"))["result"] == ["start", "second", "first"]
        assert "error" in await ask(client, "readDiary")


async def test_tools_decides_about_each_turn_where_a_feature_has_it():
    class Choosy(Diary):
        open = False

        def tools(self, turn: Any) -> Any:
            return super().tools(turn) if self.open else {}

    async with running(keeping(Choosy()), "1", "2") as stage:
        await stage.agent.run("closed")
        Choosy.open = True
        await stage.agent.run("open")
        offered = [[tool.name for tool in request.tools] for request in stage.model.requests]
        assert offered == [[], ["write"]]


async def test_an_override_without_the_mark_is_no_call_any_more():
    class Private(Diary):
        async def read(self) -> list[str]:
            return []

    async with running(keeping(Private())) as stage:
        assert "error" in await ask(await stage.connect(), "readDiary")


async def test_a_marked_call_that_the_class_has_is_refused_and_both_are_named():
    class Twice(Think):
        features = [Diary()]

        @rpc(name="readDiary")
        def own(self) -> None: ...

    with pytest.raises(AgentDefinitionError, match="both Twice and `read` of the feature 'diary'"):
        async with running(Twice):
            pass


async def test_a_marked_call_that_the_feature_lists_for_another_is_refused():
    class Twice(Diary):
        def calls(self) -> dict[str, Any]:
            return {"readDiary": self.other}

        async def other(self) -> None: ...

    with pytest.raises(AgentDefinitionError, match=r"'readDiary'.*`read` of the feature 'diary'"):
        async with running(keeping(Twice())):
            pass


def test_two_marked_calls_of_one_name_are_refused_when_the_class_is_made():
    class Twice(Diary):
        @rpc(name="readDiary")
        async def again(self) -> None: ...

    with pytest.raises(AgentDefinitionError, match=r"Twice\.read and Twice\.again are both called"):
        keeping(Twice())


async def test_two_marked_tools_of_one_name_fail_the_turn_and_both_are_named():
    class Twice(Diary):
        @tool(name="write")
        async def again(self) -> None:
            """The same."""

    async with running(keeping(Twice()), "ok") as stage:
        error = (await stage.agent.run("hello")).error or ""
        assert "'diary' failed in tools" in error
        assert "write and again of Twice" in error


def test_a_method_with_another_name_of_a_moment_is_refused():
    class Old(Feature):
        name = "old"

        async def on_chat_start(self, ctx: Any) -> None: ...

    with pytest.raises(AgentDefinitionError, match=r"Old\.on_chat_start.*'on_turn_start'"):
        keeping(Old())


async def test_a_job_that_could_not_be_called_keeps_the_agent_from_waking():
    class Clerk(Feature):
        name = "clerk"

        def jobs(self) -> Any:
            return {"file": self.file}

        async def file(self, payload: Any) -> None: ...

    with pytest.raises(FeatureError, match=r"'clerk' failed in jobs.*'file'.*\(self, payload, ctx"):
        async with running(keeping(Clerk())):
            pass
