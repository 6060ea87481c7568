"""Calls: spec/01 cases 10-13 and §5."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.wire.room import room
from thinkwell import Agent, rpc


class Machine(Agent):
    @rpc
    def add(self, a: int, b: int) -> int:
        return a + b

    @rpc(name="addItem")
    async def add_item(self, item: Any = None) -> Any:
        return {"item": item}

    @rpc
    async def nothing(self) -> None:
        """Returns nothing."""

    @rpc
    async def boom(self) -> None:
        raise RuntimeError("it exploded")

    async def secret(self) -> str:
        return "not for clients"

    @rpc(streaming=True)
    async def letters(self, stream: Any) -> None:
        stream.send("a")
        stream.send("b")
        assert stream.end("c")
        assert not stream.send("d")
        assert not stream.end("e")
        assert not stream.error("f")

    @rpc(streaming=True)
    async def breaks(self, stream: Any) -> None:
        stream.send("a")
        raise RuntimeError("broke")

    @rpc(streaming=True)
    async def complains(self, stream: Any) -> None:
        stream.send("a")
        stream.error("no more")

    @rpc(streaming=True)
    async def forgets(self, stream: Any) -> None:
        stream.send("a")

    @rpc
    async def generates(self, n: int) -> AsyncIterator[int]:
        for i in range(n):
            yield i

    @rpc
    async def generates_badly(self) -> AsyncIterator[int]:
        yield 1
        raise RuntimeError("broke")


def answers(frames: list[dict[str, Any]]) -> list[Any]:
    """Values with their `done`, or the error."""
    return [(f["result"], f["done"]) if f["success"] else f["error"] for f in frames]


async def test_case_10_a_call_is_answered_once():
    async with room(cls=Machine) as r:
        tab = await r.tab()
        await tab.send(type="rpc", id="1", method="add", args=[1, 2])
        assert await tab.hear() == {
            "type": "rpc",
            "id": "1",
            "success": True,
            "result": 3,
            "done": True,
        }
        await tab.nothing_more()


@pytest.mark.parametrize(
    ("method", "error"),
    [
        ("missing", "Method missing does not exist"),
        ("secret", "Method secret is not callable"),
        ("set_state", "Method set_state is not callable"),
        ("__init__", "Method __init__ is not callable"),
        ("add_item", "Method add_item is not callable"),
    ],
)
async def test_case_11_only_marked_methods_can_be_called(method: str, error: str):
    async with room(cls=Machine) as r:
        tab = await r.tab()
        (answer,) = await tab.call(method)
        assert {k: answer[k] for k in answer if k != "id"} == {
            "type": "rpc",
            "success": False,
            "error": error,
        }


@pytest.mark.parametrize(
    ("method", "told"),
    [
        ("letters", [("a", False), ("b", False), ("c", True)]),
        ("breaks", [("a", False), "broke"]),
        ("complains", [("a", False), "no more"]),
        ("forgets", [("a", False), (None, True)]),
        ("generates_badly", [(1, False), "broke"]),
    ],
)
async def test_case_12_13_a_streaming_method_answers_until_its_end(method: str, told: list[Any]):
    """`forgets`: ★ §5.3, one that returns without an end has ended."""
    async with room(cls=Machine) as r:
        tab = await r.tab()
        assert answers(await tab.call(method)) == told
        await tab.nothing_more()


async def test_5_3_a_generator_streams():
    async with room(cls=Machine) as r:
        tab = await r.tab()
        *values, end = await tab.call("generates", 3)
        assert answers(values) == [(0, False), (1, False), (2, False)]
        assert (end["success"], end["done"]) == (True, True)


async def test_5_2_what_a_method_raises_is_its_answer():
    async with room(cls=Machine) as r:
        tab = await r.tab()
        assert answers(await tab.call("boom")) == ["it exploded"]
        assert answers(await tab.call("nothing")) == [(None, True)]


async def test_the_name_of_clients_and_missing_arguments():
    async with room(cls=Machine) as r:
        tab = await r.tab()
        assert answers(await tab.call("addItem", {"a": [1, None]})) == [
            ({"item": {"a": [1, None]}}, True)
        ]
        assert answers(await tab.call("addItem")) == [({"item": None}, True)]
        for wrong in ([], [1], [1, 2, 3], ["one", 2]):
            (answer,) = await tab.call("add", *wrong)
            assert answer["success"] is False
            assert answer["error"]


async def test_5_4_only_the_caller_hears_the_answer_and_extra_fields_do_not_matter():
    async with room(cls=Machine) as r:
        tab, other = await r.tabs()
        await tab.send(type="rpc", id="1", method="add", args=[1, 2], extra={"a": 1})
        await tab.expect("rpc", id="1", result=3)
        await other.nothing_more()


async def test_5_4_calls_run_side_by_side():
    go = asyncio.Event()

    class Slow(Machine):
        @rpc
        async def wait(self) -> str:
            await go.wait()
            return "waited"

        @rpc
        async def release(self) -> None:
            go.set()

    async with room(cls=Slow) as r:
        tab = await r.tab()
        await tab.send(type="rpc", id="slow", method="wait", args=[])
        await tab.send(type="rpc", id="fast", method="add", args=[1, 1])
        await tab.expect("rpc", id="fast")
        await tab.send(type="rpc", id="go", method="release", args=[])
        later = {(await tab.expect("rpc"))["id"] for _ in range(2)}
        assert later == {"slow", "go"}


async def test_5_4_an_answer_for_a_tab_that_left_goes_nowhere():
    go, returned = asyncio.Event(), asyncio.Event()

    class Slow(Machine):
        @rpc
        async def wait(self) -> str:
            await go.wait()
            returned.set()
            return "waited"

    async with room(cls=Slow) as r:
        tab, other = await r.tabs()
        await tab.send(type="rpc", id="slow", method="wait", args=[])
        await tab.close()
        again = await r.tab("R")
        go.set()
        async with asyncio.timeout(30):
            await returned.wait()
        await again.nothing_more()
        await other.nothing_more()


async def test_a_call_or_a_state_that_is_too_large_is_refused_as_what_it_is():
    async with room(cls=Machine) as r:
        tab = await r.tab()
        many = [0] * 200_001
        await tab.send(type="rpc", id="c1", method="add", args=many)
        refused = await tab.expect("rpc", id="c1", success=False)
        assert "too large" in refused["error"]
        await tab.set_state(many)
        assert "too large" in (await tab.expect("state_error"))["error"]
        assert (await tab.call("add", 1, 2))[-1]["result"] == 3
