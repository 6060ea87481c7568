"""`thinkwell serve`: an app behind uvicorn, with settings measured to be the cheapest per frame.

The first lines say where the page is and where the data lives; they appear when the socket listens.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket

import click
import uvicorn

from thinkwell.core.errors import ThinkwellError
from thinkwell.server.app import App
from thinkwell.server.asgi import AsgiApp

# A chat request carries the client's whole transcript.
MAX_MESSAGE_BYTES = 64 * 1024 * 1024


def refuse_public_host(host: str) -> None:
    """Raise unless only this machine can reach `host`."""
    try:
        local = ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = host == "localhost"
    if not local:
        raise click.UsageError(
            f"Refusing to listen on {host}: whoever can reach that address could use your agents. "
            "Use --host 127.0.0.1, or add --no-auth if that is what you want."
        )


def server_config(app: AsgiApp, *, host: str, port: int) -> uvicorn.Config:
    """How an app is served."""
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        lifespan="on",
        ws="websockets-sansio",
        ws_per_message_deflate=False,
        ws_max_size=MAX_MESSAGE_BYTES,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=5,
    )


def run_server(app: App, *, host: str, port: int) -> None:
    """Serve until a signal comes."""
    server = AnnouncingServer(server_config(app, host=host, port=port), app)
    try:
        with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
            runner.run(_serve(server, app))
    except KeyboardInterrupt:
        return
    except ThinkwellError as error:
        raise click.ClickException(str(error)) from error


async def _serve(server: AnnouncingServer, app: App) -> None:
    await app.start()  # before the server, so that a locked store is one clear line
    try:
        await server.serve()
    finally:
        await app.stop()


class AnnouncingServer(uvicorn.Server):
    """A server that says where it is once it listens."""

    def __init__(self, config: uvicorn.Config, app: App) -> None:
        super().__init__(config)
        self._app = app

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then tell."""
        await super().startup(sockets=sockets)
        if self.started:
            self._announce()

    def _announce(self) -> None:
        host = self.config.host
        port = self.servers[0].sockets[0].getsockname()[1]
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        click.echo(f"Thinkwell is running. Open {address}/")
        for name in self._app.agent_names:
            click.echo(f"  agent  {address}/{self._app.prefix}/{name}/{{name}}")
        click.echo(f"  store  {self._app.store}")
        click.echo("Press Ctrl-C to stop.")
