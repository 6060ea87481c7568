"""Text that is shown as it is: nobody's words move the cursor of an operator's terminal.

What clients, models and tools have said may hold sequences that clear the screen, write to the
clipboard or turn the order of letters around, so that somebody allows a call they did not read.
"""

from __future__ import annotations

import re
from typing import Any, Self, cast

from rich.console import RenderableType
from rich.table import Table as RichTable
from rich.text import Text as RichText

_MOVES = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
)
"""Controls other than tab and line feed, and marks that change the direction of writing."""


def visible(text: str) -> str:
    """The text, with everything that would not be seen written out."""
    return _MOVES.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class PlainText(RichText):
    """A text of `rich` whose words are `visible`."""

    def __init__(self, text: str = "", style: Any = "", **options: Any) -> None:
        super().__init__(visible(text), style, **options)

    @classmethod
    def assemble(cls, *parts: Any, **options: Any) -> Self:
        """A text of several parts."""
        return cast("Self", super().assemble(*parts, **options))

    def append(self, text: RichText | str, style: Any = None) -> Self:
        """Add words."""
        super().append(visible(text) if isinstance(text, str) else text, style)
        return self


class PlainTable(RichTable):
    """A table of `rich` that takes words in its cells for words, not for markup."""

    @classmethod
    def grid(cls, *headers: Any, **options: Any) -> Self:
        """A table without lines."""
        return cast("Self", super().grid(*headers, **options))

    def add_row(self, *cells: RenderableType | None, **options: Any) -> None:
        """Add a row."""
        plain = (PlainText(cell) if isinstance(cell, str) else cell for cell in cells)
        super().add_row(*plain, **options)
