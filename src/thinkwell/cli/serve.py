"""`thinkwell serve`: an app behind uvicorn, with settings measured to be the cheapest per frame.

The first lines say where the page is and where the data lives; they appear when the socket listens.
SIGINT and SIGTERM stop it: `/readyz` says so at once, running turns get a while to end before their
clients' eyes, then sockets are closed with 1012, what is left goes on at the next start, and the
process ends with status 0. A second signal waits for no turn.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import os
import signal
import socket
import threading
import webbrowser
from types import FrameType

import click
import msgspec
import uvicorn

from thinkwell.agent.think import Think
from thinkwell.cli.ending import UnjoinedThreads, ending, leave_tasks
from thinkwell.cli.garbage import Garbage
from thinkwell.cli.mistakes import model_problems
from thinkwell.core.errors import ThinkwellError
from thinkwell.host.host import DRAIN_TIMEOUT
from thinkwell.server.app import App
from thinkwell.server.asgi import AsgiApp
from thinkwell.server.edge import MAX_FRAME_BYTES
from thinkwell.server.guard import LOCAL_HOSTS
from thinkwell.server.socket_choice import websocket_class

LAST_PORT = 65_535
HURRY_LOOK = 0.1
"""Seconds between two looks whether somebody has lost patience with a stop."""
_EVERYWHERE = frozenset({"0.0.0.0", "::"})


class Listening(msgspec.Struct, frozen=True, kw_only=True):
    """Where a server is reached."""

    host: str = "127.0.0.1"
    port: int = 8787
    """0 takes a free one."""
    fd: int | None = None
    """A socket that listens already; it is used instead of a new one."""
    open_page: bool = False
    """Whether to open the page in the browser."""
    dev: bool = False
    """Whether whoever looks at the page is who writes the agents."""


def listen(listening: Listening) -> socket.socket:
    """A socket on that address. Raises `click.ClickException` if it cannot be had."""
    if not 0 <= listening.port <= LAST_PORT:
        raise click.ClickException(
            f"There is no port {listening.port}: ports go from 1 to {LAST_PORT}, and --port 0 "
            "takes a free one."
        )
    family = socket.AF_INET6 if ":" in listening.host else socket.AF_INET
    try:
        return socket.create_server(
            (listening.host, listening.port), family=family, backlog=2048, reuse_port=False
        )
    except OSError as error:
        address = f"{listening.host}:{listening.port}"
        if error.errno == errno.EADDRINUSE:
            raise click.ClickException(
                f"Port {listening.port} is in use: something else listens on {address}. Stop it, "
                f"or take another port: --port {listening.port + 1}, or --port 0 for a free one."
            ) from error
        # Its own text, as the number of a name that was not found counts apart from all others;
        # without what Python adds about the address, which is told already.
        why = (error.strerror or str(error)).partition(" (while attempting")[0]
        raise click.ClickException(
            f"Cannot listen on {address}: {why}. Try another --host or --port."
        ) from error


def refuse_open_binding(app: App, host: str) -> None:
    """Raise if others can reach `host` and the app lets everybody in (DESIGN §4)."""
    if is_loopback(host) or app.auth is not None:
        return
    raise click.UsageError(
        f"Refusing to listen on {host}: whoever can reach that address could use your agents. "
        "Give the app a check, `App(agents=[...], auth=...)`, or add --no-auth if everybody may."
    )


def accept_hosts(app: App, host: str, *, everybody: bool) -> None:
    """Let an app without a check answer to this address too; to any name if `everybody` may come.

    By itself such an app answers only to `LOCAL_HOSTS`: a page on the web can make its own
    name lead here, and would then be let in as if it were ours.
    """
    if app.auth is None and app.allowed_hosts is None:
        app.allowed_hosts = {"*"} if everybody else {*LOCAL_HOSTS, host}


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def server_config(app: AsgiApp, *, host: str, port: int) -> uvicorn.Config:
    """How an app is served."""
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        lifespan="on",
        ws=websocket_class(),
        ws_per_message_deflate=False,
        ws_max_size=int(getattr(app, "max_frame_bytes", MAX_FRAME_BYTES)),
        log_level="warning",
        access_log=False,
        # Streams that are open get a part of the time in which everything must have ended.
        timeout_graceful_shutdown=drain_timeout(app) / 3,  # pyright: ignore[reportArgumentType]
    )


def drain_timeout(app: AsgiApp) -> float:
    """Seconds a stop may take."""
    return float(getattr(app, "drain_timeout", DRAIN_TIMEOUT))


def run_server(app: App, listening: Listening) -> None:
    """Serve until a signal comes."""
    if listening.fd is None:
        listen(listening).close()  # before anything starts: a port in use is one clear line
    if listening.dev:
        # Who writes the agents reads on the page what went wrong; others never do.
        Think.expose_errors = True
    config = server_config(app, host=listening.host, port=listening.port)
    server = AnnouncingServer(config, app, open_page=listening.open_page)
    # uvicorn repeats a signal once it has shut down; without a handler that would kill us then.
    signal.signal(signal.SIGTERM, server.stop)
    with ending(drain_timeout(app), server.signalled) as end:
        try:
            with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
                runner.run(_serve(server, app, listening.fd))
        except KeyboardInterrupt:
            return
        except ThinkwellError as error:
            raise click.ClickException(str(error)) from error
        end.leave_threads()


async def _serve(server: AnnouncingServer, app: App, fd: int | None) -> None:
    app.problems = await model_problems(app.agents)
    await app.start()  # before the server, so that a locked store is one clear line
    with Garbage(lambda: app.is_busy) as garbage:
        watching = asyncio.get_running_loop().create_task(garbage.watch())
        try:
            asyncio.get_running_loop().set_default_executor(UnjoinedThreads())
            await server.serve(sockets=None if fd is None else [socket.socket(fileno=fd)])
        finally:
            watching.cancel()
            await app.stop()
            await leave_tasks()


class AnnouncingServer(uvicorn.Server):
    """A server that says where it is once it listens."""

    def __init__(self, config: uvicorn.Config, app: App, *, open_page: bool = False) -> None:
        super().__init__(config)
        self._app = app
        self._open_page = open_page
        self.signalled = threading.Event()
        """Set when a signal asks to stop."""
        self.hurried = False
        """Whether somebody has asked once more."""

    def stop(self, _signal: int, _frame: FrameType | None) -> None:
        """A signal handler: stop soon."""
        self.should_exit = True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal stops; time counts from then on. A second one waits for no turn."""
        self.hurried = self.signalled.is_set()
        self.signalled.set()
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let turns end while their clients watch, then close the sockets, then stop the app."""
        loop = asyncio.get_running_loop()
        draining = loop.create_task(self._app.drain(), name="drain")
        while not draining.done() and not self.hurried:
            await asyncio.wait([draining], timeout=HURRY_LOOK)
        draining.cancel()
        await super().shutdown(sockets=sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then tell."""
        await super().startup(sockets=sockets)
        if self.started:
            address = self._address()
            self._announce(address)
            if self._open_page:
                await asyncio.to_thread(webbrowser.open, f"{address}/")

    def _address(self) -> str:
        host = "127.0.0.1" if self.config.host in _EVERYWHERE else self.config.host
        port = self.servers[0].sockets[0].getsockname()[1]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"

    def _announce(self, address: str) -> None:
        click.echo(f"Thinkwell is running. Open {address}/")
        for name in self._app.agent_names:
            click.echo(f"  agent    {address}/{self._app.prefix}/{name}/{{name}}")
        click.echo(f"  store    {self._app.store}")
        click.echo(f"  process  {os.getpid()}")
        for name, problem in self._app.problems.items():
            click.secho(f"  problem  {name}: {problem}", fg="yellow")
        click.echo("Press Ctrl-C to stop.")
