"""Turns that were run, as cases, and replays of them."""

from __future__ import annotations

from typing import Any

from tests.turns.support import Stage
from thinkwell import Think
from thinkwell.host.replaying import Replay, replay_case
from thinkwell.journal.turns import find_turn
from thinkwell.store.base import Store
from thinkwell.turn.travel.case import Case, read_case
from thinkwell.turn.travel.export import make_case


async def asked(stage: Stage[Any], question: str, turn: str, **body: Any) -> None:
    """Ask over a connection and wait for the end."""
    client = await stage.connect(f"tab-{turn}")
    await client.ask(question, turn, **body)
    await client.until_end(turn)


async def case_of(store: Store, turn: str, agent: str = "clerk/x") -> Case:
    """The case of a turn, as it comes back from a file."""
    record = await find_turn(store, agent, turn)
    assert record is not None
    made = await make_case(store, record)
    again = read_case(made.to_json())
    assert again.journal.bodies == made.journal.bodies
    return again


async def newest(store: Store, agent: str = "clerk/x") -> str:
    """The id of the turn that was accepted last."""
    row = await store.fetch_one("newest_turn", {"agent": agent})
    assert row is not None
    return row["id"]


async def replayed(store: Store, cls: type[Think], turn: str, **options: Any) -> Replay:
    """The turn again, with the recorded world."""
    return await replay_case(await case_of(store, turn), cls, **options)


def same(replay: Replay) -> None:
    """Every byte that clients were told came again, and every request was the same."""
    assert [str(each) for each in replay.differences] == []
    assert replay.journal.bodies == replay.case.journal.bodies
    assert replay.identical
