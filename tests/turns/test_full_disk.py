"""A store that does not write for a while (DESIGN §8.17, spec/04 §2).

The disk is really full: SQLite's own page limit makes the file refuse to grow, with the error of a
full disk. What was accepted is answered once, new work is refused, and nobody hears of an end that
is not stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.turns.support import Stage, running, until_event, untyped
from thinkwell import Think, rpc, tool
from thinkwell.core import json
from thinkwell.core.errors import NOT_STORED, StoreUnavailableError
from thinkwell.messages.message import text_of
from thinkwell.store.sqlite import SqliteStore
from thinkwell.testing import call, pause
from thinkwell.wire.http import HttpRequest

LONG = "x" * 200_000
"""An answer that does not fit beside what is stored."""


class Disk:
    """A database file on a disk that can be filled."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.store = SqliteStore(path)

    def fill(self) -> None:
        """From now on the file cannot grow, and has no free page."""
        self._connection.execute("CREATE TABLE IF NOT EXISTS ballast (body BLOB)")
        (pages,) = self._connection.execute("PRAGMA page_count").fetchone()
        self._connection.execute(f"PRAGMA max_page_count = {pages}").fetchall()

    def free(self) -> None:
        """There is room again."""
        self._connection.execute("PRAGMA max_page_count = 1000000").fetchall()

    @property
    def _connection(self) -> Any:
        return loose(self.store)._link._connection


def loose(value: Any) -> Any:
    """The insides of an object."""
    return value


class Shop(Think):
    paid = 0

    @rpc
    async def save(self) -> None:
        raise StoreUnavailableError("no room")

    @tool(effect="once")
    async def pay(self) -> str:
        """Pay."""
        type(self).paid += 1
        return "paid " + LONG


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path / "thinkwell.db")


@pytest.fixture(autouse=True)
def nothing_paid() -> None:
    Shop.paid = 0


@asynccontextmanager
async def shop(disk: Disk, *steps: Any) -> AsyncIterator[Stage[Shop]]:
    """A shop on that disk, which looks at a failing store without waiting."""
    async with running(Shop, *steps, store=disk.store, drain=0) as stage:
        loose(stage.host)._shared.commits.health._sleep = lambda _: asyncio.sleep(0.001)
        yield stage


async def post(stage: Stage[Any], path: str, body: Any) -> Any:
    activation = await stage.host.agent(address(stage))
    return await activation.handle_request(
        HttpRequest(
            method="POST",
            path=path,
            headers={"content-type": "application/json"},
            body=json.dump_bytes(body),
        )
    )


def address(stage: Stage[Any]) -> Any:
    from thinkwell.host.client import AgentAddress

    return AgentAddress(stage.agent.agent_class, stage.agent.name)


class TestAnEnd:
    async def test_that_cannot_be_stored_is_told_when_it_is(self, disk: Disk):
        gate = pause()
        async with shop(disk, [gate, LONG]) as stage:
            client = await stage.connect()
            await client.ask("hi", "q1")
            await gate.reached()
            disk.fill()
            gate.open()
            await until_event(stage, "store:failing")
            assert client.ends("q1") == []
            disk.free()
            end = await client.until_end("q1")
            assert end.get("error") is None
            assert text_of(await stage.answer()) == LONG
            assert len(stage.model.requests) == 1
            await until_event(stage, "store:recovered")  # may be told after the end
            assert [e.type for e in stage.events if e.type.startswith("store:")] == [
                "store:failing",
                "store:recovered",
            ]

    async def test_runs_nothing_again_at_the_next_start(self, disk: Disk):
        gate = pause()
        async with shop(disk, [gate, LONG]) as stage:
            asking = asyncio.ensure_future(stage.agent.run("hi"))
            await gate.reached()
            disk.fill()
            gate.open()
            await until_event(stage, "store:failing")
            disk.free()
            assert (await asking).status == "completed"
        async with running(Shop, "never", store=SqliteStore(disk.path)) as stage:
            await untyped(stage)._turns.wait_until_idle()
            assert stage.model.requests == []

    async def test_a_stop_pressed_meanwhile_holds(self, disk: Disk):
        async with shop(disk, [call("pay")], "never") as stage:
            client = await stage.connect()
            stage.agent.add_hook("after_tool_call", lambda _: disk.fill())
            await client.ask("hi", "q1")
            await until_event(stage, "store:failing")
            await client.send(type="cf_agent_chat_request_cancel", id="q1")
            disk.free()
            await client.until_end("q1")
            assert (await stage.agent.get_turn("q1")).status == "aborted"
            assert Shop.paid == 1


class TestATool:
    async def test_whose_result_cannot_be_stored_runs_once(self, disk: Disk):
        async with shop(disk, [call("pay")], "thank you") as stage:
            client = await stage.connect()
            stage.agent.add_hook("after_tool_call", lambda _: disk.fill())
            await client.ask("hi", "q1")
            await until_event(stage, "store:failing")
            assert not [c for c in client.chunks("q1") if c["type"] == "tool-output-available"]
            disk.free()
            await client.until_end("q1")
            outputs = [c for c in client.chunks("q1") if c["type"] == "tool-output-available"]
            assert (len(outputs), Shop.paid) == (1, 1)
            assert text_of(await stage.answer()) == "thank you"


