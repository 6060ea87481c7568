"""The items of a terminal answer: markdown, a thought, a tool call.

Markdown is cut into blocks as it grows. All but the last are final: only the growing one is
rendered again with each piece of text, so a long answer costs no more at its end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import ClassVar

from markdown_it import MarkdownIt
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import Heading, Markdown, MarkdownElement
from rich.padding import Padding

from thinkwell.cli.cards import Card
from thinkwell.cli.plain_text import PlainText

Render = Callable[[str], list[str]]
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_PARSER = MarkdownIt().enable("table")
_COLOURS = {
    "output-available": "green",
    "output-error": "red",
    "output-denied": "yellow",
    "approval-requested": "yellow",
}


class LeftHeading(Heading):
    """A heading that stands at the left, without a box."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """See rich."""
        self.text.justify = "left"
        self.text.stylize("bold underline" if self.tag in {"h1", "h2"} else "bold")
        yield self.text


class ChatMarkdown(Markdown):
    """Markdown as an answer shows it."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": LeftHeading,
    }


class Painter:
    """Turns texts into lines of a terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def markdown(self, text: str) -> list[str]:
        """The lines of some markdown."""
        return self.lines(ChatMarkdown(text, code_theme="ansi_dark"))

    def thought(self, text: str) -> list[str]:
        """The lines of a thought."""
        return self.lines(Padding(PlainText(text.strip(), style="dim italic"), (0, 0, 0, 2)))

    def card(self, card: Card, moment: int) -> str:
        """One line about a tool call."""
        waits = not card.is_over and card.state != "approval-requested"
        sign = _SPINNER[moment % len(_SPINNER)] if waits else card.sign
        line = PlainText(no_wrap=True, overflow="ellipsis")
        line.append(f"{sign} ", style=_COLOURS.get(card.state, "cyan") if not waits else "cyan")
        line.append(card.call, style="bold" if waits else "")
        if outcome := card.outcome:
            line.append(f" → {outcome}", style="red" if card.state == "output-error" else "dim")
        return self._one_line(line, PlainText(card.took, style="dim"))

    def status(self, text: str, moment: int) -> str:
        """One dim line that shows that something is awaited."""
        sign = _SPINNER[moment % len(_SPINNER)]
        return self._one_line(PlainText(f"{sign} {text}", style="dim", no_wrap=True))

    def lines(self, renderable: RenderableType) -> list[str]:
        """Anything rich can show, as lines with their colours."""
        with self._console.capture() as capture:
            self._console.print(renderable)
        return [line.rstrip(" ") for line in capture.get().split("\n")[:-1]]

    def _one_line(self, text: PlainText, end: PlainText | None = None) -> str:
        """The text, cut if it has to be; its `end` is always seen."""
        end = end or PlainText()
        width = self._console.width - 1 - cell_len(end.plain)
        if cell_len(text.plain) > width:
            text.truncate(width, overflow="ellipsis")
        return (self.lines(text.append_text(end)) or [""])[0]


class GrowingText:
    """A text that comes piece by piece."""

    def __init__(self, render: Render, *, blocks: bool) -> None:
        """`blocks`: the text is markdown and is cut into blocks."""
        self._render = render
        self._blocks = blocks
        self._text = ""
        self._given = 0
        self._ended = False
        self._cache: tuple[str, list[str]] = ("", [])

    def add(self, delta: str) -> None:
        """Append a piece."""
        self._text += delta

    def end(self) -> None:
        """Nothing more comes."""
        self._ended = True

    @property
    def finished(self) -> bool:
        """See `Item`."""
        return self._ended

    def settle(self, room: int) -> Sequence[str]:
        """See `Item`."""
        final: list[str] = []
        if self._blocks:
            before, self._text = split_blocks(self._text)
            if before:
                final += self._rest(before)
                self._given = 0
        if self._ended:
            final += self._rest(self._text)
            self._text, self._given = "", 0
            return final
        lines = self._lines(self._text)
        if len(lines) - self._given > room:
            final += lines[self._given : len(lines) - room]
            self._given = len(lines) - room
        return final

    def growing(self) -> Sequence[str]:
        """See `Item`."""
        return self._lines(self._text)[self._given :]

    def _rest(self, text: str) -> list[str]:
        """What was not given out of a finished text, and the blank line below it."""
        if not text.strip():
            return []
        return [*self._lines(text)[self._given :], ""]

    def _lines(self, text: str) -> list[str]:
        if self._cache[0] != text:
            self._cache = (text, _trim(self._render(text)) if text.strip() else [])
        return self._cache[1]


class FixedLines:
    """Lines that are final from the start."""

    finished = True

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines

    def settle(self, room: int) -> Sequence[str]:  # noqa: ARG002 - they never change
        """See `Item`."""
        lines, self._lines = self._lines, ()
        return lines

    def growing(self) -> Sequence[str]:
        """See `Item`."""
        return self._lines


class CardItem:
    """A tool call that may still run."""

    def __init__(self, card: Card, painter: Painter, moment: Callable[[], int]) -> None:
        self.card = card
        self._painter = painter
        self._moment = moment
        self._ended = False
        self._given = False

    def end(self) -> None:
        """The turn is over: whatever the state is, it stays."""
        self._ended = True

    @property
    def finished(self) -> bool:
        """See `Item`."""
        return self._ended or self.card.is_over

    def settle(self, room: int) -> Sequence[str]:  # noqa: ARG002 - one line always fits
        """See `Item`."""
        if not self.finished or self._given:
            return []
        self._given = True
        return [self._line()]

    def growing(self) -> Sequence[str]:
        """See `Item`."""
        return [] if self._given else [self._line()]

    def _line(self) -> str:
        return self._painter.card(self.card, self._moment())


def split_blocks(text: str) -> tuple[str, str]:
    """Markdown as (blocks that are final, the block that may still grow)."""
    starts = [token.map[0] for token in _PARSER.parse(text) if token.level == 0 and token.map]
    if not starts or starts[-1] == 0:
        return "", text
    lines = text.splitlines(keepends=True)
    return "".join(lines[: starts[-1]]), "".join(lines[starts[-1] :])


def _trim(lines: list[str]) -> list[str]:
    """Without blank lines at the ends; rich puts some around blocks."""
    shown = [i for i, line in enumerate(lines) if _COLOUR.sub("", line).strip()]
    return lines[shown[0] : shown[-1] + 1] if shown else []
