"""`thinkwell chat`: a prompt in the main thread, the conversation in a loop of its own thread.

The prompt blocks and keeps its line editing; meanwhile the loop answers pings and lets agents work.
Ctrl-C reaches the main thread: while an answer runs it stops the answer, a second one and one at
the prompt leave.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack
from typing import Any, TypeVar
from urllib.parse import urlsplit

import click
import msgspec

from thinkwell.cli.answers import AnswerToCall
from thinkwell.cli.cards import card_of
from thinkwell.cli.commands import Leave, is_command, run_command
from thinkwell.cli.conversation import CallError, Dial, TerminalChat
from thinkwell.cli.keyboard import Keyboard, PipeKeyboard, TerminalKeyboard
from thinkwell.cli.links import LinkError, first_agent, local_link, socket_link
from thinkwell.cli.loop_thread import LoopThread, result_of
from thinkwell.cli.mistakes import running
from thinkwell.cli.screen import PlainScreen, Screen
from thinkwell.core.errors import ThinkwellError
from thinkwell.host.client import AgentAddress
from thinkwell.messages.message import Part
from thinkwell.server.routing import split_path

T = TypeVar("T")
SCHEMES = ("http://", "https://", "ws://", "wss://")


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Whom the user wants to talk to."""

    path: str
    """A Python file, a folder, `module:app`, or the URL of a server or of an agent."""
    name: str = "default"
    agent_class: str | None = None
    """None takes the first one."""
    store: str | None = None
    headers: Sequence[str] = ()
    """For the server, each as `Name: value`."""


def chat_in_terminal(target: Target) -> int:
    """Talk to an agent until the user leaves; gives the exit status."""
    interactive = sys.stdin.isatty() and sys.stdout.isatty()
    stack = AsyncExitStack()
    with LoopThread() as loop:
        try:
            with running(target.path):
                dial, name = loop.run(_prepare(target, stack))
                screen = _screen() if interactive else PlainScreen()
                keyboard = TerminalKeyboard() if interactive else PipeKeyboard()
                talk = TerminalTalk(TerminalChat(dial, screen, name=name), screen, keyboard, loop)
                return talk.run(greet=interactive)
        except (ThinkwellError, OSError) as error:
            raise click.ClickException(str(error)) from error
        except KeyboardInterrupt:
            return 0
        finally:
            loop.run(stack.aclose())


def _screen() -> Screen:
    from rich.console import Console

    from thinkwell.cli.terminal import TerminalScreen

    return TerminalScreen(Console())


async def agent_url(target: Target, headers: Mapping[str, str]) -> tuple[str, str]:
    """The URL of the agent class and the name that a user meant by the URL of a server, of a class
    or of an agent.
    """
    address = urlsplit(target.path)
    segments = split_path(address.path)
    url = address._replace(path="/" + "/".join(segments), query="", fragment="").geturl()
    if len(segments) > 2:
        return url.rpartition("/")[0], segments[-1]
    try:
        return await first_agent(url.rstrip("/"), target.agent_class, headers), target.name
    except LinkError:
        if len(segments) < 2:
            raise
        return url, target.name


async def _prepare(target: Target, stack: AsyncExitStack) -> tuple[Dial, str]:
    """How to connect to a conversation, and with which one to begin."""
    if target.path.startswith(SCHEMES):
        headers = _headers(target.headers)
        url, name = await agent_url(target, headers)
        query = urlsplit(target.path).query
        end = f"?{query}" if query else ""
        return lambda name: socket_link(f"{url}/{name}{end}", headers), name
    from thinkwell import Think
    from thinkwell.cli.loading import load_app

    app = await stack.enter_async_context(load_app(target.path, store=target.store))
    chats = [cls.agent_class for cls in app.agents if issubclass(cls, Think)]
    chosen = target.agent_class or next(iter(chats or app.agent_names))
    if chosen not in app.agent_names:
        known = ", ".join(app.agent_names)
        raise LinkError(f"{target.path} has no agent {chosen!r}; it has {known}.")
    return lambda name: local_link(app, AgentAddress(chosen, name)), target.name


