"""Two ways from a terminal to an agent: in this process, or over a WebSocket.

Both carry the same frame texts, so the conversation does not know which one it has. Frames are
collected while nobody reads them; a closed link ends the reader with `LinkError`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Annotated, Protocol
from urllib.parse import urlsplit

import msgspec

from thinkwell.core.errors import ThinkwellError
from thinkwell.core.ids import new_id
from thinkwell.core.tasks import TaskOwner
from thinkwell.host.client import AgentAddress
from thinkwell.server.app import App
from thinkwell.server.routing import split_path
from thinkwell.wire.encode import Frame
from thinkwell.wire.http import HttpRequest

if TYPE_CHECKING:
    import aiohttp

LARGEST_CODE_TO_RETRY = 3999
"""Close codes above are the app's way to say no (spec/01 §1.3.3); so is 1008."""
POLICY_VIOLATION = 1008
UNKNOWN_CLASS = 400
"""How a server answers to a class it does not have (spec/01 §1.1)."""
_UNKNOWN_USER = frozenset({401, 403, 4401, 4403})
_WHO = "Say who you are, for example with --header 'Authorization: Bearer ...'."


class LinkError(ThinkwellError):
    """The agent could not be reached, or the connection was lost.

    `final` says that trying again is of no use.
    """

    def __init__(self, text: str, *, final: bool = False) -> None:
        super().__init__(text)
        self.final = final


class Link(Protocol):
    """One connection to one agent."""

    async def send(self, text: str) -> None:
        """Send one frame. Raises `LinkError` if the connection is lost."""
        ...

    async def next_frame(self) -> str:
        """The next frame from the agent. Raises `LinkError` after the last one."""
        ...

    def has_frames(self) -> bool:
        """Whether a frame waits already."""
        ...


@asynccontextmanager
async def local_link(app: App, address: AgentAddress) -> AsyncGenerator[Link]:
    """A connection to an agent of an app that runs in this process. Nobody has to log in for it."""
    inbox = _Inbox()
    request = HttpRequest(method="GET", path="")
    connection = await app.client.open_connection(address, new_id(), request, inbox)

    class LocalLink(_InboxLink):
        async def send(self, text: str) -> None:
            await connection.receive(text)

    try:
        yield LocalLink(inbox)
    finally:
        await connection.close()


@asynccontextmanager
async def socket_link(url: str, headers: Mapping[str, str]) -> AsyncGenerator[Link]:
    """A connection to the agent at `url` (`http://host/agents/class/name`)."""
    import aiohttp

    inbox = _Inbox()
    tasks = TaskOwner("chat")
    try:
        async with (
            aiohttp.ClientSession(trust_env=True, headers=dict(headers)) as session,
            session.ws_connect(_socket_url(url), max_msg_size=0) as socket,
        ):

            class SocketLink(_InboxLink):
                async def send(self, text: str) -> None:
                    try:
                        await socket.send_str(text)
                    except (OSError, aiohttp.ClientError) as error:
                        raise LinkError("The server closed the connection.") from error

            # Pings are answered only while somebody receives, so a task always does.
            tasks.spawn(_collect(socket, inbox), name="reader")
            try:
                yield SocketLink(inbox)
            finally:
                await tasks.close()
    except aiohttp.WSServerHandshakeError as error:
        raise await _refusal(url, error.status, headers) from error
    except (OSError, aiohttp.ClientError) as error:
        raise LinkError(f"There is no agent at {url}: {error}") from error


class _Inbox:
    """Frames that have come and were not read yet; also the sink of a local connection."""

    def __init__(self) -> None:
        self.frames: asyncio.Queue[str | LinkError] = asyncio.Queue()

    def send(self, frames: Sequence[Frame], *, apart: bool = False) -> None:  # noqa: ARG002
        for frame in frames:
            self.frames.put_nowait(str(frame))

    def close(self, code: int, reason: str) -> None:
        final = code == POLICY_VIOLATION or code > LARGEST_CODE_TO_RETRY
        why = f": {code} {reason}".rstrip() if final else ""
        hint = f" {_WHO}" if code in _UNKNOWN_USER else ""
        text = f"The server closed the connection{why}.{hint}"
        self.frames.put_nowait(LinkError(text, final=final))


class _InboxLink:
    def __init__(self, inbox: _Inbox) -> None:
        self._frames = inbox.frames

    def has_frames(self) -> bool:
        return not self._frames.empty()

    async def next_frame(self) -> str:
        frame = await self._frames.get()
        if isinstance(frame, LinkError):
            self._frames.put_nowait(frame)  # whoever asks again gets the same answer
            raise frame
        return frame


async def _collect(socket: aiohttp.ClientWebSocketResponse, inbox: _Inbox) -> None:
    import aiohttp

    while (message := await socket.receive()).type in (
        aiohttp.WSMsgType.TEXT,
        aiohttp.WSMsgType.BINARY,
    ):
        if isinstance(message.data, str):
            inbox.send([message.data])
    reason = message.extra if isinstance(message.extra, str) else ""
    inbox.close(socket.close_code or 0, reason)


def _socket_url(url: str) -> str:
    address = urlsplit(url)
    scheme = "wss" if address.scheme in {"https", "wss"} else "ws"
    query = f"{address.query}&" if address.query else ""
    return address._replace(scheme=scheme, query=f"{query}_pk={new_id()}").geturl()


async def _refusal(url: str, status: int, headers: Mapping[str, str]) -> LinkError:
    if status in _UNKNOWN_USER:
        return LinkError(f"The server at {url} refuses you ({status}). {_WHO}", final=True)
    if status == UNKNOWN_CLASS:
        address = urlsplit(url)
        segments = split_path(address.path)  # mount, prefix, class, name
        class_name, path = segments[-2], "/".join(segments[:-3])
        scheme = address.scheme.replace("ws", "http")
        server = address._replace(scheme=scheme, path=path, query="").geturl()
        with suppress(LinkError):  # then the status has to do
            known = (await _settings(server, headers)).agents
            if class_name not in known:
                text = f"There is no agent {class_name!r} at {server}; it has {', '.join(known)}."
                return LinkError(text, final=True)
    return LinkError(f"There is no agent at {url}: the server answers {status}.", final=True)


async def first_agent(server_url: str, wanted: str | None, headers: Mapping[str, str]) -> str:
    """The URL of an agent class of a server: the wanted one, or the first it offers."""
    settings = await _settings(server_url, headers)
    return f"{server_url}/{settings.prefix}/{wanted or settings.agents[0]}"


class _Settings(msgspec.Struct):
    """What a server says of itself to whoever wants to talk to it."""

    prefix: str
    agents: Annotated[list[str], msgspec.Meta(min_length=1)]


async def _settings(server_url: str, headers: Mapping[str, str]) -> _Settings:
    import aiohttp

    try:
        async with (
            aiohttp.ClientSession(trust_env=True, headers=dict(headers)) as session,
            session.get(f"{server_url}/_thinkwell/settings", raise_for_status=True) as answer,
        ):
            return msgspec.json.decode(await answer.read(), type=_Settings)
    except (OSError, ValueError, msgspec.MsgspecError, aiohttp.ClientError) as error:
        raise LinkError(f"There is no Thinkwell server at {server_url}: {error}") from error
