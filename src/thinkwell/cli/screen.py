"""An answer in a terminal: text as it streams, thoughts dimmed, tool calls on own lines."""

from __future__ import annotations

from typing import Any

import click

from thinkwell.core.json import dumps

MAX_VALUE = 300


class TerminalScreen:
    """Writes chunks to standard output. Colours disappear when it is not a terminal."""

    def __init__(self) -> None:
        self._line_open = False
        self._tools: dict[str, str] = {}

    def chunk(self, chunk: dict[str, Any]) -> None:
        """Show one chunk; kinds that say nothing to a reader are left out."""
        match chunk["type"]:
            case "text-delta":
                self._inline(chunk["delta"])
            case "reasoning-delta":
                self._inline(click.style(chunk["delta"], dim=True))
            case "text-start" | "text-end" | "reasoning-start" | "reasoning-end":
                self._new_line()
            case "tool-input-available":
                self._tools[chunk["toolCallId"]] = chunk["toolName"]
                self._line(f"▸ {chunk['toolName']} {_short(chunk['input'])}", fg="cyan")
            case "tool-output-available":
                self._line(f"◂ {self._tool(chunk)} {_short(chunk['output'])}", fg="green")
            case "tool-output-error" | "tool-input-error":
                self._line(f"✗ {self._tool(chunk)} {chunk['errorText']}", fg="red")
            case _:
                pass

    def end(self, outcome: str, error: str | None) -> None:
        """Close the answer and say so if it did not end by itself."""
        self._new_line()
        if error is not None:
            self._line(f"✗ {error}", fg="red")
        elif outcome == "aborted":
            self._line("stopped", dim=True)

    def _tool(self, chunk: dict[str, Any]) -> str:
        return self._tools.get(chunk["toolCallId"], str(chunk.get("toolName", "tool")))

    def _inline(self, text: str) -> None:
        self._line_open = not text.endswith("\n")
        click.echo(text, nl=False)

    def _line(self, text: str, **style: Any) -> None:
        self._new_line()
        click.secho(text, **style)

    def _new_line(self) -> None:
        if self._line_open:
            click.echo()
        self._line_open = False


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else dumps(value)
    return text if len(text) <= MAX_VALUE else text[:MAX_VALUE] + "…"
