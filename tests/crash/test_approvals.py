"""The process dies at each write of an approval: nothing runs twice, no answer is lost
(spec/04 §23.22, §23.75; DESIGN §8.12).
"""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.request import Request, urlopen

import pytest

from tests.crash.client import Client, client_of
from tests.crash.evidence import query, settled, stored_messages
from tests.crash.plan import read_plan
from tests.crash.process import Server, World, until
from tests.crash.test_answers import continuations
from thinkwell.messages.message import Part, text_of, tool_parts

pytestmark = pytest.mark.crash

AGENT = "careful/one"
QUESTION = "asks|say:2,once;say:3"
NOTE = "asks.0.0"
RULE = {"note": {"prefix": "asks."}}


def the_call(world: World) -> Part:
    (part,) = tool_parts(stored_messages(world, AGENT)[-1])
    return part


def decisions(world: World) -> list[dict[str, Any]]:
    return query(world, "SELECT * FROM decisions")


async def call_method(client: Client, method: str, *args: Any) -> Any:
    await client.call(method, *args, id=method)
    answer = await client.saw(lambda f: f.get("id") == method, f"an answer of {method}")
    assert answer["success"], answer
    return answer.get("result")


async def ask(server: Server, client: Client) -> None:
    await client.ask(QUESTION, request="r1")
    await client.done("r1")


async def went_on(world: World) -> None:
    """The call ran once, and the answer is whole."""
    (turn,) = await until(lambda: continuations(world), "a continuation")
    await settled(world, turn["id"])
    assert the_call(world)["output"] == f"did {NOTE}"
    assert len(world.effects(NOTE)) == 1
    assert text_of(stored_messages(world, AGENT)[-1]) == read_plan(QUESTION).text


@pytest.mark.parametrize("point", ["a0", "a1"])
async def test_a_question_that_nobody_saw_is_asked_after_the_restart(world: World, point: str):
    server = await world.start(point)
    async with client_of(server, AGENT) as client:
        await client.ask(QUESTION, request="r1")
        await server.crashed()
    server = await world.start()
    await settled(world, "r1")
    part = the_call(world)
    assert (part["state"], world.effects(NOTE)) == ("approval-requested", [])
    (row,) = query(world, "SELECT * FROM approvals")
    assert (row["approval_id"], row["outcome"]) == (part["approval"]["id"], None)
    async with client_of(server, AGENT) as client:
        await client.approve(part["toolCallId"])
        await went_on(world)


async def test_a2_a_click_that_was_not_stored_can_be_made_again(world: World):
    server = await world.start("a2")
    async with client_of(server, AGENT) as client:
        await ask(server, client)
        await client.approve(the_call(world)["toolCallId"])
        await server.crashed()
    assert (the_call(world)["state"], decisions(world)) == ("approval-requested", [])
    server = await world.start()
    async with client_of(server, AGENT) as client:
        await client.approve(the_call(world)["toolCallId"])
        await went_on(world)
    assert len(decisions(world)) == 1


async def test_clicks_on_both_sides_of_a_crash_run_the_call_once(world: World):
    """Case 75: the first was stored; the one after the restart, over HTTP, changes nothing."""
    server = await world.start("c15")
    async with client_of(server, AGENT) as client:
        await ask(server, client)
        asked = stored_messages(world, AGENT)
        await client.approve(the_call(world)["toolCallId"])
        await server.crashed()
    server = await world.start()
    (part,) = tool_parts(asked[-1])
    part["state"] = "approval-responded"
    part["approval"]["approved"] = False
    body = json.dumps({"id": "again", "messages": asked}).encode()
    headers = {"content-type": "application/json"}
    request = Request(f"{server.url}/agents/{AGENT}/chat", body, headers)
    async with client_of(server, AGENT) as client:
        await client.approve(part["toolCallId"])
        await asyncio.to_thread(lambda: _read(request))
    await went_on(world)
    (decision,) = decisions(world)
    assert decision["approved"] == 1


def _read(request: Request) -> bytes:
    try:
        with urlopen(request, timeout=30) as answer:
            return answer.read()
    except OSError as error:  # a refusal is fine: nothing waited any more
        return str(error).encode()


async def test_a3_a_call_that_a_rule_allowed_runs_once_and_is_noted_once(world: World):
    server = await world.start("a3")
    async with client_of(server, AGENT) as client:
        await call_method(client, "addApprovalRule", "once", RULE)
        await client.ask(QUESTION, request="r1")
        await server.crashed()
    assert (len(decisions(world)), world.effects(NOTE)) == (1, [])
    await world.start()
    await settled(world, "r1")
    assert the_call(world)["output"] == f"did {NOTE}"
    assert (len(world.effects(NOTE)), len(decisions(world))) == (1, 1)


async def test_a4_a_rule_is_made_once_and_stays_revoked(world: World):
    server = await world.start("a4")
    async with client_of(server, AGENT) as client:
        await client.call("addApprovalRule", "once", RULE)
        await server.crashed()
    server = await world.start("a4:2")
    async with client_of(server, AGENT) as client:
        rule = await call_method(client, "addApprovalRule", "once", RULE)
        await client.call("revokeApprovalRule", rule["id"])
        await server.crashed()
    (row,) = query(world, "SELECT * FROM approval_rules")
    assert (row["id"], row["revoked_at"] is None) == (rule["id"], False)


@pytest.mark.parametrize("point", ["a2", "c15", "j2", "j4"])
async def test_what_expired_is_denied_after_the_restart_without_anybody(world: World, point: str):
    question = "asks|say:2,hasty;say:3"
    server = await world.start(point)
    async with client_of(server, AGENT) as client:
        await client.ask(question, request="r1")
        await server.crashed()
    await world.start()
    (turn,) = await until(lambda: continuations(world), "a continuation")
    await settled(world, turn["id"])
    assert the_call(world)["state"] == "output-denied"
    assert world.effects(NOTE) == []
    (decision,) = decisions(world)
    assert (decision["approved"], decision["expired"]) == (0, 1)
    assert query(world, "SELECT outcome FROM approvals") == [{"outcome": "expired"}]
