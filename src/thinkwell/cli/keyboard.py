"""Where the user's words come from: a terminal with line editing, or lines of a pipe."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol, TextIO

import click

# Readline has to know which characters take no room, or it would misplace long lines.
_PROMPT = "\001\x1b[1;36m\002› \001\x1b[0m\002"
_MORE = "\001\x1b[36m\002  \001\x1b[0m\002"
_YES, _NO = frozenset({"y", "Y", "j", "J"}), frozenset({"n", "N"})


class Keyboard(Protocol):
    """What the user says. `KeyboardInterrupt` and `EOFError` mean that they want to leave."""

    def line(self) -> str:
        """The next message or command."""
        ...

    def allows(self, call: str) -> bool:
        """Whether a tool call is allowed."""
        ...

    def silent(self) -> AbstractContextManager[None]:
        """While it lasts, what is typed does not show: it would tear what is being drawn."""
        ...


class TerminalKeyboard:
    """A prompt with history and editing; questions are answered with one key."""

    def __init__(self, typed: Callable[[], str] | None = None) -> None:
        """`typed` is what stands in the line that was interrupted."""
        import readline  # its import gives `input` line editing

        self._typed = typed or readline.get_line_buffer

    def line(self) -> str:
        """See `Keyboard`. A line that ends with a backslash goes on in the next one."""
        try:
            text = input(_PROMPT)
            while text.endswith("\\"):
                text = f"{text[:-1]}\n{input(_MORE)}"
        except KeyboardInterrupt:
            click.echo()
            if self._typed():  # the line is given up, not the conversation
                return ""
            raise
        return text.strip()

    def allows(self, call: str) -> bool:
        """See `Keyboard`."""
        # The terminal is changed before the question is seen: a quick answer must not get lost.
        with self._changed(whole_lines=False):
            click.secho(f"Allow {call}? ", nl=False, bold=True)
            click.secho("[y/n] ", nl=False, dim=True)
            try:
                key = next(key for key in iter(self._key, "") if key in _YES or key in _NO)
            except (KeyboardInterrupt, StopIteration):
                click.echo()
                raise KeyboardInterrupt from None
        click.echo("yes\n" if key in _YES else "no\n")
        return key in _YES

    def silent(self) -> AbstractContextManager[None]:
        """See `Keyboard`. What is typed meanwhile appears at the next prompt."""
        return self._changed(whole_lines=True)

    @contextmanager
    def _changed(self, *, whole_lines: bool) -> Generator[None]:
        import termios

        terminal = sys.stdin.fileno()
        before = termios.tcgetattr(terminal)
        flags = before[3] & ~termios.ECHO
        flags = flags if whole_lines else flags & ~termios.ICANON
        termios.tcsetattr(terminal, termios.TCSADRAIN, [*before[:3], flags, *before[4:]])
        try:
            yield
        finally:
            termios.tcsetattr(terminal, termios.TCSADRAIN, before)

    def _key(self) -> str:
        return os.read(sys.stdin.fileno(), 1).decode(errors="replace")


class PipeKeyboard:
    """One message per line; questions are answered by the next line, and by no at the end."""

    def __init__(self, lines: TextIO | None = None) -> None:
        self._lines = lines or sys.stdin

    def line(self) -> str:
        """See `Keyboard`."""
        text = self._lines.readline()
        if not text:
            raise EOFError
        return text.strip()

    def allows(self, call: str) -> bool:
        """See `Keyboard`."""
        click.echo(f"Allow {call}? [y/n]", err=True)
        return self._lines.readline().strip().lower() in {"y", "yes"}

    def silent(self) -> AbstractContextManager[None]:
        """See `Keyboard`. A pipe never shows anything."""
        return nullcontext()
