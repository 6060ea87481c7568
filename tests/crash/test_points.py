"""The process dies at every named point; nothing that was accepted is lost or doubled (04 §6)."""

from __future__ import annotations

import pytest

from tests.crash.client import client_of
from tests.crash.evidence import (
    check_answer,
    check_stream,
    query,
    settled,
    stored_messages,
    stored_stream,
    turn_of,
)
from tests.crash.plan import read_plan
from tests.crash.process import World
from tests.crash.scenario import (
    AGENT,
    QUESTIONS,
    accepted_of,
    ask_all,
    check_all,
    crash,
    transcript,
)
from thinkwell.messages.message import text_of

pytestmark = pytest.mark.crash

BEFORE_THE_END = ["c1", "c2", "c3", "c4", "c4:6", "c4:15", "c5", "c5:3", "c6", "c7", "c8", "c9"]
"""A first answer that is cut here still has its last words to say."""
POINTS = [
    *BEFORE_THE_END,
    *("c1:2", "c2:2", "c3:2", "c3:3", "c4:12", "c4:24", "c6:2", "c10", "c11", "c12"),
]


@pytest.mark.parametrize("point", POINTS)
async def test_without_any_client_every_accepted_question_is_answered_once(
    world: World, point: str
):
    client = await crash(world, point)
    accepted = accepted_of(world)
    server = await world.start()
    await check_all(world, client, accepted)
    assert await transcript(server) == stored_messages(world, AGENT)


@pytest.mark.parametrize("point", BEFORE_THE_END)
async def test_a_client_that_comes_back_joins_the_old_stream(world: World, point: str):
    before = await crash(world, point)
    world.hold("b")
    async with client_of(await world.start(), AGENT) as client:
        assert (await client.resume())["id"] == "r1"
        await client.ack("r1")
        await client.saw(lambda f: f.get("replayComplete"), "the end of the replay")
        seen = before.bodies("r1")
        assert client.bodies("r1")[: len(seen)] == seen
        world.release("b")
        assert (await client.done("r1"))["outcome"] == "completed"
        assert client.bodies("r1") == stored_stream(world, "r1")
        await check_all(world, before, accepted_of(world))


@pytest.mark.parametrize("point", ["c4:6", "c10", "c11", "c12"])
async def test_a_client_that_comes_after_the_end_is_shown_everything(world: World, point: str):
    before = await crash(world, point)
    server = await world.start()
    await check_all(world, before, QUESTIONS)
    async with client_of(server, AGENT) as client:
        assert client.transcript() == stored_messages(world, AGENT)
        assert (await client.resume())["type"] == "cf_agent_stream_resume_none"
        await client.ack("r1")
        assert (await client.done("r1"))["replay"] is True
        assert client.bodies("r1") == stored_stream(world, "r1")


@pytest.mark.parametrize(("point", "lost"), [("c0", "r1"), ("c0:2", "r2")])
async def test_c0_what_was_not_accepted_can_be_sent_again(world: World, point: str, lost: str):
    before = await crash(world, point)
    assert turn_of(world, lost) is None
    server = await world.start()
    async with client_of(server, AGENT) as client:
        await ask_all(world, server, client, QUESTIONS)
        await check_all(world, before, QUESTIONS)
    assert len(stored_messages(world, AGENT)) == 4


async def test_c10_a_finished_answer_is_stored_without_another_model_call(world: World):
    before = await crash(world, "c10")
    assert world.model_calls("first") == 2
    await world.start()
    await check_all(world, before, QUESTIONS)
    assert world.model_calls("first") == 2


async def test_c10_a_turn_that_was_out_of_steps_still_says_so(world: World):
    server = await world.start("c10")
    async with client_of(server, "brief/one") as client:
        await client.ask("brief|say:2,pure;say:2", request="r1")
        await server.crashed()
    await world.start()
    turn = await settled(world, "r1")
    assert (turn["status"], turn["stop_reason"]) == ("completed", "max_steps")
    assert world.model_calls("brief") == 1


@pytest.mark.parametrize(("point", "again"), [("c4", False), ("c11", True), ("c12", True)])
async def test_c12_the_response_hook_runs_once_and_says_when_it_is_late(
    world: World, point: str, again: bool
):
    before = await crash(world, point)
    server = await world.start()
    await check_all(world, before, QUESTIONS)
    await server.stop()
    told = [(line["request"], line["again"]) for line in world.lines("responses")]
    assert sorted(told) == [("r1", again), ("r2", False)]


async def test_a_regenerated_answer_keeps_its_place_in_the_tree(world: World):
    server = await world.start("c4:25")
    async with client_of(server, AGENT) as client:
        await client.ask("again|say:12", request="r1")
        await client.done("r1")
        await client.regenerate((await transcript(server))[:1], request="r2")
        await server.crashed()
    server = await world.start()
    answers = [(await settled(world, request))["message_id"] for request in ("r1", "r2")]
    placed = query(world, "SELECT id FROM messages WHERE parent_id = 'mr1' ORDER BY seq")
    assert [row["id"] for row in placed] == answers
    shown = await transcript(server)
    assert [message["id"] for message in shown] == ["mr1", answers[1]]
    assert text_of(shown[1]) == read_plan("again|say:12").text


@pytest.mark.parametrize("stopped", ["r1", "r2"])
async def test_c16_a_stopped_turn_does_not_revive(world: World, stopped: str):
    world.hold("b")
    server = await world.start("c16")
    async with client_of(server, AGENT) as before:
        await ask_all(world, server, before, QUESTIONS)
        await before.chunks("r1", 20)
        await before.stop(stopped)
        await server.crashed()
    world.release("b")
    await world.start()
    calls = world.model_calls(read_plan(QUESTIONS[stopped]).label)
    turns = {request: await settled(world, request) for request in QUESTIONS}
    other = "r1" if stopped == "r2" else "r2"
    assert (turns[stopped]["status"], turns[stopped]["error"]) == ("aborted", "stopped by the user")
    check_answer(world, AGENT, other, QUESTIONS[other])
    assert world.model_calls(read_plan(QUESTIONS[stopped]).label) == calls
    check_partial(world, stopped, before.bodies(stopped))


def check_partial(world: World, request: str, seen: list[str]) -> None:
    """What was said before the stop is kept, and nothing was added to it."""
    assert stored_stream(world, request)[: len(seen)] == seen
    answer, turn = check_stream(world, request), turn_of(world, request)
    assert turn is not None
    kept = [m for m in stored_messages(world, AGENT) if m["id"] == turn["message_id"]]
    assert kept == ([answer] if seen else [])
    assert read_plan(QUESTIONS[request]).text.startswith(text_of(answer))
