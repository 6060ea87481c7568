"""`thinkwell turns export|replay|fork`: the past of a turn, from the command line.

Everything but `fork` reads the database beside the process that serves it, or a file, and writes
nothing. `fork` asks that process.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import click
import msgspec

from thinkwell.agent.think import Think
from thinkwell.cli.asking import ask
from thinkwell.cli.journals import Beside
from thinkwell.cli.loading import load_app, load_price
from thinkwell.cli.operating import find_database, find_turn_row, opened
from thinkwell.cli.since import begin_of
from thinkwell.cli.tables import Printer
from thinkwell.cli.trials import Trial, show_trials, trials_as_data
from thinkwell.core.errors import ThinkwellError
from thinkwell.host.bare_agent import bare_agent
from thinkwell.host.replaying import replay_case
from thinkwell.journal.budget import DEATHS
from thinkwell.journal.turns import TurnRecord
from thinkwell.turn.travel.case import Case
from thinkwell.turn.travel.export import make_case
from thinkwell.turn.travel.recording import Tools
from thinkwell.turn.travel.story import PriceFunction, tell


def case_at(store: str, turn: str, agent: str | None, leave_out: Collection[str] = ()) -> Case:
    """The case of a turn in a database, or in a file."""
    if turn.endswith(".json") and Path(turn).exists():
        return _said(Case.load, turn)
    with opened(store) as database:
        record = TurnRecord.from_row(find_turn_row(database, turn, agent))
        making = make_case(Beside(database), record, leave_out=cast("Any", leave_out))
        return _said(asyncio.run, making)


def export(store: str, turn: str, agent: str | None, leave_out: Collection[str]) -> None:
    """`thinkwell turns export`."""
    click.echo(case_at(store, turn, agent, leave_out).to_json(), nl=False)


def fork(store: str, turn: str, agent: str | None, **options: Any) -> None:
    """`thinkwell turns fork`."""
    with opened(store) as database:
        row = find_turn_row(database, turn, agent)
    at = options.pop("at")
    options["at"] = int(at) if re.fullmatch(r"-?\d+", at) else at
    request = {"do": "fork", "agent": row["agent"], "turn": row["id"], **options}
    answer = ask(find_database(store), request)
    if answer["turn"] is None:
        click.echo(f"{answer['agent']} has the conversation up to {at}.")
    else:
        click.echo(f"{answer['agent']} goes on from step {at}: turn {answer['turn']}")


def replay(
    store: str,
    turns: Sequence[str],
    agent: str | None,
    *,
    app: str | None,
    since: str | None,
    limit: int,
    model: str | None,
    tools: Tools,
    price: str | None,
    as_json: bool,
) -> bool:
    """`thinkwell turns replay`. Whether nothing differs."""
    if not turns and since is None:
        raise click.UsageError("Name a turn or a case file, or say --since 7d.")
    if tools == "live" and app is None:
        raise click.UsageError("--tools live needs the code of the tools: add --app PATH.")
    classes = {} if app is None else _classes(app)
    cases = [case_at(store, turn, agent) for turn in turns]
    if since is not None:
        cases += _recent(store, agent, begin_of(since), limit)
    if not cases:
        raise click.ClickException("There are no such turns.")
    trial = _Trials(classes, model, tools, load_price(price))
    trials = asyncio.run(trial.run_all(cases))
    if as_json:
        Printer().json(trials_as_data(trials, compares=model is None))
    else:
        show_trials(trials, compares=model is None)
    return all(trial.replay is not None and trial.replay.identical for trial in trials)


class _Trials(NamedTuple):
    """How turns are tried."""

    classes: Mapping[str, type[Think]]
    model: str | None
    tools: Tools
    price: PriceFunction | None

    async def run_all(self, cases: Sequence[Case]) -> list[Trial]:
        """One after the other."""
        return [await self._run(case) for case in cases]

    async def _run(self, case: Case) -> Trial:
        name, story = case.turn.agent_id.partition("/")[0], await tell(case, self.price)
        if self.classes and name not in self.classes:
            served = ", ".join(sorted(self.classes))
            return Trial(case, story, None, f"The app does not serve {name!r}, only {served}.")
        try:
            cls = self.classes.get(name) or await bare_agent(case, live=self.model is not None)
            replay = await replay_case(case, cls, model=self.model, tools=self.tools)
        except ThinkwellError as error:
            return Trial(case, story, None, str(error))
        again = await tell(Case(turn=replay.turn, journal=replay.journal), self.price)
        return Trial(case, story, replay, None, again.cost)


def _recent(store: str, agent: str | None, after: float, limit: int) -> list[Case]:
    """Turns since then that have ended and whose journals are kept, oldest first."""
    filters = {"agent": agent, "status": None, "parked": 0, "limit": limit, "deaths": DEATHS}
    with opened(store) as database:
        rows = database.fetch_all("list_turns", {**filters, "after": after})
        kept = [row for row in rows if row["settled_at"] is not None]
        found: list[Case] = []
        for row in reversed(kept):
            record = TurnRecord.from_row(find_turn_row(database, row["id"], row["agent"]))
            try:
                found.append(asyncio.run(make_case(Beside(database), record)))
            except ThinkwellError as error:
                click.echo(f"{row['id']}: {error}", err=True)
    return [case for case in found if case.journal.bodies]


def _classes(app: str) -> dict[str, type[Think]]:
    served = load_app(app).agents
    return {cls.agent_class: cls for cls in served if issubclass(cls, Think)}


def _said(function: Any, argument: Any) -> Any:
    try:
        return function(argument)
    except (ThinkwellError, msgspec.MsgspecError) as error:
        raise click.ClickException(str(error)) from error
