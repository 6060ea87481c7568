"""The options of `thinkwell turns export|replay|fork`; what they do is in `travel.py`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import click

DEFAULT_STORE = "sqlite:///.thinkwell/thinkwell.db"
LEFT_OUT = ("headers", "principal", "body", "state")
Options = Callable[[Any], Any]


def add_travel(group: click.Group, turn_options: Options, price_option: Options) -> None:
    """Put the commands into the group of `turns`."""
    for add in (_add_export, _add_fork):
        add(group, turn_options)
    _add_replay(group, price_option)


def _add_export(group: click.Group, turn_options: Options) -> None:
    @group.command("export")
    @turn_options
    @click.option(
        "--leave-out",
        multiple=True,
        type=click.Choice(LEFT_OUT),
        help="What not to write. May be repeated.",
    )
    def export_turn(store: str, turn: str, agent: str | None, leave_out: tuple[str, ...]) -> None:
        """Write a turn with everything it refers to, for a test: `> case.json`."""
        from thinkwell.cli import travel

        travel.export(store, turn, agent, leave_out)


def _add_replay(group: click.Group, price_option: Options) -> None:
    @group.command("replay")
    @click.argument("turns", metavar="[ID|CASE.json]...", nargs=-1)
    @click.option("--since", metavar="7d", help="All turns of that time that have ended.")
    @click.option("--limit", default=100, show_default=True, help="At most so many of them.")
    @click.option("--app", metavar="PATH", help="The code to run; else the record stands for it.")
    @click.option(
        "--model", metavar="NAME", help="Let this model answer instead of the recorded one."
    )
    @click.option(
        "--tools",
        type=click.Choice(("recorded", "deny", "live")),
        default="recorded",
        show_default=True,
        help="Recorded results, an error for each call, or run them (needs --app).",
    )
    @click.option("--agent", help="Only turns of one agent (class/name).")
    @price_option
    @click.option("--json", "as_json", is_flag=True, help="For programs.")
    @click.option("--store", default=DEFAULT_STORE, show_default=True, metavar="URL")
    def replay_turns(store: str, turns: tuple[str, ...], agent: str | None, **options: Any) -> None:
        """Run turns again in memory and tell what differs. Nothing that is stored changes."""
        from thinkwell.cli import travel

        sys.exit(0 if travel.replay(store, turns, agent, **options) else 1)


def _add_fork(group: click.Group, turn_options: Options) -> None:
    @group.command("fork")
    @turn_options
    @click.option("--at", default="0", show_default=True, help="First new step, or a message's id.")
    @click.option("--name", help="The name of the new agent.")
    @click.option("--model", metavar="NAME", help="The model that goes on.")
    @click.option("--system-prompt", metavar="TEXT", help="The prompt it goes on with.")
    @click.option(
        "--tools",
        type=click.Choice(("ask", "deny", "live")),
        default="ask",
        show_default=True,
        help="Calls that are not recorded wait for approval, fail, or run.",
    )
    def fork_turn(store: str, turn: str, agent: str | None, **options: Any) -> None:
        """Go on from a step of a turn in a new agent, without repeating what was done."""
        from thinkwell.cli import travel

        travel.fork(store, turn, agent, **options)
