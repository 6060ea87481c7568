"""What shows an answer, and the plain one: for pipes and files.

The plain screen writes the answer's text as it comes to the standard output and everything else
(tool calls, errors, notes) to the standard error, so that `thinkwell chat ... > answer.md` holds
the answer alone. `terminal.py` has the one for people.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import click

from thinkwell.cli.cards import Card, Cards
from thinkwell.messages.message import UIMessage, text_of

Chunk = Mapping[str, Any]


class Screen(Protocol):
    """Shows a conversation. Called in the loop, one call at a time."""

    def begin(self) -> None:
        """An answer is expected from here on."""
        ...

    def chunk(self, chunk: Chunk, *, live: bool) -> None:
        """One piece of the answer; not `live` if it happened earlier and is only shown now."""
        ...

    def update(self, message: UIMessage) -> None:
        """A tool call of a message has a new state."""
        ...

    def message(self, message: UIMessage) -> None:
        """A message that is complete."""
        ...

    def end(self, outcome: str, error: str | None) -> None:
        """The answer is over."""
        ...

    def note(self, text: str) -> None:
        """Something the user should know that is not part of the conversation."""
        ...

    def status(self, text: str) -> None:
        """What is being waited for; empty when it is the answer."""
        ...

    def refresh(self) -> None:
        """No more frames wait: bring what is shown up to date."""
        ...

    def tick(self) -> None:
        """A moment has passed while nothing came."""
        ...


class PlainScreen:
    """Text to the standard output, the rest to the standard error."""

    def __init__(self) -> None:
        self._cards = Cards()
        self._line_open = False

    def begin(self) -> None:
        """See `Screen`."""

    def chunk(self, chunk: Chunk, *, live: bool) -> None:
        """See `Screen`. Thoughts are left out: in a file nothing would set them apart."""
        match chunk["type"]:
            case "text-delta":
                self._write(chunk["delta"])
            case "text-start" | "text-end":
                self._end_line()
            case _:
                self._show(self._cards.take(chunk, live=live))

    def update(self, message: UIMessage) -> None:
        """See `Screen`."""
        for card in self._cards.update(message):
            self._show(card)

    def message(self, message: UIMessage) -> None:
        """See `Screen`."""
        who = "> " if message["role"] == "user" else ""
        click.echo(f"{who}{text_of(message)}")

    def end(self, outcome: str, error: str | None) -> None:
        """See `Screen`."""
        self._end_line()
        if error is not None:
            click.echo(f"✗ {error}", err=True)
        elif outcome == "aborted":
            click.echo("stopped", err=True)

    def note(self, text: str) -> None:
        """See `Screen`."""
        self._end_line()
        click.echo(text, err=True)

    def status(self, text: str) -> None:
        """See `Screen`."""

    def refresh(self) -> None:
        """See `Screen`."""

    def tick(self) -> None:
        """See `Screen`."""

    def _show(self, card: Card | None) -> None:
        if card is not None and card.is_worth_a_line:
            self._end_line()
            click.echo(card.line(), err=True)

    def _write(self, text: str) -> None:
        if text:
            self._line_open = not text.endswith("\n")
            click.echo(text, nl=False)

    def _end_line(self) -> None:
        if self._line_open:
            click.echo()
        self._line_open = False