def _headers(lines: Sequence[str]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise click.UsageError(f"{line!r} is no header. Write --header 'Name: value'.")
        headers[name.strip()] = value.strip()
    return headers


class Warnings(logging.Handler):
    """What an agent in this process warns of, kept until it does not tear an answer to show it."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """See `logging`."""
        error = record.exc_info[1] if record.exc_info else None
        self._lines.append(f"{record.getMessage()}{f': {error}' if error is not None else ''}")

    def take(self) -> list[str]:
        """What has come since it was asked last."""
        lines, self._lines = self._lines, []
        return lines


class TerminalTalk:
    """One user at one terminal."""

    def __init__(
        self, conversation: TerminalChat, screen: Screen, keyboard: Keyboard, loop: LoopThread
    ) -> None:
        self.conversation = conversation
        self.screen = screen
        self.branches: list[str] = []
        self._keyboard = keyboard
        self._loop = loop
        self._shown: set[str] = set()
        self._not_ours: set[str] = set()
        """The calls about which the server does not take our word."""
        self._outcome = ""
        self._warnings = Warnings()
        logging.getLogger("thinkwell").addHandler(self._warnings)

    def run(self, *, greet: bool) -> int:
        """Talk until the user leaves; 1 if the last answer failed."""
        self.wait(self.conversation.open())
        if greet:
            self.screen.note(f"{self.conversation.name}: /help lists the commands, /quit leaves.")
            self.greet()
        self._remember()
        try:
            self.follow(self.conversation.resume())
            while True:
                self._turn()
        except (EOFError, Leave):
            return 1 if self._outcome == "error" else 0
        finally:
            logging.getLogger("thinkwell").removeHandler(self._warnings)
            self.wait(self.conversation.close())

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something in the loop and wait for it."""
        return self._loop.run(work)

    def greet(self) -> None:
        """Show the last question and its answer."""
        messages = self.conversation.messages
        start = max((n for n, m in enumerate(messages) if m["role"] == "user"), default=0)
        if start > 0:
            self.screen.note(f"{start} earlier messages; /history shows them.")
        for message in messages[start:]:
            self.screen.message(message)
        self._remember()

    def follow(self, answer: Coroutine[Any, Any, str]) -> None:
        """Show an answer, ask what it wants to know, and show what comes of that."""
        outcome = self._watch(answer)
        while replies := self._replies():
            outcome = self._watch(self.conversation.answer(replies))
            self._give_up({reply.call_id for reply in replies})
        self._outcome = outcome or self._outcome
        for line in self._warnings.take():
            self.screen.note(line)
        self._remember()

    def _turn(self) -> None:
        self.wait(self.conversation.catch_up())
        self._show_news()
        text = self._keyboard.line()
        if is_command(text):
            try:
                run_command(self, text)
            except CallError as error:
                self.screen.note(f"That did not work: {error}")
        elif text:
            self.follow(self.conversation.ask(text))

    def _watch(self, answer: Coroutine[Any, Any, str]) -> str:
        """Wait for an answer. Ctrl-C stops it, a second one leaves."""
        running = self._loop.start(answer)
        with self._keyboard.silent():
            try:
                return result_of(running)
            except KeyboardInterrupt:
                return self._stop(running)

    def _stop(self, running: Future[str]) -> str:
        try:
            if self.wait(self.conversation.stop()):
                return result_of(running)
        except KeyboardInterrupt:
            pass
        running.cancel()
        raise Leave

    def _replies(self) -> list[AnswerToCall]:
        asked = self._ours(self.conversation.questions())
        foreign = self._ours(self.conversation.foreign_calls())
        replies = [AnswerToCall(part, self._keyboard.allows(card_of(part).call)) for part in asked]
        return [*replies, *(AnswerToCall(part) for part in foreign)]

    def _ours(self, parts: Sequence[Part]) -> list[Part]:
        return [part for part in parts if part["toolCallId"] not in self._not_ours]

    def _give_up(self, answered: set[str]) -> None:
        """Do not ask again about calls that wait although we have answered them."""
        refused = answered & self.conversation.open_calls()
        if refused:
            self._not_ours |= refused
            self.screen.note("You may not decide this.")

    def _show_news(self) -> None:
        """Show what others have said meanwhile."""
        for message in self.conversation.messages:
            if message["id"] not in self._shown:
                self.screen.message(message)
        self._remember()

    def _remember(self) -> None:
        self._shown.update(message["id"] for message in self.conversation.messages)
