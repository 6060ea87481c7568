"""Two questions to one agent, a crash while the first is answered, and what must hold after it."""

from __future__ import annotations

import aiohttp

from tests.crash.client import Client, client_of
from tests.crash.evidence import check_answer, settled, stored_messages, stored_stream, turn_of
from tests.crash.plan import read_plan
from tests.crash.process import Server, World, until
from thinkwell.messages.message import UIMessage, user_message

AGENT = "talker/one"
QUESTIONS = {
    "r1": "first|hold:a,think,say:8,once;say:8,hold:b,say:4",
    "r2": "second|say:3,pure;say:2",
}
"""By request id. The first waits at once for the file `a`, and near its end for `b`."""


async def crash(world: World, point: str, questions: dict[str, str] = QUESTIONS) -> Client:
    """Ask everything, then let the armed point kill the process. The client and what it saw."""
    world.hold("a")
    server = await world.start(point)
    async with client_of(server, AGENT) as client:
        await ask_all(world, server, client, questions)
        world.release("a")
        await server.crashed()
    return client


async def ask_all(world: World, server: Server, client: Client, questions: dict[str, str]) -> None:
    """Like the stock client: each request carries the conversation so far."""
    history: list[UIMessage] = []
    for request, question in questions.items():
        await client.ask(question, request=request, history=history)
        history.append(user_message(f"m{request}", question))
        await until(lambda r=request: turn_of(world, r) or not server.alive, f"{request} accepted")


def accepted_of(world: World, questions: dict[str, str] = QUESTIONS) -> dict[str, str]:
    """The questions that were durable when the process died."""
    return {r: question for r, question in questions.items() if turn_of(world, r) is not None}


async def check_all(world: World, client: Client, accepted: dict[str, str]) -> None:
    """Wait for every end, without a client; then hold the promises of spec/04 §0 against it."""
    for request, question in accepted.items():
        await settled(world, request)
        check_answer(world, AGENT, request, question)
        check_seen(world, client, request)
        plan = read_plan(question)
        assert world.model_calls(plan.label) <= len(plan.steps) + len(world.servers) - 1
    roles = [message["role"] for message in stored_messages(world, AGENT)]
    assert roles == ["user", "assistant"] * len(accepted)


def check_seen(world: World, client: Client, request: str) -> None:
    """What a client saw before a crash is the beginning of what is stored after it."""
    seen = client.bodies(request)
    assert stored_stream(world, request)[: len(seen)] == seen


async def transcript(server: Server, agent: str = AGENT) -> list[UIMessage]:
    """What a client that comes now is shown."""
    async with (
        aiohttp.ClientSession() as http,
        http.get(f"{server.url}/agents/{agent}/get-messages") as response,
    ):
        return await response.json()
