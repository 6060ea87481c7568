"""A turn begins under old code and ends under new code: what its model asked for then is run only
if it still means the same (spec/04 §15.1, §23.9-14).
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.crash.client import client_of
from tests.crash.deploys import AGENT, Deployed, reply, write_app
from tests.crash.evidence import query, settled, turn_of
from tests.crash.process import World, until

pytestmark = pytest.mark.crash

CHANGED: dict[str, Any] = {"parameters": "amount: str", "given": "amount"}
RENAMED: dict[str, Any] = {"name": "transfer"}
COMPATIBLE: dict[str, Any] = {
    "parameters": 'amount: int, note: str = ""',
    "docstring": '"""Pay somebody."""',
}


async def ask_and_die(world: World, point: str, options: str) -> None:
    """The old version is asked, and the armed point kills it."""
    server = Deployed(world, write_app(world, "old", options=options), point)
    await server.start()
    async with client_of(server, AGENT) as client:
        await client.ask("Pay five.", request="r1")
        await server.crashed()


async def go_on(world: World, options: str, **change: Any) -> tuple[dict[str, Any], str]:
    """The new version takes over; the call and the text of the reply."""
    await Deployed(world, write_app(world, "new", options=options, **change)).start()
    return await reply(world)


async def test_a_call_that_had_not_begun_is_told_what_changed(world: World):
    await ask_and_die(world, "c6", 'effect="once"')
    part, text = await go_on(world, 'effect="once"', **CHANGED)
    told = "The tool 'pay' has changed since you called it: 'amount' is another value now."
    assert part["errorText"].startswith(f"{told} This call was not run.")
    assert text == f"I read: {part['errorText']}"
    assert world.effects("pay") == []
    last = world.lines("requests")[-1]["tools"]["pay"]
    assert last["properties"]["amount"]["type"] == "string", "the model is shown the new schema"


async def test_a_tool_that_was_renamed_is_told_to_the_model(world: World):
    await ask_and_die(world, "c6", 'effect="pure"')
    part, text = await go_on(world, 'effect="pure"', **RENAMED)
    assert "'pay' was removed or renamed after you called it. This call was not run." in text
    assert "Available tools: transfer." in part["errorText"]
    assert (world.effects("pay"), world.effects("transfer")) == ([], [])


@pytest.mark.parametrize("effect", ["once", "idempotent", "tx"])
async def test_a_compatible_change_runs_the_call(world: World, effect: str):
    await ask_and_die(world, "c6", f"effect={effect!r}")
    part, _ = await go_on(world, f"effect={effect!r}", **COMPATIBLE)
    assert part["output"] == "paid"
    assert world.effects("pay") == [{"note": "pay", "amount": 5}]


@pytest.mark.parametrize(
    ("effect", "says"),
    [
        ("idempotent", "It may have run once before that, and was not run again."),
        ("pure", "This call was not run."),
        ("tx", "This call was not run."),
        ("once", "its outcome is unknown"),
    ],
)
@pytest.mark.parametrize("change", [CHANGED, RENAMED])
async def test_a_claim_without_a_result_is_not_run_again_by_other_code(
    world: World, effect: str, says: str, change: dict[str, Any]
):
    await ask_and_die(world, "c8", f"effect={effect!r}")
    part, text = await go_on(world, f"effect={effect!r}", **change)
    assert says in part["errorText"]
    assert part["errorText"] in text
    assert len(world.effects("pay")) == 1
    assert world.effects("transfer") == []
    (row,) = query(world, "SELECT status FROM tool_calls")
    assert row["status"] == ("pending" if effect == "once" else "settled")


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ("done", "paid, I looked"),
        ("not_done", "The tool 'pay' has changed since you called it"),
        ("no idea", "its outcome is unknown"),
    ],
)
async def test_reconcile_is_asked_and_the_changed_tool_does_not_run(
    world: World, answer: str, shown: str
):
    options = 'effect="once", reconcile=look'
    await ask_and_die(world, "c8", options)
    (world.folder / "reconcile").write_text(answer)
    part, _ = await go_on(world, options, **CHANGED)
    assert shown in str(part.get("output", part.get("errorText")))
    assert world.lines("asked") == [{"input": {"amount": 5}}]
    assert len(world.effects("pay")) == 1


async def test_a_settled_result_comes_from_the_ledger_though_the_tool_is_gone(world: World):
    await ask_and_die(world, "c14", 'effect="tx"')
    part, text = await go_on(world, 'effect="tx"', **RENAMED)
    assert (part["output"], text) == ("paid", "I read: paid")
    assert len(world.effects("pay")) == 1


@pytest.mark.parametrize(
    ("change", "runs", "says"),
    [
        ({"docstring": '"""Pay somebody."""'}, 1, "paid"),
        (CHANGED, 0, "changed"),
        (RENAMED, 0, "was removed or renamed after you called it"),
    ],
)
async def test_a_call_that_waited_for_a_person_runs_only_if_it_means_the_same(
    world: World, change: dict[str, Any], runs: int, says: str
):
    old = Deployed(world, write_app(world, "old", options="needs_approval=True"))
    await old.start()
    async with client_of(old, AGENT) as client:
        await client.ask("Pay five.", request="r1")
        assert (await settled(world, "r1"))["stop_reason"] == "approval"
        await old.kill()
    new = Deployed(world, write_app(world, "new", options="needs_approval=True", **change))
    await new.start()
    async with client_of(new, AGENT) as client:
        await client.approve("c1")
        count = "SELECT COUNT(*) AS n FROM turns WHERE status = 'completed'"
        await until(lambda: query(world, count)[0]["n"] == 2, "the continuation has ended")
    _, text = await reply(world)
    assert says in text
    assert len(world.effects("pay")) == runs


async def test_rows_and_journals_say_which_code_accepted_and_which_ran(world: World):
    await ask_and_die(world, "c6", 'effect="pure"')
    old = turn_of(world, "r1")
    assert old is not None
    assert json.loads(old["code"])["app"] == "old"
    await go_on(world, 'effect="pure"', **CHANGED)
    new = turn_of(world, "r1")
    assert new is not None
    assert new["code"] == old["code"]
    events = query(world, "SELECT body FROM journal WHERE turn = 'r1' AND kind = 'attempt'")
    attempts = [json.loads(row["body"]) for row in events]
    assert [attempt.get("code", {}).get("app") for attempt in attempts] == [None, "new"]
    assert attempts[1]["code"]["tools"] != json.loads(old["code"])["tools"]
