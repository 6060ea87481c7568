"""How much one client may take (SECURITY.md): sockets, agents, names, messages, turns, time."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.wire.client import PATIENCE
from tests.wire.room import Chat, Room, room
from thinkwell import Limits, Principal
from thinkwell.core.limits import payer_of
from thinkwell.messages.message import user_message
from thinkwell.server.meter import Meter, Pace
from thinkwell.testing import pause


def who(request: Any, route: Any) -> str:
    return request.query_params.get("who", "ann")


class Board(Chat, name="chat"):
    initial_state = {"n": 0}


class Exhibit(Board, name="chat"):
    def should_request_be_readonly(self, request: Any) -> bool:
        return True


def agents_in(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as link, link:
        return [row[0] for row in link.execute("SELECT id FROM agents ORDER BY id")]


async def post(r: Room, path: str, body: Any, **query: str) -> tuple[int, dict[str, str]]:
    url = f"{r.browser.url}{path}"
    async with r.browser.session.post(url, params=query, json=body) as answer:
        return answer.status, dict(answer.headers)


class TestLookingMakesNoAgent:
    @pytest.mark.parametrize("path", ["get-messages", "chat/c/stream", "run/r", "nothing"])
    async def test_a_get_makes_none(self, tmp_path: Path, path: str):
        store = tmp_path / "x.db"
        async with room(cls=Board, store=store) as r:
            status, text = await r.browser.get(f"{r.path}/{path}")
            assert status in (200, 204, 404)
            assert path != "get-messages" or text == "[]"
            assert agents_in(store) == []

    @pytest.mark.parametrize("path", ["chat", "chat/stop", "run", "get-messages", "nothing"])
    async def test_a_post_of_one_who_may_only_look_makes_none(self, tmp_path: Path, path: str):
        store = tmp_path / "x.db"
        async with room(cls=Exhibit, store=store) as r:
            chat = {"messages": [user_message("u", "hi")]}
            body = {"input": "hi"} if path == "run" else chat
            assert (await post(r, f"{r.path}/{path}", body))[0] in (200, 403, 404)
            assert agents_in(store) == []

    async def test_a_post_that_is_accepted_makes_one(self, tmp_path: Path):
        store = tmp_path / "x.db"
        async with room("Hello", cls=Board, store=store) as r:
            assert (await post(r, f"{r.path}/run", {"input": "hi"}))[0] == 200
            assert agents_in(store) == ["chat/x"]

    async def test_a_cancel_of_nothing_makes_none(self, tmp_path: Path):
        store = tmp_path / "x.db"
        async with room("Hello", cls=Board, store=store) as r:
            tab = await r.tab()
            await tab.send(type="cf_agent_chat_request_cancel", id="q9")
            await tab.send(type="rpc", id="r", method="none", args=[])
            await tab.expect("rpc", id="r")
            assert agents_in(store) == []

    async def test_a_socket_makes_one_when_it_says_something(self, tmp_path: Path):
        store = tmp_path / "x.db"
        async with room("Hello", cls=Board, store=store) as r:
            tab = await r.tab()
            assert tab.greeting[2]["state"] == {"n": 0}
            assert agents_in(store) == []
            await tab.ask("hi")
            assert (await tab.stream()).text == "Hello"
            assert agents_in(store) == ["chat/x"]
            assert await r.texts() == ["hi", "Hello"]

    async def test_so_does_a_state(self, tmp_path: Path):
        store = tmp_path / "x.db"
        async with room(cls=Board, store=store) as r:
            tab, other = await r.tab(), await r.tab()
            await tab.set_state({"n": 1})
            await other.expect("state", state={"n": 1})
        async with room(cls=Board, store=store) as r:
            assert (await r.tab()).greeting[2]["state"] == {"n": 1}

    async def test_what_was_looked_at_works_for_python_code(self, tmp_path: Path):
        async with room("Hello", "again", cls=Board, store=tmp_path / "x.db") as r:
            await r.tab()
            assert (await r.agent.run("hi")).text == "Hello"
            assert (await r.agent.run("hi")).text == "again"


class TestNewAgents:
    async def test_more_than_its_share_is_refused_and_others_are_not(self):
        async with room("a", "b", auth=who, limits=Limits(new_agents=1)) as r:
            base = r.path.rsplit("/", 1)[0]
            assert (await post(r, f"{base}/one/run", {"input": "hi"}))[0] == 200
            status, headers = await post(r, f"{base}/two/run", {"input": "hi"})
            assert (status, headers["Retry-After"]) == (429, "3600")
            tab = await r.browser.open(f"{base}/three")
            assert await tab.closed() == 4429
            assert (await post(r, f"{base}/one/run", {"input": "hi"}))[0] == 200
            assert (await r.browser.get(f"{base}/two/get-messages?who=bob"))[0] == 200


class TestSockets:
    async def test_one_too_many_is_sent_away_for_now(self):
        async with room(auth=who, limits=Limits(sockets=2)) as r:
            first, _ = await r.tab(), await r.tab()
            assert await (await r.open()).closed() == 1013
            await r.tab(who="bob")
            await first.close()
            while True:  # the server hears of the close a little later
                tab = await r.open()
                if not tab.socket.closed and await heard(tab):
                    break


async def heard(tab: Any) -> bool:
    async with asyncio.timeout(PATIENCE):
        message = await tab.socket.receive()
    return message.type.name == "TEXT"


class TestNames:
    async def test_a_name_that_is_too_long_is_refused(self):
        async with room(limits=Limits(name_length=5)) as r:
            base = r.path.rsplit("/", 1)[0]
            assert (await r.browser.get(f"{base}/abcde/get-messages"))[0] == 200
            assert (await r.browser.get(f"{base}/abcdef/get-messages"))[0] == 414
            assert await (await r.browser.open(f"{base}/abcdef")).closed() == 4414


class TestTurns:
    @pytest.mark.parametrize(
        "limits", [Limits(waiting_turns_per_agent=2), Limits(waiting_turns=2)], ids=str
    )
    async def test_one_too_many_is_refused_until_one_has_ended(self, limits: Limits):
        gate = pause()
        async with room([gate, "one"], "two", "three", auth=who, limits=limits) as r:
            tab = await r.tab()
            await tab.ask("a", "q1")
            await gate.reached()
            await tab.ask("b", "q2", after=await r.messages())
            await tab.ask("c", "q3", after=await r.messages())
            refused = await tab.until("use_chat_response", id="q3", done=True)
            assert refused["error"] is True
            status, headers = await post(r, f"{r.path}/run", {"input": "d"})
            assert (status, headers["Retry-After"]) == (429, "5")
            chat = {"messages": [{"id": "n", "role": "user", "parts": []}]}
            assert (await post(r, f"{r.path}/chat", chat))[0] == 429
            gate.open()
            await tab.until("use_chat_response", id="q2", done=True)
            while (await post(r, f"{r.path}/run", {"input": "d"}))[0] == 429:
                await tab.before_now()
            assert (await r.texts())[-2:] == ["d", "three"]


class TestBodies:
    async def test_a_body_that_does_not_come_is_cut(self):
        async with room(limits=Limits(body_seconds=0.1)) as r:
            port = int(r.browser.url.rsplit(":", 1)[1])
            async with asyncio.timeout(PATIENCE):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                head = (
                    f"POST {r.path}/run HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n{{"
                )
                writer.write(head.encode())
                assert (await reader.readline()).split()[1] == b"408"
                await reader.read()
                writer.close()


class Clock:
    time = 0.0

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time


class TestMessages:
    async def test_requests_that_come_too_fast_are_told_when_to_come_again(self):
        limits = Limits(messages=0.5, message_burst=2)
        async with room(auth=who, limits=limits) as r:
            url = f"{r.path}/get-messages"
            assert [(await r.browser.get(url))[0] for _ in range(3)] == [200, 200, 429]
            assert (await r.browser.get(f"{url}?who=bob"))[0] == 200

    async def test_a_socket_is_slowed_down_and_loses_nothing(self):
        limits = Limits(messages=200.0, message_burst=1)
        async with room(auth=who, limits=limits) as r:
            tab = await r.tab()
            for number in range(20):
                await tab.send(type="rpc", id=str(number), method="getBranches", args=[None])
            for number in range(20):
                await tab.until("rpc", id=str(number))

    async def test_a_message_waits_for_its_turn(self):
        clock = Clock()
        naps: list[float] = []

        async def sleep(seconds: float) -> None:
            naps.append(seconds)
            clock.time += seconds

        meter = Meter(Limits(messages=2.0, message_burst=3), clock, sleep)
        for _ in range(5):
            await meter.message("ann")
        assert naps == [0.5, 0.5]
        await meter.message("bob")
        await meter.message(None)
        assert naps == [0.5, 0.5]

    def test_a_bucket_fills_up_to_its_burst_and_no_further(self):
        clock = Clock()
        pace = Pace(1.0, 2, clock)
        assert [pace.take("a") for _ in range(3)] == [0.0, 0.0, 1.0]
        clock.time = 100.0
        assert [pace.take("a") for _ in range(3)] == [0.0, 0.0, 1.0]

    def test_no_limit_is_no_limit(self):
        pace = Pace(None, 1, Clock())
        assert {pace.take("a") for _ in range(10_000)} == {0.0}

    def test_nothing_at_all_may_be_taken_of_nothing(self):
        assert Meter(Limits(new_agents=0), Clock()).new_agents.take("a") > 0


@pytest.mark.parametrize(
    ("principal", "address", "payer"),
    [
        (Principal(id="ann"), "203.0.113.9", "principal ann"),
        (None, "203.0.113.9", "address 203.0.113.9"),
        (None, "2001:db8::1", "address 2001:db8::/64"),
        (None, "2001:db8::ffff:1", "address 2001:db8::/64"),
        (None, "127.0.0.1", None),
        (None, "::1", None),
        (None, None, None),
    ],
)
def test_whose_share_it_is(principal: Principal | None, address: str | None, payer: str | None):
    assert payer_of(principal, address) == payer
