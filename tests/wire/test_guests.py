"""Open sockets and streams are asked about again when a principal expires or is revoked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp

from tests.wire.client import PATIENCE
from tests.wire.room import Room, room
from thinkwell import Principal
from thinkwell.messages.message import user_message
from thinkwell.server.guests import Guests
from thinkwell.testing import pause, text


class Doorman:
    """An `auth` that can forget people."""

    def __init__(self, **principals: Principal) -> None:
        self.known = principals
        self.asked = 0
        self.was_asked = asyncio.Event()

    def __call__(self, request: Any, route: Any) -> Principal | None:
        self.asked += 1
        self.was_asked.set()
        return self.known.get(request.query_params.get("who", ""))


ANN, BOB = Principal(id="ann"), Principal(id="bob")


class TestRevoking:
    async def test_a_principal_that_auth_forgot_has_to_leave_at_once(self):
        auth = Doorman(ann=ANN, bob=BOB)
        async with room("Hello", auth=auth) as r:
            ann, again, bob = [await r.tab(who=who) for who in ("ann", "ann", "bob")]
            del auth.known["ann"]
            await r.app.revoke("ann")
            assert (await ann.closed(), await again.closed()) == (4401, 4401)
            await bob.ask("hi")
            assert (await bob.stream()).text == "Hello"

    async def test_one_that_auth_still_knows_stays(self):
        auth = Doorman(ann=ANN)
        async with room("Hello", auth=auth) as r:
            ann = await r.tab(who="ann")
            await r.app.revoke("ann")
            await ann.ask("hi")
            assert (await ann.stream()).text == "Hello"

    async def test_one_that_auth_takes_for_somebody_else_has_to_leave(self):
        auth = Doorman(ann=ANN)
        async with room(auth=auth) as r:
            ann = await r.tab(who="ann")
            auth.known["ann"] = BOB
            await r.app.revoke("ann")
            assert await ann.closed() == 4401

    async def test_one_with_other_claims_comes_back_with_them(self):
        auth = Doorman(ann=ANN)
        async with room(auth=auth) as r:
            ann = await r.tab(who="ann")
            auth.known["ann"] = Principal(id="ann", claims={"role": "guest"})
            await r.app.revoke("ann")
            assert await ann.closed() == 1012

    async def test_an_auth_that_fails_lets_nobody_stay(self):
        auth = Doorman(ann=ANN)
        async with room(auth=auth) as r:
            ann = await r.tab(who="ann")
            auth.known = None  # type: ignore[assignment]
            await r.app.revoke("ann")
            assert await ann.closed() == 4401

    async def test_a_turn_of_somebody_who_had_to_leave_goes_on(self):
        gate = pause()
        auth = Doorman(ann=ANN, bob=BOB)
        async with room([text("a"), gate, text("b")], auth=auth) as r:
            ann, bob = await r.tab(who="ann"), await r.tab(who="bob")
            await ann.ask("hi")
            await gate.reached()
            del auth.known["ann"]
            await r.app.revoke("ann")
            await ann.closed()
            gate.open()
            await bob.until("use_chat_response", id="q1", done=True)

    async def test_a_stream_over_http_ends_too(self):
        gate = pause()
        auth = Doorman(ann=ANN)
        async with room([text("seen"), gate, text("secret")], auth=auth) as r:
            answer = await post(r, {"messages": [user_message("u", "hi")]})
            seen = b""
            async with asyncio.timeout(PATIENCE):
                while b"seen" not in seen:
                    seen += await answer.content.readany()
                del auth.known["ann"]
                await r.app.revoke("ann")
                gate.open()
                rest = await answer.content.read()
            assert b"secret" not in rest


class TestOnTheWay:
    """Whoever is revoked or expires between `auth`'s answer and being inside does not get in."""

    async def test_one_revoked_while_the_body_comes_asks_nothing(self):
        auth = Doorman(ann=ANN, bob=BOB)
        async with room("never", auth=auth) as r:

            async def forget() -> None:
                del auth.known["ann"]
                await r.app.revoke("ann")

            assert await post_slowly(r, auth, forget) == 401
            assert (await r.browser.get(f"{r.path}/get-messages?who=bob"))[1] == "[]"

    async def test_one_that_expires_while_the_body_comes_asks_nothing(self):
        auth = Doorman(ann=Principal(id="ann", expires_at=2e9), bob=BOB)
        clock = FakeClock()
        async with room("never", auth=auth) as r:
            with_clock(r, clock)

            async def expire() -> None:
                clock.time = 2e9

            assert await post_slowly(r, auth, expire) == 401
            assert (await r.browser.get(f"{r.path}/get-messages?who=bob"))[1] == "[]"

    async def test_one_revoked_inside_on_before_connect_is_shown_out(self):
        auth = Doorman(ann=ANN)
        inside, goes_on = asyncio.Event(), asyncio.Event()

        async def look(request: Any, route: Any) -> None:
            inside.set()
            await goes_on.wait()

        async with room(auth=auth, on_before_connect=look) as r:
            opening = asyncio.create_task(r.open(who="ann"))
            async with asyncio.timeout(PATIENCE):
                await inside.wait()
            del auth.known["ann"]
            await r.app.revoke("ann")
            goes_on.set()
            assert await (await opening).closed() == 4401

    async def test_one_that_auth_still_knows_gets_in_all_the_same(self):
        auth = Doorman(ann=ANN, bob=BOB)
        async with room("Hello", auth=auth) as r:

            async def forget_another() -> None:
                del auth.known["bob"]
                await r.app.revoke("bob")

            assert await post_slowly(r, auth, forget_another) == 200