class TestNewWork:
    async def test_is_refused_over_the_socket_and_not_run_later(self, disk: Disk):
        gate = pause()
        async with shop(disk, [gate, LONG], "second") as stage:
            client = await stage.connect()
            await client.ask("hi", "q1")
            await gate.reached()
            disk.fill()
            gate.open()
            await until_event(stage, "store:failing")
            await client.ask("me too", "q2")
            (refused,) = client.ends("q2")
            assert refused["error"] is True
            assert refused["body"] == NOT_STORED
            disk.free()
            await client.until_end("q1")
            await untyped(stage)._turns.wait_until_idle()
            assert await untyped(stage)._turns.find("q2") is None
            assert [text_of(m) for m in await stage.messages()] == ["hi", LONG]

    @pytest.mark.parametrize("path", ["run", "chat"])
    async def test_is_refused_over_http_with_503(self, disk: Disk, path: str):
        message = {"id": "u", "role": "user", "parts": [{"type": "text", "text": "hi"}]}
        body = {"input": "hi"} if path == "run" else {"id": "c", "messages": [message]}
        async with shop(disk, "later") as stage:
            disk.fill()
            loose(stage.host)._shared.commits.health.failed(StoreUnavailableError("no room"))
            answer = await post(stage, path, body)
            assert (answer.status, answer.headers["retry-after"]) == (503, "5")
            assert NOT_STORED.encode() in answer.body
            assert b"no room" not in answer.body
            assert stage.host.not_ready() == "store"
            disk.free()
            await until_event(stage, "store:recovered")
            assert stage.host.not_ready() is None
            assert (await post(stage, path, body)).status == 200

    @pytest.mark.parametrize("exposed", [False, True])
    async def test_is_refused_with_the_reason_only_where_errors_are_exposed(
        self, disk: Disk, exposed: bool
    ):
        async with shop(disk, "later") as stage:
            stage.agent.expose_errors = exposed
            client = await stage.connect()
            health = loose(stage.host)._shared.commits.health
            health._sleep = lambda _: asyncio.Event().wait()  # nobody finds that it writes
            health.failed(StoreUnavailableError("no room"))
            await client.ask("hi", "q1")
            run = await post(stage, "run", {"input": "hi"})
            await client.send(type="rpc", id="r", method="save", args=[])
            called = await client.until(lambda frame: frame["type"] == "rpc")
            (asked,) = client.ends("q1")
            told = (asked["body"], run.body.decode(), called["error"])
            for text in told:
                assert ("no room" in text) == exposed
                assert "was not accepted" in text


class TestChunks:
    async def test_wait_in_memory_and_reach_clients_in_order_once_they_are_stored(self, disk: Disk):
        words = [f"{number}," for number in range(600)]
        gate = pause()
        async with shop(disk, [words[0], gate, *words[1:]]) as stage:
            client = await stage.connect()
            await client.ask("hi", "q1")
            await gate.reached()
            disk.fill()
            gate.open()
            await until_event(stage, "store:failing")
            log = untyped(stage)._turns.running.log
            for _ in range(50):
                await asyncio.sleep(0)
            assert len(log.bodies) - log.written <= 300
            disk.free()
            await untyped(stage)._turns.wait_until_idle()
            said = [c["delta"] for c in client.chunks("q1") if c["type"] == "text-delta"]
            assert "".join(said) == "".join(words) == text_of(await stage.answer())


class TestTheFile:
    @pytest.mark.parametrize("fate", ["deleted", "replaced"])
    async def test_that_is_gone_is_noticed_and_nothing_more_is_said_to_be_stored(
        self, disk: Disk, fate: str, caplog: pytest.LogCaptureFixture
    ):
        async with shop(disk, "one", "two") as stage:
            client = await stage.connect()
            await client.ask("hi", "q1")
            await client.until_end("q1")
            disk.path.rename(disk.path.with_suffix(".moved"))
            if fate == "replaced":
                disk.path.write_bytes(b"another file")
            assert stage.host.not_ready() == "store"
            await client.ask("still there?", "q2")
            (refused,) = client.ends("q2")
            assert refused["body"] == NOT_STORED
            assert [e for e in stage.events if fate in str(getattr(e, "reason", None))]
            assert any(record.levelname == "CRITICAL" for record in caplog.records)
            disk.path.with_suffix(".moved").rename(disk.path)
            await until_event(stage, "store:recovered")
            await client.ask("and now?", "q3")
            await client.until_end("q3")
            assert text_of(await stage.answer()) == "two"

    async def test_that_is_gone_is_noticed_although_nobody_writes(
        self, disk: Disk, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr("thinkwell.host.host.STORE_LOOK", 0.01)
        async with shop(disk) as stage:
            disk.path.unlink()
            await until_event(stage, "store:failing")
