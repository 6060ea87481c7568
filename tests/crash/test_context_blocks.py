"""What a model writes into a block is there exactly once, wherever the process dies (M-055, M-057).

The write and the result of its call are one commit (spec/04 §23.12), the prompt outlives the
process (spec/03 §20.21), and what a turn has unloaded goes from its reply though the process dies
before the hooks of its end (spec/03 §20.37).
"""

from __future__ import annotations

import pytest

from tests.crash.client import client_of
from tests.crash.evidence import query, settled, stored_messages, turn_of
from tests.crash.process import World, until
from thinkwell.messages.message import tool_parts

pytestmark = pytest.mark.crash

AGENT = "rememberer/one"
ASKED = "tools|hold:a,say:2,remember;say:2,remember;say:4"
NOTES = ["tools.0.0", "tools.1.0"]
WRITTEN = {
    **dict.fromkeys(("c2", "c7", "c8", "c13"), 0),
    **dict.fromkeys(("c14", "c9", "c13:2"), 1),
    **dict.fromkeys(("c14:2", "c10", "c12"), 2),
}
"""How many of the two writes are committed at each point."""


def contents(world: World) -> list[str]:
    found = query(
        world, "SELECT content FROM context_blocks WHERE label = 'memory' ORDER BY version"
    )
    return [row["content"] for row in found]


def results(world: World, request: str) -> list[str]:
    turn = turn_of(world, request)
    assert turn is not None
    (answer,) = [m for m in stored_messages(world, AGENT) if m["id"] == turn["message_id"]]
    return [str(part.get("output")) for part in tool_parts(answer)]


async def crash(world: World, point: str, question: str) -> None:
    world.hold("a")
    server = await world.start(point)
    async with client_of(server, AGENT) as client:
        await client.ask(question, request="r1")
        await until(lambda: turn_of(world, "r1") or not server.alive, "r1 accepted")
        world.release("a")
        await server.crashed()


@pytest.mark.parametrize("point", WRITTEN)
async def test_each_write_is_there_once_and_its_result_is_told(world: World, point: str):
    await crash(world, point, ASKED)
    whole = [NOTES[0], "\n".join(NOTES)]
    assert contents(world) == whole[: WRITTEN[point]]
    before = query(world, "SELECT prompt FROM prompts")
    await world.start()
    await settled(world, "r1")
    assert contents(world) == whole
    told = results(world, "r1")
    assert [text.partition(".")[0] for text in told] == ["Written to memory"] * 2
    (after,) = query(world, "SELECT prompt FROM prompts")
    assert before in ([], [after])
    rows = query(world, "SELECT turn, source FROM context_blocks")
    assert {(row["turn"], row["source"]) for row in rows} == {("r1", "model")}


async def test_killed_again_and_again_each_write_is_there_once(world: World):
    await crash(world, "c13", ASKED)  # three times in a row would park the turn
    for point in ("c8", "c14", "c13", "c14", "c10"):
        await world.run_into(point)
    await world.start()
    await settled(world, "r1")
    assert contents(world) == [NOTES[0], "\n".join(NOTES)]


async def test_what_a_turn_unloads_goes_though_it_dies_before_its_hooks(world: World):
    await crash(world, "c12", "tools|hold:a,load;unload;say:2")
    assert results(world, "r1")[0] == "the text of doc"
    await world.start()
    await until(
        lambda: results(world, "r1")[0] == "[skill unloaded: doc]", "the document is unloaded"
    )