async def post_slowly(r: Room, auth: Doorman, meanwhile: Callable[[], Awaitable[None]]) -> int:
    """Ask a question whose body is finished after `meanwhile`."""
    body = json.dumps({"messages": [user_message("u", "hi")]}).encode()

    async def pieces() -> AsyncIterator[bytes]:
        yield body[:5]
        await auth.was_asked.wait()
        await meanwhile()
        yield body[5:]

    url = f"{r.browser.url}{r.path}/chat?who=ann"
    headers = {"content-type": "application/json"}
    async with (
        asyncio.timeout(PATIENCE),
        r.browser.session.post(url, data=pieces(), headers=headers) as answer,
    ):
        await answer.read()
        return answer.status


def with_clock(r: Room, clock: FakeClock, naps: Naps | None = None) -> None:
    """Let the edge of a running app read another clock."""
    app: Any = r.app
    edge = app._edge
    edge.access._clock = edge.guests._clock = clock
    edge.guests._sleep = naps or edge.guests._sleep


async def post(r: Room, body: Any) -> aiohttp.ClientResponse:
    url = f"{r.browser.url}{r.path}/chat"
    return await r.browser.session.post(url, params={"who": "ann"}, json=body)


class TestExpiring:
    async def test_when_it_expires_auth_is_asked_again_and_may_refuse(self):
        auth = Doorman(ann=Principal(id="ann", expires_at=100.0))
        clock, naps = FakeClock(), Naps()
        async with room(auth=auth) as r:
            with_clock(r, clock, naps)
            ann = await r.open(who="ann")
            await naps.next()
            clock.time = 100.0
            naps.wake()
            assert await ann.closed() == 4401
            assert auth.asked == 2

    async def test_one_that_has_expired_already_is_not_let_in(self):
        async with room(auth=lambda *_: Principal(id="ann", expires_at=1.0)) as r:
            assert (await r.browser.get(f"{r.path}/get-messages"))[0] == 401
            assert await (await r.open()).closed() == 4401

    async def test_one_that_was_renewed_stays(self):
        clock, naps = FakeClock(), Naps()
        guests = Guests(clock, naps)
        soon, later = (Principal(id="ann", expires_at=t) for t in (100.0, 500.0))

        async def ask() -> Principal | None:
            return later if clock.time < 500.0 else None

        async with guests.staying(soon, ask, since=0) as guest:
            assert await naps.next() == 60.0
            clock.time = 100.0
            naps.wake()
            assert await naps.next() == 60.0
            assert (guest.principal, guest.refused.is_set()) == (later, False)
            clock.time = 500.0
            naps.wake()
            await guest.refused.wait()
            assert guest.code == 4401


class TestAskingAgain:
    async def test_an_auth_that_hangs_lets_nobody_stay(self):
        async def hangs() -> Principal | None:
            await asyncio.Event().wait()

        guests = Guests(answer_within=0.01)
        async with guests.staying(ANN, hangs, since=0) as guest, asyncio.timeout(PATIENCE):
            await guests.ask_again("ann")
            assert guest.refused.is_set()

    async def test_everybody_is_asked_about_side_by_side(self):
        guests, all_asked = Guests(), asyncio.Barrier(3)

        async def ask() -> Principal | None:
            await all_asked.wait()  # nobody is answered before all three were asked about
            return None

        async with (
            guests.staying(ANN, ask, since=0) as one,
            guests.staying(ANN, ask, since=0) as two,
            guests.staying(ANN, ask, since=0) as three,
            asyncio.timeout(PATIENCE),
        ):
            await guests.ask_again("ann")
            assert all(guest.refused.is_set() for guest in (one, two, three))


class FakeClock:
    time = 0.0

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time


class Naps:
    """A sleep that lasts until the test says so."""

    def __init__(self) -> None:
        self._asked: asyncio.Queue[float] = asyncio.Queue()
        self._over = asyncio.Semaphore(0)

    async def __call__(self, seconds: float) -> None:
        self._asked.put_nowait(seconds)
        await self._over.acquire()

    async def next(self) -> float:
        return await self._asked.get()

    def wake(self) -> None:
        self._over.release()
