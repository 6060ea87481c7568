"""Methods whose answers come one by one (spec/01 §5.3, cases 12 and 13)."""

from __future__ import annotations

from tests.turns.support import running
from tests.turns.test_rpc import Library, answers, call, failure


class TestStreaming:
    async def test_case_12_a_writer_sends_values_and_an_end(self):
        async with running(Library) as stage:
            client = await stage.connect()
            frames = await call(client, "write_to_the_end")
            assert [(f["result"], f["done"]) for f in frames] == [("a", False), ("z", True)]
            (out,) = stage.agent.writers
            assert (out.send("more"), out.end(), out.error("no"), out.closed) == (
                False,
                False,
                False,
                True,
            )
            assert await answers(client) == frames

    async def test_case_13_a_raise_after_a_value_is_the_last_answer(self):
        async with running(Library) as stage:
            first, last = await call(await stage.connect(), "write_and_fail")
            assert (first["result"], last["success"], last["error"]) == ("a", False, "pen broke")

    async def test_5_3_returning_without_an_end_is_an_end(self):
        async with running(Library) as stage:
            frames = await call(await stage.connect(), "write", "a", "b")
            assert [(f["result"], f["done"]) for f in frames] == [
                ("a", False),
                ("b", False),
                (None, True),
            ]

    async def test_5_3_a_writer_may_end_with_an_error_and_a_raise_after_it_is_not_told(self):
        async with running(Library) as stage:
            client = await stage.connect()
            frames = await call(client, "give_up")
            assert frames[1:] == [{"type": "rpc", "id": "1", "success": False, "error": "gave up"}]
            await call(client, "nothing", id="2")
            assert await answers(client) == frames

    async def test_5_3_a_streaming_method_need_not_be_async(self):
        async with running(Library) as stage:
            frames = await call(await stage.connect(), "write_at_once")
            assert [f["result"] for f in frames] == [False, None]

    async def test_an_async_generator_sends_every_value_and_an_end(self):
        async with running(Library) as stage:
            frames = await call(await stage.connect(), "count", 2)
            assert [(f["result"], f["done"]) for f in frames] == [
                (0, False),
                (1, False),
                (None, True),
            ]

    async def test_a_generator_that_raises_ends_with_its_error(self):
        async with running(Library) as stage:
            frames = await call(await stage.connect(), "count_and_fail")
            assert (frames[0]["result"], frames[1]["error"]) == (1, "lost count")

    async def test_arguments_of_a_streaming_method_are_checked(self):
        async with running(Library) as stage:
            assert "argument 'upto'" in await failure(await stage.connect(), "count", "many")

    async def test_5_4_a_generator_stops_when_its_caller_has_gone(self):
        async with running(Library) as stage:
            client = await stage.connect()
            await client.send(type="rpc", id="1", method="count_for_ever", args=[])
            await client.until(lambda frame: frame["type"] == "rpc")
            assert client.connection is not None
            await client.connection.close()
            stage.agent.gate.set()
            await stage.agent.closed.wait()
