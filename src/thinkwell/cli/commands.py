"""The `/` commands of `thinkwell chat`: a name, a line of help, what it does.

A command runs in the main thread, like everything the user types; what it wants from the agent it
asks of the conversation in the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar, cast

import msgspec

from thinkwell.cli.cards import cut
from thinkwell.cli.conversation import TerminalChat
from thinkwell.cli.screen import Screen
from thinkwell.core.ids import new_id
from thinkwell.core.money import show_usd
from thinkwell.messages.message import UIMessage, text_of

T = TypeVar("T")
MAX_LOOKED_AT = 50
"""How many of the last messages `/branches` and `/usage` ask about."""


class Leave(Exception):  # noqa: N818 - a way out, no error
    """The user wants to leave."""


class Talk(Protocol):
    """What a command may use."""

    conversation: TerminalChat
    screen: Screen
    branches: list[str]
    """The message ids of the last `/branches`, by their numbers."""

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something in the loop and wait for it."""
        ...

    def follow(self, answer: Coroutine[Any, Any, str]) -> None:
        """Show an answer and what comes after it."""
        ...

    def greet(self) -> None:
        """Show where the conversation stands."""
        ...


class Command(msgspec.Struct, frozen=True):
    """One command."""

    help: str
    run: Callable[[Talk, str], None]
    argument: str = ""
    """How its argument is called, if it takes one."""


def run_command(talk: Talk, line: str) -> None:
    """Run a line that begins with `/`. Raises `Leave`."""
    name, _, argument = line[1:].partition(" ")
    command = COMMANDS.get(name.lower())
    if command is None:
        talk.screen.note(f"There is no command /{name}. /help lists them.")
        return
    command.run(talk, argument.strip())


def _help(talk: Talk, _: str) -> None:
    shown = {f"/{name} {c.argument}".strip(): c.help for name, c in COMMANDS.items() if c.help}
    width = max(map(len, shown))
    lines = [f"{usage:<{width}}  {text}" for usage, text in shown.items()]
    lines += ["", "Ctrl-C stops an answer; when there is none, it leaves."]
    lines += ["A line that ends with \\ goes on in the next one."]
    talk.screen.note("\n".join(lines))


def _new(talk: Talk, name: str) -> None:
    chosen = name or f"chat-{new_id()[-8:]}"
    talk.wait(talk.conversation.open(chosen))
    talk.branches = []
    talk.screen.note(f"This is the conversation {chosen!r}.")
    talk.greet()


def _clear(talk: Talk, _: str) -> None:
    if not talk.wait(talk.conversation.clear()):
        talk.screen.note("You may not clear this conversation.")
        return
    talk.branches = []
    talk.screen.note("The conversation is empty now.")


def _history(talk: Talk, _: str) -> None:
    if not talk.conversation.messages:
        talk.screen.note("Nothing has been said yet.")
    for message in talk.conversation.messages:
        talk.screen.message(message)


def _retry(talk: Talk, _: str) -> None:
    if not any(message["role"] == "user" for message in talk.conversation.messages):
        talk.screen.note("There is no question yet.")
        return
    talk.follow(talk.conversation.retry())


def _branches(talk: Talk, _: str) -> None:
    path = talk.conversation.messages[-MAX_LOOKED_AT:]
    forks = talk.wait(_forks(talk.conversation, path))
    talk.branches = []
    lines: list[str] = []
    for active, versions in forks:
        lines.append("Your question:" if active["role"] == "user" else "The answer:")
        for version in versions:
            talk.branches.append(version["id"])
            mark = "●" if version["id"] == active["id"] else " "
            said = cut(text_of(version), 70) or "(no text)"
            lines.append(f"{mark} {len(talk.branches):>2}  {said}")
    if not lines:
        lines = ["There is one version of everything. /retry makes another answer."]
    else:
        lines += ["", "/switch N goes to a version."]
    talk.screen.note("\n".join(lines))


async def _forks(
    conversation: TerminalChat, path: list[UIMessage]
) -> list[tuple[UIMessage, list[UIMessage]]]:
    """The places of the path where there is more than one version, each with all of them."""
    before = conversation.messages[: len(conversation.messages) - len(path)]
    parents = [before[-1]["id"] if before else None, *(message["id"] for message in path)]
    found: list[tuple[UIMessage, list[UIMessage]]] = []
    for message, parent in zip(path, parents, strict=False):
        versions = cast("list[UIMessage]", await conversation.call("getBranches", parent))
        if len(versions) > 1:
            found.append((message, versions))
    return found


def _switch(talk: Talk, number: str) -> None:
    if not talk.branches:
        talk.screen.note("/branches lists the versions first.")
    elif not number.isdigit() or not 0 < int(number) <= len(talk.branches):
        talk.screen.note(f"Say /switch and a number from 1 to {len(talk.branches)}.")
    else:
        chosen = talk.branches[int(number) - 1]
        talk.wait(talk.conversation.call("setActiveLeaf", chosen))
        talk.branches = []
        talk.greet()


def _usage(talk: Talk, _: str) -> None:
    answers = [m["id"] for m in talk.conversation.messages if m["role"] == "assistant"]
    details = [
        found
        for message_id in answers[-MAX_LOOKED_AT:]
        if (found := talk.wait(talk.conversation.call("getTurnDetails", message_id)))
    ]
    if not details:
        talk.screen.note("There is no answer yet.")
        return
    lines = [f"Last answer: {_spent(details[-1:])}"]
    if len(details) > 1:
        lines.append(f"All {len(details)} answers: {_spent(details)}")
    talk.screen.note("\n".join(lines))


def _spent(details: list[dict[str, Any]]) -> str:
    used = [cast("dict[str, int]", turn["usage"]) for turn in details if turn.get("usage")]

    def total(name: str) -> int:
        return sum(usage.get(name) or 0 for usage in used)

    tokens = f"{total('inputTokens'):,} tokens in, {total('outputTokens'):,} out"
    if used and all(usage.get("nanoUsd") is not None for usage in used):
        tokens += f", {show_usd(total('nanoUsd'))}"
    steps = sum(turn.get("steps") or 0 for turn in details)
    seconds = sum(turn.get("durationMs") or 0 for turn in details) / 1000
    return (
        f"{tokens if used else 'no count of tokens'}, "
        f"{steps} step{'' if steps == 1 else 's'}, {seconds:.1f} s"
    )


def _quit(_: Talk, __: str) -> None:
    raise Leave


COMMANDS: dict[str, Command] = {
    "help": Command("this list", _help),
    "new": Command("another conversation, by its name or a fresh one", _new, "[NAME]"),
    "history": Command("everything that was said", _history),
    "clear": Command("delete the conversation", _clear),
    "retry": Command("another answer to the last question", _retry),
    "branches": Command("the versions that questions and answers have", _branches),
    "switch": Command("go to another version", _switch, "N"),
    "usage": Command("what the answers have cost", _usage),
    "quit": Command("leave; the agent goes on", _quit),
    "exit": Command("", _quit),
    "?": Command("", _help),
}


def is_command(line: str) -> bool:
    """Whether a line is meant for the chat program. A path such as `/etc/hosts` is a message."""
    name = line[1:].split(" ", 1)[0]
    return line.startswith("/") and "/" not in name and bool(name)
