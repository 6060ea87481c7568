"""The `thinkwell` command: options and help. What a command does is in the module of its name."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

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


@main.command(epilog=_PATH_HELP)
@_server_options
@click.option("--open", "open_page", is_flag=True, help="Open the page in the browser.")
@click.option("--fd", type=int, hidden=True, help="A socket that listens already.")
def serve(path: str, **options: Any) -> None:
    """Serve the agents in PATH."""
    from thinkwell.cli.loading import load_app
    from thinkwell.cli.serve import (
        Listening,
        answer_to_local_names,
        refuse_open_binding,
        run_server,
    )

    app = load_app(path, store=options["store"])
    if not options["no_auth"]:
        refuse_open_binding(app, options["host"])
        answer_to_local_names(app, options["host"])
    where = {name: options[name] for name in ("host", "port", "fd", "open_page")}
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
