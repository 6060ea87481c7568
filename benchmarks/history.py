"""Stored conversations to measure on: messages of 1 to 2 KB, the answers with a tool call.

What people ask for is short and what they get is long: a question of 300 bytes in a real
conversation is followed by an answer with a tool's input and output in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

WORDS = "What does the harbour look like when the fog comes in at four in the morning? "
QUESTION, ANSWER, OUTPUT = WORDS * 13, WORDS * 8, WORDS * 6


def message(number: int) -> Any:
    """One message; questions and answers alternate. About 1.1 and 1.4 KB."""
    name = f"message-{number:06}"
    if number % 2 == 0:
        return {"id": name, "role": "user", "parts": [_text(f"{number} {QUESTION}")]}
    call = {
        "type": "tool-look_up",
        "toolCallId": f"call-{number:06}",
        "state": "output-available",
        "input": {"what": "harbour", "hour": 4},
        "output": {"found": OUTPUT, "pages": [1, 2, 3]},
    }
    parts = [{"type": "step-start"}, call, {"type": "step-start"}, _text(f"{number} {ANSWER}")]
    return {"id": name, "role": "assistant", "parts": parts}


def history(count: int, start: int = 0) -> Sequence[Any]:
    """So many of them."""
    return [message(number) for number in range(start, start + count)]


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text, "state": "done"}
