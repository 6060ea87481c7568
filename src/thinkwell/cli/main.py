"""The `thinkwell` command: options and help. What a command does is in the module of its name."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from thinkwell.cli.money_commands import add_money
from thinkwell.cli.travel_commands import add_travel

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_STORE = "sqlite:///.thinkwell/thinkwell.db"
STATUSES = ("accepted", "running", "completed", "error", "aborted", "skipped")
JOB_STATUSES = ("waiting", "held", "running", "done", "failed", "cancelled")
_PATH_HELP = "PATH is a Python file, a folder with agents/, or module:app."


def _server_options(command: F) -> F:
    for option in (
        click.option("--no-auth", is_flag=True, help="Let everybody in who can reach the address."),
        click.option("--store", metavar="URL", help="Where everything durable lives."),
        click.option(
            "--port", default=8787, show_default=True, help="Port to listen on; 0 takes a free one."
        ),
        click.option(
            "--host", default="127.0.0.1", show_default=True, help="Address to listen on."
        ),
        click.argument("path"),
    ):
        command = option(command)
    return command


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="thinkwell")
def main() -> None:
    """Run chat agents whose work outlives the request."""


@main.command()
@click.argument("folder", default=".", type=click.Path(path_type=Path))
def init(folder: Path) -> None:
    """Begin a project: an agent, a test of it, a README. Nothing is overwritten."""
    from thinkwell.cli.init import make_project

    make_project(folder)


@main.command(epilog=_PATH_HELP)
@_server_options
@click.option("--open", "open_page", is_flag=True, help="Open the page in the browser.")
@click.option("--log-json", is_flag=True, help="Write the log as JSON lines.")
@click.option("--fd", type=int, hidden=True, help="A socket that listens already.")
@click.option("--dev", is_flag=True, hidden=True, help="The page shows what really went wrong.")
def serve(path: str, **options: Any) -> None:
    """Serve the agents in PATH."""
    from thinkwell.cli.loading import load_app
    from thinkwell.cli.serve import (
        Listening,
        accept_hosts,
        refuse_open_binding,
        run_server,
    )

    if options["log_json"]:
        from thinkwell.core.logs import log_as_json

        log_as_json()
    app = load_app(path, store=options["store"])
    if not options["no_auth"]:
        refuse_open_binding(app, options["host"])
    accept_hosts(app, options["host"], everybody=options["no_auth"])
    where = {name: options[name] for name in ("host", "port", "fd", "open_page", "dev")}
    run_server(app, Listening(**where))


@main.command(epilog=_PATH_HELP)
@_server_options
@click.option("--open/--no-open", "open_page", default=True, help="Open the page in the browser.")
def dev(path: str, host: str, port: int, *, open_page: bool, **options: Any) -> None:
    """Serve the agents in PATH, open the page, and reload when a Python file changes."""
    from thinkwell.cli.dev import run_dev
    from thinkwell.cli.serve import Listening

    handed_on = ["--no-auth"] if options["no_auth"] else []
    if options["store"] is not None:
        handed_on += ["--store", options["store"]]
    listening = Listening(host=host, port=port, open_page=open_page)
    sys.exit(run_dev(path, listening, handed_on))


@main.command()
@click.argument("target", metavar="PATH|URL")
@click.option("--name", default="default", show_default=True, help="Which conversation.")
@click.option("--agent", "agent_class", help="Which agent, if there are several (kebab case).")
@click.option("--store", metavar="URL", help="Where everything durable lives.")
@click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="'NAME: VALUE'",
    help="Sent to the server, for example 'Authorization: Bearer ...'. May be repeated.",
)
def chat(target: str, **options: Any) -> None:
    """Talk to an agent: one in a Python file, or one on a running server.

    A URL is that of a server or of an agent (http://host:port/agents/class/name). Ctrl-C stops the
    running answer, a second one leaves. /help lists the commands. Without a terminal, each line of
    the input is a message and the answers are written as they are.
    """
    from thinkwell.cli.chat import Target, chat_in_terminal

    sys.exit(chat_in_terminal(Target(path=target, **options)))


def _store_option(command: F) -> F:
    return click.option(
        "--store",
        default=DEFAULT_STORE,
        show_default=True,
        metavar="URL",
        help="The database: its URL, or the path of its file.",
    )(command)


def _json_option(command: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="For programs.")(command)


def _price_option(command: F) -> F:
    return click.option(
        "--price",
        metavar="MODULE:FUNCTION",
        help="Says what a call cost: price(provider, model, usage).",
    )(command)


def _turn_options(command: F) -> F:
    command = click.option("--agent", help="Whose turn (class/name), if several have it.")(command)
    return click.argument("turn", metavar="ID")(_store_option(command))


@main.group()
def turns() -> None:
    """Look at turns, retry or stop them, replay or fork them."""


@turns.command("list")
@click.option("--parked", is_flag=True, help="Only those that killed the process too often.")
@click.option("--agent", help="Only those of one agent (class/name).")
@click.option("--status", type=click.Choice(STATUSES), help="Only those with this status.")
@click.option("--since", metavar="7d", help="Only those of that time: 7d, 12h, 30min.")
@click.option("--limit", default=30, show_default=True, help="How many, the newest first.")
@_json_option
@_store_option
def list_turns(store: str, *, as_json: bool, **filters: Any) -> None:
    """The newest turns of all agents."""
    from thinkwell.cli import operating

    operating.list_turns(store, as_json=as_json, **filters)


@turns.command()
@_turn_options
@click.option("--step", type=int, metavar="N", help="Only this step, with all that was sent.")
@click.option("--diff", is_flag=True, help="What changed in each request since the one before.")
@_price_option
@click.option("--requests", is_flag=True, help="What its model calls were given, as JSON.")
@_json_option
def show(store: str, turn: str, agent: str | None, **options: Any) -> None:
    """All about one turn: how it ended, and each step with model, tools, hooks and attempts."""
    from thinkwell.cli import operating

    operating.show_turn(store, turn, agent, **options)


@turns.command()
@_turn_options
def retry(store: str, turn: str, agent: str | None) -> None:
    """Answer the question of a parked or failed turn again, in a new turn."""
    from thinkwell.cli import operating

    operating.retry_turn(store, turn, agent)


@turns.command()
@_turn_options
def cancel(store: str, turn: str, agent: str | None) -> None:
    """Stop a turn that runs or waits."""
    from thinkwell.cli import operating

    operating.cancel_turn(store, turn, agent)


def _job_options(command: F) -> F:
    command = click.option("--agent", help="Whose job (class/name), if several have it.")(command)
    return click.argument("job", metavar="ID")(_store_option(command))


@main.group()
def tools() -> None:
    """Look at tool calls whose outcome nobody knows, and say what came of them."""


@tools.command("list")
@click.option("--agent", help="Only those of one agent (class/name).")
@click.option("--limit", default=30, show_default=True, help="How many, the newest first.")
@_json_option
@_store_option
def list_outcomes(store: str, agent: str | None, limit: int, *, as_json: bool) -> None:
    """Calls that were cut off while they ran and may not be repeated."""
    from thinkwell.cli import outcomes

    outcomes.list_outcomes(store, as_json=as_json, agent=agent, limit=limit)


@tools.command("resolve")
@click.argument("call", metavar="CALL")
@click.option("--output", metavar="JSON", help="It took effect: this is its result.")
@click.option("--not-done", is_flag=True, help="It did not take effect, and may run again.")
@click.option("--agent", help="Whose call (class/name), if several have it.")
@_store_option
def resolve_outcome(store: str, call: str, agent: str | None, **said: Any) -> None:
    """Say what came of a call: CALL is its id or its idempotency key."""
    from thinkwell.cli import outcomes

    outcomes.resolve_outcome(store, call, agent, **said)


@main.group()
def jobs() -> None:
    """Look at jobs, cancel them or try them again."""


@jobs.command("list")
@click.option("--agent", help="Only those of one agent (class/name).")
@click.option("--status", type=click.Choice(JOB_STATUSES), help="Only those with this status.")
@click.option("--name", help="Only those of one handler.")
@click.option("--limit", default=30, show_default=True, help="How many, the newest first.")
@_json_option
@_store_option
def list_jobs(store: str, *, as_json: bool, **filters: Any) -> None:
    """The newest jobs of all agents."""
    from thinkwell.cli import jobs

    jobs.list_jobs(store, as_json=as_json, **filters)


@jobs.command("show")
@_job_options
@_json_option
def show_job(store: str, job: str, agent: str | None, *, as_json: bool) -> None:
    """All about one job: its payload, its attempts, what it stashed, why it failed."""
    from thinkwell.cli import jobs

    jobs.show_job(store, job, agent, as_json=as_json)


@jobs.command("cancel")
@_job_options
def cancel_job(store: str, job: str, agent: str | None) -> None:
    """Cancel a job that waits or runs."""
    from thinkwell.cli import jobs

    jobs.cancel_job(store, job, agent)


@jobs.command("retry")
@_job_options
def retry_job(store: str, job: str, agent: str | None) -> None:
    """Try a job again that failed or was cancelled, from what it stashed last."""
    from thinkwell.cli import jobs

    jobs.retry_job(store, job, agent)


@main.group()
def approvals() -> None:
    """Look at calls that wait for somebody, decide about them, look at rules."""


@approvals.command("list")
@click.option("--agent", help="Only those of one agent (class/name).")
@click.option("--all", is_flag=True, help="Also those that were decided.")
@click.option("--limit", default=30, show_default=True, help="How many, the newest first.")
@_json_option
@_store_option
def list_approvals(store: str, *, as_json: bool, **filters: Any) -> None:
    """The calls of all agents that wait for somebody to allow them."""
    from thinkwell.cli import approvals

    approvals.list_approvals(store, as_json=as_json, **filters)


def _approval_options(command: F) -> F:
    command = click.option("--agent", help="Whose question (class/name), if several have it.")(
        command
    )
    command = click.option("--reason", help="Kept with the decision; the model reads a refusal's.")(
        command
    )
    return click.argument("approval", metavar="ID")(_store_option(command))


@approvals.command("allow")
@_approval_options
@click.option("--always", is_flag=True, help="Also from now on, for the same call.")
def allow(store: str, approval: str, agent: str | None, **said: Any) -> None:
    """Allow a call that waits."""
    from thinkwell.cli import approvals

    approvals.decide(store, approval, agent, approved=True, **said)


@approvals.command("deny")
@_approval_options
def deny(store: str, approval: str, agent: str | None, **said: Any) -> None:
    """Refuse a call that waits."""
    from thinkwell.cli import approvals

    approvals.decide(store, approval, agent, approved=False, **said)


@approvals.command("rules")
@click.option("--agent", help="Only those of one agent (class/name).")
@click.option("--limit", default=30, show_default=True, help="How many, the newest first.")
@_json_option
@_store_option
def list_rules(store: str, *, as_json: bool, **filters: Any) -> None:
    """The rules that always allow some calls."""
    from thinkwell.cli import approvals

    approvals.list_rules(store, as_json=as_json, **filters)


@approvals.command("revoke")
@click.argument("rule", metavar="ID")
@click.option("--agent", help="Whose rule, if a copy of an agent has it too (class/name).")
@_store_option
def revoke(store: str, rule: str, agent: str | None) -> None:
    """Ask again about the calls that a rule allows."""
    from thinkwell.cli import approvals

    approvals.revoke_rule(store, rule, agent)


@main.group()
def schedules() -> None:
    """Look at schedules and declared tasks, or run one now."""


@schedules.command("list")
@click.option("--agent", help="Only those of one agent (class/name).")
@click.option("--limit", default=100, show_default=True, help="How many, the next one first.")
@_json_option
@_store_option
def list_schedules(store: str, *, as_json: bool, **filters: Any) -> None:
    """What comes again and what waits: agent, task, next run, last outcome."""
    from thinkwell.cli import schedules

    schedules.list_schedules(store, as_json=as_json, **filters)


@schedules.command("run")
@click.argument("name")
@click.option("--agent", help="Whose it is (class/name), if several agents have one.")
@_store_option
def run_schedule(store: str, name: str, agent: str | None) -> None:
    """Run a task or a schedule now, beside its own times. NAME may also be its id."""
    from thinkwell.cli import schedules

    schedules.run_schedule(store, name, agent)


@main.group()
def agents() -> None:
    """Look at agents, pause one, move it to another database or delete it."""


@agents.command("list")
@click.option("--class", "cls", help="Only those of one class (kebab case).")
@click.option("--limit", default=30, show_default=True, help="How many, the latest used first.")
@_json_option
@_store_option
def list_agents(store: str, cls: str | None, limit: int, *, as_json: bool) -> None:
    """The agents of a database and how much they have done."""
    from thinkwell.cli import agents

    agents.list_agents(store, as_json=as_json, limit=limit, **{"class": cls})


@agents.command("show")
@click.argument("agent", metavar="CLASS/NAME")
@_json_option
@_store_option
def show_agent(store: str, agent: str, *, as_json: bool) -> None:
    """All about one agent: what is stored of it, its state, its last turns."""
    from thinkwell.cli import agents

    agents.show_agent(store, agent, as_json=as_json)


@agents.command("delete")
@click.argument("agent", metavar="CLASS/NAME")
@click.option("--yes", is_flag=True, help="Do not ask whether you mean it.")
@_json_option
@_store_option
def delete_agent(store: str, agent: str, *, yes: bool, as_json: bool) -> None:
    """Delete an agent for good: its conversation, state, jobs and stored values."""
    from thinkwell.cli import agents

    agents.delete_agent(store, agent, ask_first=not yes, as_json=as_json)


@agents.command("pause")
@click.argument("agent", metavar="CLASS/NAME")
@click.option("--reason", help="What its clients read.")
@_json_option
@_store_option
def pause_agent(store: str, agent: str, reason: str | None, *, as_json: bool) -> None:
    """Let an agent accept turns and jobs, and begin none of them until it is resumed."""
    from thinkwell.cli import stopping

    stopping.pause_agent(store, agent, reason, as_json=as_json)


@agents.command("resume")
@click.argument("agent", metavar="CLASS/NAME")
@_json_option
@_store_option
def resume_agent(store: str, agent: str, *, as_json: bool) -> None:
    """Let a paused agent go on."""
    from thinkwell.cli import stopping

    stopping.resume_agent(store, agent, as_json=as_json)


@agents.command("export")
@click.argument("agent", metavar="CLASS/NAME")
@_store_option
def export_agent(store: str, agent: str) -> None:
    """Write all of an agent as JSON lines, to move it or to keep it."""
    from thinkwell.cli import transfer

    transfer.export_agent(store, agent)


@agents.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--as", "agent", metavar="CLASS/NAME", help="Give it another name.")
@_json_option
@_store_option
def import_agent(store: str, file: Path, agent: str | None, *, as_json: bool) -> None:
    """Take in an agent that was exported; its conversation goes on."""
    from thinkwell.cli import transfer

    transfer.bring_in(store, file, agent, as_json=as_json)


@main.group()
def principals() -> None:
    """Hand out or erase what is stored of a person."""


@principals.command("export")
@click.argument("principal", metavar="ID")
@_store_option
def export_principal(store: str, principal: str) -> None:
    """Write all that is stored of a person as JSON lines."""
    from thinkwell.cli import transfer

    transfer.export_principal(store, principal)


@principals.command("erase")
@click.argument("principal", metavar="ID")
@click.option("--yes", is_flag=True, help="Do not ask whether you mean it.")
@_json_option
@_store_option
def erase_principal(store: str, principal: str, *, yes: bool, as_json: bool) -> None:
    """Erase a person: what they asked and were answered, in every agent."""
    from thinkwell.cli import transfer

    transfer.erase_principal(store, principal, ask_first=not yes, as_json=as_json)


@main.command()
@click.option("--turn", metavar="ID", help="Stop this turn and nothing else.")
@click.option("--agent", metavar="CLASS/NAME", help="Stop the turns of this agent.")
@click.option("--all", "everything", is_flag=True, help="Stop the turns of all agents.")
@click.option("--timeout", default=60.0, show_default=True, help="Seconds to wait for the end.")
@_store_option
def stop(
    store: str, turn: str | None, agent: str | None, timeout: float, *, everything: bool
) -> None:
    """Stop turns for good (--turn, --agent, --all), or else the server itself.

    A server that is stopped goes on with its turns at the next start; a turn that is stopped does
    not. Turns can be stopped whether or not anybody serves the database.
    """
    from thinkwell.cli import operating, stopping

    if everything and (turn or agent):
        raise click.UsageError("--all stops everything: leave out --turn and --agent.")
    if turn or agent or everything:
        stopping.stop_turns(store, turn, agent)
    else:
        operating.stop_server(store, timeout=timeout)


@main.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--force", is_flag=True, help="Replace FILE.")
@_store_option
def backup(store: str, file: Path, *, force: bool) -> None:
    """Copy a database into FILE, also while a server works on it."""
    from thinkwell.cli import operating

    operating.back_up(store, file, force=force)


@main.command()
@click.option("--compact", is_flag=True, help="Rewrite the file first, to make it smaller.")
@click.option("--deploy", metavar="PATH", help="What the code in PATH would not understand of it.")
@_json_option
@_store_option
def doctor(store: str, *, as_json: bool, compact: bool, deploy: str | None) -> None:
    """Examine a database: its pages, its version, who serves it, what is unfinished.

    With --deploy, compare it with new code instead: a Python file, a folder with agents/, or
    module:app. Nothing is changed, and a server may work on it. The exit code is 1 if there are
    agents, turns, waiting calls, jobs or states that the new code would not understand.
    """
    from thinkwell.cli import operating

    if deploy is not None:
        from thinkwell.cli.deploys import examine_deploy

        sys.exit(0 if examine_deploy(store, deploy, as_json=as_json) else 1)
    if compact:
        operating.compact(store)
    sys.exit(0 if operating.examine(store, as_json=as_json) else 1)


@main.command(epilog=_PATH_HELP)
@click.argument("path")
@click.option("--kills", default=100, show_default=True, help="Deaths at random moments.")
@click.option("--points", is_flag=True, help="Also die at every named crash point, once each.")
@click.option("--at", multiple=True, metavar="POINT[:N]", help="Die at this crash point too.")
@click.option("--seed", type=int, help="Makes the same plan again; default: a new one.")
@click.option("--first", default=1, show_default=True, help="The first life of the plan to live.")
@click.option("--clients", default=4, show_default=True, help="Clients that keep reconnecting.")
@click.option("--turns", type=int, help="Ask at most so many questions.")
@click.option(
    "--model",
    type=click.Choice(["scripted", "real"]),
    default="scripted",
    show_default=True,
    help="Who answers: a script that calls your tools, or the models your app names.",
)
@click.option("--minutes", type=float, help="End after so long, however many kills are left.")
@click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="'NAME: VALUE'",
    help="Sent by every client, for an app with auth. May be repeated.",
)
@click.option("--keep", type=click.Path(path_type=Path), help="Leave all logs in this folder.")
@_json_option
def chaos(path: str, *, as_json: bool, **options: Any) -> None:
    """Kill the app in PATH again and again under load, and check that nothing is lost or doubled.

    Its own database is not touched: the app works on a scratch file. Its tools DO run, for real.
    """
    from thinkwell.cli.chaos import run

    sys.exit(run(path, as_json=as_json, **options))


add_travel(turns, _turn_options, _price_option)
add_money(main, _json_option, _store_option)
