"""Reads a docstring the way the model will: a summary, and one line per argument.

Owns the small part of the Google style that tools need: the first paragraph and the `Args:`
section. Everything else in the docstring is for people and is left out.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

_SECTION = re.compile(r"^(Args|Arguments|Parameters):\s*$")
_ARGUMENT = re.compile(r"^\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.*)$")


def summary(function: Callable[..., Any]) -> str:
    """The first paragraph as one line; empty without a docstring."""
    paragraph, _, _ = (inspect.getdoc(function) or "").partition("\n\n")
    if _SECTION.match(paragraph.partition("\n")[0]):
        return ""
    return " ".join(paragraph.split())


def argument_texts(function: Callable[..., Any]) -> dict[str, str]:
    """The description of each argument in the `Args:` section, continuation lines joined."""
    texts: dict[str, str] = {}
    name = ""
    indent = 0
    for line in _section_lines(inspect.getdoc(function) or ""):
        depth = len(line) - len(line.lstrip())
        match = _ARGUMENT.match(line.strip())
        if match and (not name or depth <= indent):
            name, indent = match.group(1), depth
            texts[name] = match.group(2)
        elif name:
            texts[name] = f"{texts[name]} {line.strip()}".strip()
    return texts


def _section_lines(doc: str) -> list[str]:
    lines = doc.splitlines()
    start = next((i for i, line in enumerate(lines) if _SECTION.match(line)), None)
    if start is None:
        return []
    body: list[str] = []
    for line in lines[start + 1 :]:
        if line.strip() and not line.startswith(" "):
            break
        if line.strip():
            body.append(line)
    return body
