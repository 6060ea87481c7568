"""`thinkwell chat`: a prompt in the main thread, the conversation in a loop of its own thread.

The prompt blocks and keeps its line editing; meanwhile the loop answers pings and lets agents work.
Ctrl-C reaches the main thread: while an answer runs it stops the answer, at the prompt it leaves.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

import click
import msgspec

from thinkwell.cli.conversation import Conversation
from thinkwell.cli.links import Link, LinkError, first_agent, local_link, socket_link
from thinkwell.cli.screen import TerminalScreen
from thinkwell.core.errors import ThinkwellError
from thinkwell.host.client import AgentAddress
from thinkwell.server.routing import split_path

T = TypeVar("T")
SCHEMES = ("http://", "https://", "ws://", "wss://")


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Whom the user wants to talk to."""

    path: str
    """A Python file, `module:app`, or the URL of a server or of an agent."""
    name: str = "default"
    agent_class: str | None = None
    """None takes the first one."""
    store: str | None = None


def chat_in_terminal(target: Target) -> None:
    """Talk to an agent until the user leaves."""
    stack = AsyncExitStack()
    with LoopThread() as loop:
        try:
            conversation = loop.run(_connect(target, stack))
            _talk(conversation, loop)
        except (ThinkwellError, OSError) as error:
            raise click.ClickException(str(error)) from error
        finally:
            loop.run(stack.aclose())


async def agent_url(target: Target) -> str:
    """The full URL of the agent a user named by the URL of its server, its class or itself."""
    url = target.path.rstrip("/")
    segments = split_path(urlsplit(url).path)
    if not segments:
        url = await first_agent(url, target.agent_class)
    return url if len(segments) >= 3 else f"{url}/{target.name}"


async def _connect(target: Target, stack: AsyncExitStack) -> Conversation:
    conversation = Conversation(await _open_link(target, stack), TerminalScreen())
    await conversation.connect()
    return conversation


async def _open_link(target: Target, stack: AsyncExitStack) -> Link:
    if target.path.startswith(SCHEMES):
        return await _reach(target, stack)
    from thinkwell.cli.loading import load_app

    app = await stack.enter_async_context(load_app(target.path, store=target.store))
    chosen = target.agent_class or app.agent_names[0]
    if chosen not in app.agent_names:
        known = ", ".join(app.agent_names)
        raise click.ClickException(f"{target.path} has no agent {chosen!r}; it has {known}.")
    return await stack.enter_async_context(local_link(app, AgentAddress(chosen, target.name)))


async def _reach(target: Target, stack: AsyncExitStack) -> Link:
    import aiohttp

    try:
        return await stack.enter_async_context(socket_link(await agent_url(target)))
    except aiohttp.ClientError as error:
        raise LinkError(f"There is no agent at {target.path}: {error}") from error


def _talk(conversation: Conversation, loop: LoopThread) -> None:
    if conversation.messages:
        click.secho(f"({len(conversation.messages)} messages so far)", dim=True)
    _follow(conversation, loop, conversation.resume())
    while True:
        try:
            text = input("you ▸ ").strip()
        except (EOFError, KeyboardInterrupt):
            click.echo()
            return
        if text in {"/exit", "/quit"}:
            return
        if text:
            _follow(conversation, loop, conversation.ask(text))


def _follow(
    conversation: Conversation, loop: LoopThread, answer: Coroutine[Any, Any, None]
) -> None:
    """Wait for an answer; Ctrl-C stops the answer, a second one leaves."""
    running = asyncio.run_coroutine_threadsafe(answer, loop.loop)
    try:
        running.result()
    except KeyboardInterrupt:
        loop.run(conversation.stop())
        running.result()


class LoopThread:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` in the loop and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()
