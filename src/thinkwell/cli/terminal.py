"""An answer in a terminal: streaming markdown, dimmed thoughts, tool calls as one line each."""

from __future__ import annotations

import sys
from collections.abc import Callable

from rich.console import Console

from thinkwell.cli.cards import Card, Cards
from thinkwell.cli.plain_text import PlainText
from thinkwell.cli.region import Region
from thinkwell.cli.reply_items import CardItem, FixedLines, GrowingText, Painter
from thinkwell.cli.screen import Chunk
from thinkwell.messages.message import Part, UIMessage, is_tool_part, text_of


class TerminalScreen:
    """Shows a conversation to a person. See `Screen` for the methods."""

    def __init__(self, console: Console, write: Callable[[str], None] | None = None) -> None:
        """`console` knows the terminal's size and colours; `write` gets what is drawn."""
        self._console = console
        self._write = write or _write_out
        self._painter = Painter(console)
        self._region = Region(self._write, lambda: console.height)
        self._cards = Cards()
        self._items: dict[str, CardItem] = {}
        self._text: GrowingText | None = None
        self._moment = 0
        self._status = ""
        self._expecting = False
        self._after_card = False

    def begin(self) -> None:
        """See `Screen`."""
        self._expecting = True
        self._status = ""

    def chunk(self, chunk: Chunk, *, live: bool) -> None:
        """See `Screen`."""
        match chunk["type"]:
            case "text-start":
                self._open(GrowingText(self._painter.markdown, blocks=True))
            case "reasoning-start":
                self._open(GrowingText(self._painter.thought, blocks=False))
            case "text-delta" | "reasoning-delta" if self._text is not None:
                self._text.add(chunk["delta"])
            case "text-end" | "reasoning-end" | "finish-step":
                self._close_text()
            case _:
                self._show(self._cards.take(chunk, live=live))

    def update(self, message: UIMessage) -> None:
        """See `Screen`."""
        for card in self._cards.update(message):
            self._show(card)
        if not self._expecting:
            self._settle()

    def message(self, message: UIMessage) -> None:
        """See `Screen`."""
        self._cards.update(message)
        if message["role"] != "assistant":
            lines = [
                *self._painter.lines(PlainText(f"› {text_of(message)}", style="bold cyan")),
                "",
            ]
        else:
            lines = [line for part in message["parts"] for line in self._part(part)]
        self._print(lines)

    def end(self, outcome: str, error: str | None) -> None:
        """See `Screen`."""
        self._settle()
        if error is not None:
            self._print([*self._painter.lines(PlainText(f"✗ {error}", style="red")), ""])
        elif outcome == "aborted":
            self.note("Stopped.")

    def note(self, text: str) -> None:
        """See `Screen`."""
        self._print([*self._painter.lines(PlainText(text, style="dim")), ""])

    def status(self, text: str) -> None:
        """See `Screen`."""
        self._status = text
        self.refresh()

    def refresh(self) -> None:
        """See `Screen`."""
        quiet = self._text is None and all(item.finished for item in self._items.values())
        status = self._status or ("Thinking" if quiet else "")
        if self._expecting or self._status:
            self._region.draw(self._painter.status(status, self._moment) if status else "")

    def tick(self) -> None:
        """See `Screen`."""
        self._moment += 1
        self.refresh()

    def _open(self, text: GrowingText) -> None:
        self._close_text()
        self._close_cards()
        self._text = text
        self._region.add(text)

    def _close_text(self) -> None:
        if self._text is not None:
            self._text.end()
        self._text = None

    def _show(self, card: Card | None) -> None:
        if card is None:
            return
        item = self._items.get(card.id)
        if item is None or (item.finished and item.card is not card):
            self._close_text()
            item = CardItem(card, self._painter, lambda: self._moment)
            self._items[card.id] = item
            self._region.add(item)
            self._after_card = True
        item.card = card

    def _settle(self) -> None:
        """Print everything for good."""
        self._close_text()
        for item in self._items.values():
            item.end()
        self._close_cards()
        self._items = {}
        self._expecting = False
        self._region.close()

    def _part(self, part: Part) -> list[str]:
        if part.get("type") == "text":
            return [*self._painter.markdown(str(part.get("text", ""))), ""]
        if is_tool_part(part):
            [card] = self._cards.of({"id": "", "role": "assistant", "parts": [part]})
            return [self._painter.card(card, 0), ""]
        return []

    def _print(self, lines: list[str]) -> None:
        self._close_cards()
        self._region.add(FixedLines(lines))
        self._region.draw()

    def _close_cards(self) -> None:
        """A blank line below a group of tool calls."""
        if self._after_card:
            self._region.add(FixedLines([""]))
        self._after_card = False


def _write_out(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
