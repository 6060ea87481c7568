"""A real server on a free loopback port, in the loop of the test."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn

from thinkwell.cli.serve import server_config
from thinkwell.server.asgi import AsgiApp


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().startup(sockets=sockets)
        except SystemExit as error:  # it would end the whole run, not just this test
            raise AssertionError("the server did not start: see its log") from error
        finally:
            self.listening.set()


@asynccontextmanager
async def serving(app: AsgiApp) -> AsyncIterator[str]:
    """Serve `app` while the block runs; gives `http://127.0.0.1:<port>`."""
    server = _Server(server_config(app, host="127.0.0.1", port=0))
    task = asyncio.get_running_loop().create_task(server.serve())
    try:
        await server.listening.wait()
        if not server.started:
            await task
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        await task
