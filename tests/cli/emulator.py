"""A terminal of a few lines: enough of one to check what is left on it after redrawing."""

from __future__ import annotations

import re

_PIECES = re.compile(r"\x1b\[\??([0-9;]*)([A-Za-z])|(\r)|(\n)|([^\x1b\r\n]+)")


class Emulator:
    """Keeps what scrolled away; what has scrolled away cannot be changed."""

    def __init__(self, height: int = 10) -> None:
        self.height = height
        self.lines: list[str] = [""]
        self.writes = 0
        self._row = 0

    def write(self, text: str) -> None:
        """Take what a program writes."""
        self.writes += 1
        for number, command, _return, newline, words in _PIECES.findall(text):
            if words:
                self.lines[self._row] += words
            elif newline:
                self._row += 1
                if self._row == len(self.lines):
                    self.lines.append("")
            elif command:
                self._control(command, int(number) if number.isdigit() else 1)

    @property
    def shown(self) -> list[str]:
        """All lines but blank ones."""
        return [line.rstrip() for line in self.lines if line.strip()]

    def _control(self, command: str, number: int) -> None:
        if command == "A":
            top = max(len(self.lines) - self.height, 0)
            assert self._row - number >= top, "a line was redrawn that has scrolled away"
            self._row -= number
        elif command == "K":
            self.lines[self._row] = ""
        elif command == "J":
            del self.lines[self._row + 1 :]
            self.lines[self._row] = ""
