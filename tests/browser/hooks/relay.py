"""A line between browser and server that a test can cut, and that can be slow, make sockets wait or
join what comes shortly after another.

The browser keeps one address while the server behind it comes and goes, as behind a load balancer.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

JOINED = 0.005
"""Seconds within which networks put writes together."""


class Relay:
    """Passes bytes both ways between its own port and `target`, a server's address."""

    def __init__(self) -> None:
        self.target = ""
        self.sockets = 0
        """How many WebSockets have asked to be opened."""
        self.sockets_pass = asyncio.Event()
        """Cleared: a WebSocket is accepted and then waits, as on a bad line."""
        self.sockets_pass.set()
        self.joins = 0.0
        """Seconds the line holds what the server says, so that it comes in one piece."""
        self.delays = 0.0
        """Seconds everything is under way, in either direction; may grow while a test runs."""
        self._server: asyncio.Server | None = None
        self._ends: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        self.sockets_pass.set()
        self.cut()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def url(self) -> str:
        """What the browser opens."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def cut(self) -> None:
        """Every connection is lost at once, without a closing word."""
        for end in list(self._ends):
            end.transport.abort()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._ends.add(writer)
        try:
            await self._pass_on(reader, writer)
        except OSError:
            writer.transport.abort()
        finally:
            self._ends.discard(writer)
            self._tasks.discard(task)
            writer.close()

    async def _may_pass(self, reader: asyncio.StreamReader) -> bool:
        """Wait until sockets pass; False if the browser gave up on this one meanwhile."""
        async with asyncio.TaskGroup() as group:
            passes = group.create_task(self.sockets_pass.wait())
            left = group.create_task(reader.read(1))  # nothing comes before the server's answer
            await asyncio.wait((passes, left), return_when=asyncio.FIRST_COMPLETED)
            passes.cancel()
            left.cancel()
        return not left.done() or left.cancelled()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = await reader.read(65536)
        if b"upgrade: websocket" in first.lower():
            self.sockets += 1
            if not await self._may_pass(reader):
                return
        await asyncio.sleep(self.delays)
        address = urlsplit(self.target)
        behind, ahead = await asyncio.open_connection(address.hostname, address.port)
        self._ends.add(ahead)
        try:
            ahead.write(first)
            await asyncio.gather(self._copy(reader, ahead), self._copy_joined(behind, writer))
        finally:
            self._ends.discard(ahead)
            ahead.close()

    async def _copy_joined(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter
    ) -> None:
        if not self.joins:
            await self._copy(source, target)
            return
        try:
            while data := await source.read(65536):
                until = asyncio.get_running_loop().time() + self.joins
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(until):
                        while more := await source.read(65536):
                            data += more
                await self._hand_on(data, target)
        finally:
            asyncio.get_running_loop().call_later(self.delays, target.close)

    async def _copy(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65536):
                await self._hand_on(data, target)
        finally:
            asyncio.get_running_loop().call_later(self.delays, target.close)

    async def _hand_on(self, data: bytes, target: asyncio.StreamWriter) -> None:
        if self.delays:
            asyncio.get_running_loop().call_later(self.delays, target.write, data)
        else:
            target.write(data)
            await target.drain()
