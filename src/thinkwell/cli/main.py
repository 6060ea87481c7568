"""The `thinkwell` command: options and help. What a command does is in the module of its name."""

from __future__ import annotations

import click


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="thinkwell")
def main() -> None:
    """Run chat agents whose work outlives the request."""


@main.command()
@click.argument("path")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", default=8787, show_default=True, help="Port to listen on; 0 takes a free one."
)
@click.option("--store", metavar="URL", help="Where everything durable lives. Default: the app's.")
@click.option("--no-auth", is_flag=True, help="Allow an address that others can reach.")
def serve(path: str, host: str, port: int, store: str | None, *, no_auth: bool) -> None:
    """Serve the agents in PATH: a Python file, or module:app."""
    from thinkwell.cli.loading import load_app
    from thinkwell.cli.serve import refuse_public_host, run_server

    if not no_auth:
        refuse_public_host(host)
    run_server(load_app(path, store=store), host=host, port=port)


@main.command()
@click.argument("target", metavar="PATH|URL")
@click.option("--name", default="default", show_default=True, help="Which conversation.")
@click.option("--agent", "agent_class", help="Which agent, if there are several (kebab case).")
@click.option("--store", metavar="URL", help="Where everything durable lives. Default: the app's.")
def chat(target: str, name: str, agent_class: str | None, store: str | None) -> None:
    """Talk to an agent: one in a Python file, or one on a running server.

    Ctrl-C stops the running answer; /exit leaves.
    """
    from thinkwell.cli.chat import Target, chat_in_terminal

    chat_in_terminal(Target(path=target, name=name, agent_class=agent_class, store=store))
