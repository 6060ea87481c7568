"""Two ways from a terminal to an agent: in this process, or over a WebSocket.

Both carry the same frame texts, so the conversation does not know which one it has. Frames are
collected while nobody reads them; a closed link ends the reader with `LinkError`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from thinkwell.core.errors import ThinkwellError
from thinkwell.core.ids import new_id
from thinkwell.core.tasks import TaskOwner
from thinkwell.host.client import AgentAddress
from thinkwell.server.app import App

if TYPE_CHECKING:
    import aiohttp


class LinkError(ThinkwellError):
    """The agent could not be reached, or the connection was lost."""


class Link(Protocol):
    """One connection to one agent."""

    async def send(self, text: str) -> None:
        """Send one frame."""
        ...

    async def next_frame(self) -> str:
        """The next frame from the agent."""
        ...


@asynccontextmanager
async def local_link(app: App, address: AgentAddress) -> AsyncGenerator[Link]:
    """A connection to an agent of an app that runs in this process."""
    frames: asyncio.Queue[str | None] = asyncio.Queue()

    class LocalLink(_QueueLink):
        async def send(self, text: str) -> None:
            await connection.receive(text)

    def collect(texts: Sequence[str]) -> None:
        for text in texts:
            frames.put_nowait(text)

    connection = await app.client.open_connection(address, new_id(), collect)
    try:
        yield LocalLink(frames)
    finally:
        await connection.close()


@asynccontextmanager
async def socket_link(url: str) -> AsyncGenerator[Link]:
    """A connection to the agent at `url` (`http://host/agents/class/name`)."""
    import aiohttp

    frames: asyncio.Queue[str | None] = asyncio.Queue()
    tasks = TaskOwner("chat")
    address = urlsplit(url)
    secure = address.scheme in {"https", "wss"}
    socket_url = address._replace(scheme="wss" if secure else "ws", query=f"_pk={new_id()}")
    async with (
        aiohttp.ClientSession(trust_env=True) as session,
        session.ws_connect(socket_url.geturl(), max_msg_size=0) as socket,
    ):

        class SocketLink(_QueueLink):
            async def send(self, text: str) -> None:
                await socket.send_str(text)

        # Pings are answered only while somebody receives, so a task always does.
        tasks.spawn(_collect(socket, frames), name="reader")
        try:
            yield SocketLink(frames)
        finally:
            await tasks.close()


class _QueueLink:
    def __init__(self, frames: asyncio.Queue[str | None]) -> None:
        self._frames = frames

    async def next_frame(self) -> str:
        frame = await self._frames.get()
        if frame is None:
            raise LinkError("The server closed the connection.")
        return frame


async def _collect(
    socket: aiohttp.ClientWebSocketResponse, frames: asyncio.Queue[str | None]
) -> None:
    async for message in socket:
        if isinstance(message.data, str):
            frames.put_nowait(message.data)
    frames.put_nowait(None)


async def first_agent(server_url: str, wanted: str | None = None) -> str:
    """The URL of an agent class of a server: the wanted one, or the first it offers."""
    import aiohttp

    async with (
        aiohttp.ClientSession(trust_env=True) as session,
        session.get(f"{server_url}/healthz", raise_for_status=True) as answer,
    ):
        health = await answer.json()
    return f"{server_url}/{health['prefix']}/{wanted or health['agents'][0]}"
