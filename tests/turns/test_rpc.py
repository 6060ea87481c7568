"""Methods that clients call (spec/01 §5, cases 10-13; DESIGN §4 `@rpc`)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.turns.support import Client, running
from thinkwell import AbortTurn, RpcStream, Think, rpc, tool
from thinkwell.agent import connections
from thinkwell.core.errors import AgentDefinitionError
from thinkwell.core.ids import new_id
from thinkwell.testing import pause


@dataclass
class Item:
    name: str
    when: datetime


class Library(Think):
    """Methods of every kind."""

    async def on_start(self) -> None:
        self.gate = asyncio.Event()
        self.closed = asyncio.Event()
        self.writers: list[RpcStream] = []

    @rpc
    async def add(self, a: int, b: int = 1) -> int:
        return a + b

    @rpc
    def shout(self, word: str) -> str:
        return word.upper()

    @rpc
    async def nothing(self) -> None:
        return None

    @rpc(name="addItem")
    async def add_item(self, item: Item) -> Item:
        return item

    @rpc
    async def total(self, *numbers: int) -> int:
        return sum(numbers)

    @rpc
    async def wait(self, word: str) -> str:
        await self.gate.wait()
        return word

    @rpc
    async def who(self) -> list[Any]:
        assert self.caller is not None
        await asyncio.sleep(0)
        return [self.caller.id, self.caller.principal]

    @rpc
    async def fails(self) -> None:
        raise RuntimeError("no more shelves")

    @rpc
    async def fails_silently(self) -> None:
        raise RuntimeError

    @rpc
    async def stops(self) -> None:
        raise AbortTurn("not a turn")

    @rpc
    async def is_cancelled(self) -> None:
        raise asyncio.CancelledError

    @rpc
    async def gives(self, what: str) -> Any:
        odd: dict[str, Any] = {"set": {1}, "class": object(), "nan": float("nan")}
        return odd[what]

    @rpc
    async def count(self, upto: int) -> AsyncIterator[int]:
        for n in range(upto):
            yield n

    @rpc
    async def count_and_fail(self) -> AsyncIterator[int]:
        yield 1
        raise RuntimeError("lost count")

    @rpc
    async def count_for_ever(self) -> AsyncIterator[int]:
        try:
            while True:
                yield 1
                await self.gate.wait()
        finally:
            self.closed.set()

    @rpc(streaming=True)
    async def write(self, out: RpcStream, *words: str) -> str:
        for word in words:
            assert out.send(word)
        return "is not sent"

    @rpc(streaming=True)
    async def write_to_the_end(self, out: RpcStream) -> None:
        self.writers.append(out)
        out.send("a")
        out.end("z")
        out.send("after")

    @rpc(streaming=True)
    async def give_up(self, out: RpcStream) -> None:
        self.writers.append(out)
        out.send("a")
        out.error("gave up")
        raise RuntimeError("after the end")

    @rpc(streaming=True)
    async def write_and_fail(self, out: RpcStream) -> None:
        out.send("a")
        raise RuntimeError("pen broke")

    @rpc(streaming=True)
    def write_at_once(self, out: RpcStream) -> None:
        out.send(out.closed)

    async def secret(self) -> str:
        return "not for clients"


async def call(client: Client, method: str, *args: Any, id: str = "1") -> list[dict[str, Any]]:
    """Call a method and wait for its last answer; all its answers."""
    await client.send(type="rpc", id=id, method=method, args=list(args))
    return await answers(client, id)


async def answers(client: Client, call_id: str = "1") -> list[dict[str, Any]]:
    mine = {"type": "rpc", "id": call_id}

    def ends(frame: dict[str, Any]) -> bool:
        return frame.items() >= mine.items() and (not frame["success"] or frame["done"])

    await client.until(ends)
    return [frame for frame in client.frames if frame.items() >= mine.items()]


async def result(client: Client, method: str, *args: Any, id: str = "1") -> Any:
    """The result of a call that gives one value."""
    (frame,) = await call(client, method, *args, id=id)
    assert frame.get("success"), frame
    return frame["result"]


async def failure(client: Client, method: str, *args: Any, id: str = "1") -> str:
    """The text of a call that fails at once."""
    (frame,) = await call(client, method, *args, id=id)
    assert frame == {"type": "rpc", "id": id, "success": False, "error": frame["error"]}
    return frame["error"]


class TestPlainMethods:
    async def test_case_10_a_call_has_one_answer_with_its_result(self):
        async with running(Library) as stage:
            (frame,) = await call(await stage.connect(), "add", 1, 2)
            assert frame == {"type": "rpc", "id": "1", "success": True, "result": 3, "done": True}

    async def test_5_2_a_method_without_async_may_be_called(self):
        async with running(Library) as stage:
            assert await result(await stage.connect(), "shout", "hey") == "HEY"

    async def test_5_2_a_method_without_a_result_answers_null(self):
        async with running(Library) as stage:
            (frame,) = await call(await stage.connect(), "nothing")
            assert (frame["result"], frame["done"]) == (None, True)

    async def test_5_4_fields_that_nobody_knows_are_ignored(self):
        async with running(Library) as stage:
            client = await stage.connect()
            await client.send(type="rpc", id="1", method="add", args=[1], more="fields")
            assert (await answers(client))[0]["result"] == 2

    async def test_clients_use_the_name_that_was_given(self):
        async with running(Library) as stage:
            client = await stage.connect()
            item = {"name": "book", "when": datetime(2026, 5, 1, tzinfo=UTC).isoformat()}
            assert (await result(client, "addItem", item))["name"] == "book"
            assert await failure(client, "add_item", item, id="2") == (
                "Method add_item is not callable"
            )


class TestWhatMayNotBeCalled:
    async def test_case_11_unknown_and_unmarked_methods_are_refused(self):
        async with running(Library) as stage:
            client = await stage.connect()
            assert await failure(client, "x") == "Method x does not exist"
            for n, method in enumerate(["secret", "run", "set_state", "__init__"]):
                text = f"Method {method} is not callable"
                assert await failure(client, method, id=str(n + 2)) == text

    def test_a_name_that_hides_a_member_is_refused_when_the_class_is_made(self):
        with pytest.raises(AgentDefinitionError, match='@rpc\\(name="run"\\)'):

            class Hides(Think):
                @rpc
                async def run(self) -> None: ...  # pyright: ignore[reportIncompatibleMethodOverride]

    def test_a_mixin_does_not_keep_the_check_from_seeing_hidden_members(self):
        class Mixin:
            pass

        with pytest.raises(AgentDefinitionError, match="would hide"):

            class Hides(Mixin, Think):
                @rpc
                async def run(self) -> None: ...  # pyright: ignore[reportIncompatibleMethodOverride]

    def test_two_methods_of_one_name_are_refused_when_the_class_is_made(self):
        with pytest.raises(AgentDefinitionError, match="both called 'get'"):

            class Twice(Think):
                @rpc(name="get")
                async def first(self) -> None: ...
                @rpc(name="get")
                async def second(self) -> None: ...

    def test_the_name_of_a_built_in_call_is_refused_when_the_class_is_made(self):
        with pytest.raises(AgentDefinitionError, match="getBranches"):

            class Takes(Think):
                @rpc(name="getBranches")
                async def mine(self) -> None: ...

    async def test_a_subclass_may_change_what_a_call_does(self):
        class Louder(Library):
            @rpc
            def shout(self, word: str) -> str:
                return word.upper() + "!"

        async with running(Louder) as stage:
            assert await result(await stage.connect(), "shout", "hey") == "HEY!"

    async def test_a_tool_may_be_called_by_clients_too(self):
        class Both(Think):
            @rpc
            @tool
            async def double(self, n: int) -> int:
                """Double."""
                return 2 * n

        async with running(Both) as stage:
            assert await result(await stage.connect(), "double", 4) == 8


class TestErrors:
    @pytest.mark.parametrize(
        ("method", "text"),
        [
            ("fails", "no more shelves"),
            ("fails_silently", "RuntimeError"),
        ],
    )
    async def test_5_2_what_a_method_raises_is_its_answer(self, method: str, text: str):
        async with running(Library) as stage:
            assert await failure(await stage.connect(), method) == text

    @pytest.mark.parametrize("method", ["stops", "is_cancelled"])
    async def test_5_2_what_is_no_exception_is_answered_too(self, method: str):
        async with running(Library) as stage:
            assert await failure(await stage.connect(), method) == "Unknown error occurred"

    @pytest.mark.parametrize(
        ("args", "text"),
        [
            ([], "missing a required argument: 'a'"),
            ([1, 2, 3], "too many positional arguments"),
            (["x"], "argument 'a'"),
            ([None], "argument 'a'"),
        ],
    )
    async def test_arguments_are_checked_before_the_method_runs(self, args: list[Any], text: str):
        async with running(Library) as stage:
            assert text in await failure(await stage.connect(), "add", *args)

    async def test_an_argument_becomes_what_the_annotation_says(self):
        async with running(Library) as stage:
            client = await stage.connect()
            item = {"name": "book", "when": "2026-05-01T00:00:00Z"}
            assert await result(client, "addItem", item) == {
                "name": "book",
                "when": "2026-05-01T00:00:00+00:00",
            }
            assert "name" in await failure(client, "addItem", {"when": "now"}, id="2")

    async def test_any_number_of_arguments_may_be_taken(self):
        async with running(Library) as stage:
            assert await result(await stage.connect(), "total", 1, 2, 3) == 6

    @pytest.mark.parametrize("what", ["set", "class"])
    async def test_a_result_that_json_cannot_hold_is_an_error(self, what: str):
        async with running(Library) as stage:
            client = await stage.connect()
            assert await failure(client, "gives", what)
            assert await result(client, "add", 1, id="2") == 2

    async def test_a_number_that_json_does_not_know_is_null(self):
        async with running(Library) as stage:
            assert await result(await stage.connect(), "gives", "nan") is None


class TestSideBySide:
    async def test_5_4_a_slow_call_does_not_hold_up_the_next_one(self):
        async with running(Library) as stage:
            client = await stage.connect()
            await client.send(type="rpc", id="slow", method="wait", args=["late"])
            assert await result(client, "add", 1, id="fast") == 2
            stage.agent.gate.set()
            assert (await answers(client, "slow"))[0]["result"] == "late"

    async def test_5_4_only_the_caller_gets_the_answer(self):
        async with running(Library) as stage:
            mine, other = await stage.connect("a"), await stage.connect("b")
            await call(mine, "add", 1)
            assert [f for f in other.frames if f["type"] == "rpc"] == []

    async def test_5_4_an_answer_for_somebody_who_has_gone_is_dropped(self):
        async with running(Library) as stage:
            gone, stays = await stage.connect("a"), await stage.connect("b")
            await gone.send(type="rpc", id="1", method="wait", args=["late"])
            assert gone.connection is not None
            await gone.connection.close()
            stage.agent.gate.set()
            assert await result(stays, "add", 1) == 2

    async def test_each_call_knows_its_own_caller(self):
        async with running(Library) as stage:
            a, b = await stage.connect("a"), await stage.connect("b")
            for client in (a, b):
                await client.send(type="rpc", id="1", method="who", args=[])
            assert [(await answers(c))[0]["result"] for c in (a, b)] == [["a", None], ["b", None]]
            assert stage.agent.caller is None

    async def test_a_connection_may_have_only_so_many_calls_under_way(
        self, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(connections, "MOST_UNDER_WAY", 2)
        async with running(Library) as stage:
            client = await stage.connect()
            for call_id in ("a", "b"):
                await client.send(type="rpc", id=call_id, method="wait", args=[call_id])
            assert await failure(client, "add", 1, id="c") == "Too many calls at once"
            stage.agent.gate.set()
            assert [(await answers(client, c))[0]["result"] for c in ("a", "b")] == ["a", "b"]
            while not (await call(client, "add", 1, id=new_id()))[0]["success"]:
                await asyncio.sleep(0)  # a call leaves the count just after its answer

    async def test_case_14_what_is_no_call_is_not_answered_and_the_next_call_works(self):
        async with running(Library) as stage:
            client = await stage.connect()
            assert client.connection is not None
            odd = ['{"type":"rpc","id":"1"}', '{"type":"rpc","id":1,"method":"add","args":[1]}']
            odd += ['{"type":"rpc","id":"1","method":"add","args":{}}', "not json", "null", "[]"]
            for text in odd:
                await client.connection.receive(text)
            assert await result(client, "add", 1) == 2

    async def test_a_call_is_answered_while_a_turn_runs(self):
        gate = pause()
        async with running(Library, [gate, "hi"]) as stage:
            client = await stage.connect()
            await client.ask("hello")
            await gate.reached()
            assert await result(client, "add", 1) == 2
            gate.open()
            await client.until_end()
