"""What a question asks the scripted model to say, written in the question itself.

    chaos 2a.k1.q3: say 12, call 2; say 4, call 1; say 9

Each part between semicolons is a step: so many numbered words, then so many tool calls. A model
that reads the conversation knows what is still to come, in whatever process it runs, and the
checker knows what the whole reply must be. Which tools are called and with what follows from the
seed and from the tools on offer (`model.py`). Pure.
"""

from __future__ import annotations

import random
import re

import msgspec

PIECE = 7
"""Characters in one delta: most words are cut, so a crash often leaves half of one."""
_QUESTION = re.compile(r"^chaos ([\w.-]+): (say \d+(?:, call \d+)?(?:; say \d+(?:, call \d+)?)*)$")
_STEP = re.compile(r"say (\d+)(?:, call (\d+))?")
MOST_WORDS = 24
MOST_STEPS = 3


class ScriptStep(msgspec.Struct, frozen=True):
    """One model call: its words and how many tools it asks for."""

    number: int
    text: str
    calls: int


class Script(msgspec.Struct, frozen=True):
    """The whole reply to one question."""

    label: str
    steps: tuple[ScriptStep, ...]

    @property
    def text(self) -> str:
        """Everything the model says, in order."""
        return "".join(step.text for step in self.steps)


def read_script(question: str) -> Script | None:
    """The script in a question; None if it is no question of a chaos run."""
    found = _QUESTION.match(question.strip())
    if found is None:
        return None
    label, steps = found.groups()
    return Script(label, tuple(_step(label, i, s) for i, s in enumerate(steps.split("; "))))


def _step(label: str, number: int, text: str) -> ScriptStep:
    found = _STEP.fullmatch(text)
    assert found is not None  # the question matched as a whole
    words, calls = int(found[1]), int(found[2] or 0)
    said = "".join(f"{label}.{number}.{word} " for word in range(words))
    return ScriptStep(number, said, calls)


def make_question(label: str, chance: random.Random) -> str:
    """A question of zero to three steps with tools, and some last words."""
    steps = [
        f"say {chance.randint(0, MOST_WORDS)}, call {chance.randint(1, 2)}"
        for _ in range(chance.randint(0, MOST_STEPS))
    ]
    return f"chaos {label}: {'; '.join([*steps, f'say {chance.randint(1, MOST_WORDS)}'])}"


def rehearsal(label: str) -> str:
    """A question that is asked before the first kill: it shows which tools the app has."""
    return f"chaos {label}: say 3, call {REHEARSED}; say 3"


REHEARSED = 8
"""Tool calls of a rehearsal."""


def pieces(text: str) -> list[str]:
    """A text as deltas."""
    return [text[i : i + PIECE] for i in range(0, len(text), PIECE)]
