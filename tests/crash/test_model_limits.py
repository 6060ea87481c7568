"""`kill -9` while a turn waits for a free slot of its model: it is found, and answered."""

from __future__ import annotations

import pytest

from tests.crash.client import client_of
from tests.crash.evidence import check_answer, settled
from tests.crash.process import World

pytestmark = pytest.mark.crash


async def test_a_turn_that_waited_for_its_model_is_answered_after_the_crash(world: World):
    world.hold("door")
    server = await world.start()
    questions = {"one": "one|hold:door,say:3", "two": "two|say:3"}
    async with client_of(server, "queued/one") as first, client_of(server, "queued/two") as second:
        await first.ask(questions["one"], request="one")
        await second.ask(questions["two"], request="two")
        await second.saw(lambda f: f["type"] == "thinkwell_model_waiting", "that it waits")
        await server.kill()
    assert world.model_calls("two") == 0
    world.release("door")
    server = await world.start()
    for name in ("one", "two"):
        assert (await settled(world, name))["status"] == "completed"
        check_answer(world, f"queued/{name}", name, questions[name])
    assert world.model_calls("two") == 1
