"""Somebody who wants in, wants another's conversation, or wants a message twice or not at all.

A real server in its own process; requests are written by hand, so that nothing tidies them up.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.abuse.client_frames import chat_request
from tests.abuse.process import DEADLINE, ServerProcess, server_process
from tests.abuse.raw_http import Answer, ask

JSON = ("Content-Type", "application/json")
RUN = json.dumps({"input": "hello"}).encode()
SECRET = "the secret of bob"
OTHERS = (
    *("/agents/victim/bob", "/agents/victim/ann/../bob", "/agents/victim/ann/%2e%2e/bob"),
    *("/agents/victim/%62ob", "/agents//victim//bob", "/agents/victim/ann/sub/victim/bob"),
    *("/agents/victim/ann%2f..%2fbob", "/agents/victim/bob%00", "/agents/victim/bob/ann"),
    *("/agents/victim/ann;/bob", "/agents/victim/ann%20/../bob", "/agents/victim/BOB"),
    *("/agents/Victim/bob", "/agents/victim/bob%2fann", "/agents/victim/./bob"),
)
FOREIGN = (
    *("http://evil.example", "null", "", "http://127.0.0.1.evil.example:{port}", "file://"),
    *("http://127.0.0.1:{port}@evil.example", "http://evil.example/#127.0.0.1:{port}"),
    *("http://evil.example:{port}", "http://127.0.0.1:1", "http://localhost:{port}", "*", "://"),
    *("http://127.0.0.1:{port}.evil.example", "http://[::1]:{port}", "http://127.0.0.1:{port}x"),
)
NAMES = (
    *("evil.example", "evil.example:{port}", "127.0.0.1.evil.example", "127.0.0.1@evil.example"),
    *("localhost.evil.example", "", " ", "[", "[::1", "evil.example\t", "evil.example:127.0.0.1"),
)
SIMPLE = (
    *("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"),
    *("text/plain; application/json", "application/json2", "", "text/json-ish"),
)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ServerProcess]:
    async with server_process(tmp_path, "tests.abuse.agents:app") as running:
        yield running
        assert running.alive
        assert not running.defects()


@pytest.fixture
async def private(tmp_path: Path) -> AsyncIterator[ServerProcess]:
    """Everybody has the conversation of their own name, and nothing else."""
    async with server_process(tmp_path, "tests.abuse.agents:private") as running:
        yield running
        assert running.alive
        assert not running.defects()


async def test_no_spelling_of_a_path_opens_anothers_conversation(private: ServerProcess):
    """`auth` is asked about the very agent that answers (spec/01 §1.1, §1.3.2)."""
    bob, ann = ("Authorization", "token-bob"), ("Authorization", "token-ann")
    question = json.dumps({"input": SECRET}).encode()
    told = await raw(private, "POST", "/agents/victim/bob/run", [bob, JSON], question)
    assert told.status == 200
    for path in OTHERS:
        for way in ("get-messages", "run", "chat", "chat/c/stream", "chat/stop"):
            method = "POST" if way in ("run", "chat", "chat/stop") else "GET"
            for who in ([ann], [], [ann, ("X-User", "bob"), ("X-Forwarded-User", "bob")]):
                seen = await raw(private, method, f"{path}/{way}", [*who, JSON], RUN)
                assert SECRET.encode() not in seen.body, path
    mine = await raw(private, "GET", "/agents/victim/bob/get-messages", [bob])
    assert [message["role"] for message in mine.json()] == ["user", "assistant"]
    listed = await raw(private, "GET", "/_thinkwell/conversations?agent=victim", [ann])
    assert SECRET.encode() not in listed.body


async def test_no_spelling_of_a_path_opens_anothers_socket(private: ServerProcess):
    """Whoever is not let in is closed with a code that ends the trying (spec/01 §1.3.3)."""
    for path in OTHERS:
        for query in ("", "?token=token-ann", "?token=", "?token=token-ann&token=token-eve"):
            frames = await overheard(f"{private.ws}{path}{query}")
            assert SECRET not in "".join(frames)
            assert not any(json.loads(frame).get("name") == "bob" for frame in frames), path


@pytest.mark.parametrize("origin", FOREIGN)
async def test_a_page_of_another_site_opens_no_socket_and_changes_nothing(
    server: ServerProcess, origin: str
):
    """Spec/01 §1.3.4; a page of this very server may."""
    named = ("Origin", origin.format(port=server.port))
    own = ("Origin", server.http)
    for headers in ([named], [named, own]):
        assert await refused(server, headers), headers
        for way in ("run", "chat", "chat/stop"):
            answer = await raw(server, "POST", f"/agents/victim/a/{way}", [*headers, JSON], RUN)
            assert answer.status in (400, 403), (way, answer)
    assert (await raw(server, "GET", "/agents/victim/a/get-messages")).json() == []
    assert not await refused(server, [own])


@pytest.mark.parametrize("name", NAMES)
async def test_a_name_that_was_pointed_here_reaches_nothing(server: ServerProcess, name: str):
    """DNS rebinding: on a loopback address only the names of this machine count."""
    host = ("Host", name.format(port=server.port))
    for path in ("/agents/victim/a/get-messages", "/", "/_thinkwell/settings"):
        answer = await raw(server, "GET", path, [host])
        assert answer.status == 400, path
    answer = await raw(server, "POST", "/agents/victim/a/run", [host, JSON], RUN)
    assert answer.status == 400


@pytest.mark.parametrize("kind", SIMPLE)
async def test_what_a_form_can_post_starts_no_turn(server: ServerProcess, kind: str):
    """Bodies a page of another site may send without asking first are no JSON."""
    for way in ("run", "chat"):
        path = f"/agents/victim/a/{way}"
        answer = await raw(server, "POST", path, [("Content-Type", kind)], RUN)
        assert answer.status == 415, way
    assert (await raw(server, "GET", "/agents/victim/a/get-messages")).json() == []


async def test_nothing_that_is_sent_becomes_a_header(server: ServerProcess):
    """Line ends in names, ids and queries stay what they are: text."""
    break_out = "%0d%0aX-Broken:%201%0d%0a%0d%0a<script>"
    paths = (f"/agents/victim/{break_out}/get-messages", f"/{break_out}", f"/?{break_out}")
    paths += (f"/agents/victim/a/run/{break_out}", f"/agents/{break_out}/a/get-messages")
    for path in paths:
        answer = await raw(server, "GET", path)
        assert "X-Broken" not in answer.headers
        assert b"<script>" not in answer.body or answer.headers["content-type"] != "text/html"
    body = json.dumps({"input": "x", "idempotencyKey": "k\r\nX-Broken: 1"}).encode()
    answer = await raw(server, "POST", "/agents/victim/a/run", [JSON], body)
    assert "X-Broken" not in answer.headers


async def test_one_question_sent_many_times_at_once_is_asked_once(server: ServerProcess):
    """The same request id on ten sockets, twice on each; a key on twenty requests (§6.1)."""
    address = f"{server.http}/agents/victim/a"
    question = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "hello"}]}
    frame = json.dumps(chat_request("q1", [question], "submit-message"))
    await asyncio.gather(*(ask_twice(server, f"s{i}", frame) for i in range(10)))
    await transcript_is(address, lambda roles: roles == ["user", "assistant"])
    run = {"input": "once", "idempotencyKey": "key"}
    async with aiohttp.ClientSession() as http:
        posts = [http.post(f"{address}/run", json=run) for _ in range(20)]
        answers = await asyncio.gather(*posts)
        turns = {(await answer.json())["requestId"] for answer in answers}
    assert len(turns) == 1
    await transcript_is(address, lambda roles: roles == ["user", "assistant"] * 2)


async def test_a_question_whose_socket_dies_at_once_is_answered_all_the_same(
    server: ServerProcess,
):
    """A server that has read a question owes its answer; the next socket finds it (§10)."""
    address = f"{server.http}/agents/victim/b"
    for i in range(20):
        part = {"type": "text", "text": f"question {i}"}
        frame = chat_request(
            f"q{i}", [{"id": f"u{i}", "role": "user", "parts": [part]}], "submit-message"
        )
        async with connect(f"{server.ws}/agents/victim/b?_pk=t") as socket:
            await socket.send(json.dumps(frame))
    await transcript_is(address, lambda roles: roles == ["user", "assistant"] * 20)


async def raw(
    server: ServerProcess,
    method: str,
    path: str,
    headers: list[tuple[str, str]] | None = None,
    body: bytes | None = None,
) -> Answer:
    return await asyncio.to_thread(ask, server.port, method, path, headers or [], body)


async def refused(server: ServerProcess, headers: Sequence[tuple[str, str]]) -> bool:
    """Whether an upgrade with these headers is answered with an error."""
    try:
        async with connect(f"{server.ws}/agents/victim/a", additional_headers=list(headers)):
            return False
    except InvalidStatus as error:
        return error.response.status_code in (400, 403)


async def overheard(url: str) -> list[str]:
    """What a socket hears until it has an answer to a probe, or is closed."""
    frames: list[str] = []
    try:
        async with connect(url) as socket, asyncio.timeout(DEADLINE):
            await socket.send(json.dumps({"type": "cf_agent_stream_resume_request"}))
            while not frames or "cf_agent_stream_resume_none" not in frames[-1]:
                frames.append(str(await socket.recv()))
    except (ConnectionClosed, InvalidStatus):
        pass
    return frames


async def ask_twice(server: ServerProcess, name: str, frame: str) -> None:
    """Send a question twice and wait until a call behind it is answered."""
    async with connect(f"{server.ws}/agents/victim/a?_pk={name}") as socket:
        call = {"type": "rpc", "id": "last", "method": "echo", "args": [1]}
        for text in (frame, frame, json.dumps(call)):
            await socket.send(text)
        async with asyncio.timeout(DEADLINE):
            while json.loads(await socket.recv()).get("id") != "last":
                pass


async def transcript_is(address: str, wanted: Callable[[list[str]], Any]) -> None:
    """Until the stored roles are as wanted; a failure shows what they were."""
    roles: list[str] = []
    try:
        async with asyncio.timeout(DEADLINE), aiohttp.ClientSession() as http:
            while not wanted(roles):
                async with http.get(f"{address}/get-messages") as answer:
                    roles = [message["role"] for message in await answer.json()]
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"the roles are {roles}") from None
