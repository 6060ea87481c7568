"""What a question asks the model to say, written in the question itself.

A question is `label|step;step;…`, a step is `word,word,…`:

    think     a thought, in pieces
    say:N     N more numbered words, in pieces that cut through words
    hold:X    wait while the file X exists in the folder of the test
    once, idempotent, pure, growing    call that tool; calls end a step

So a model that reads the conversation knows what is still to come, in whatever process it runs,
and a test knows what the whole answer must be. Pure: no clock, no process.
"""

from __future__ import annotations

from dataclasses import dataclass

TOOLS = ("once", "idempotent", "pure", "growing")
PIECE = 7


@dataclass(frozen=True)
class PlannedCall:
    """One tool call: the tool and its argument, which names the call."""

    tool: str
    note: str


@dataclass(frozen=True)
class PlannedStep:
    """One model call and the tools it asks for."""

    thought: str
    text: str
    holds: tuple[tuple[int, str], ...]
    """(how much of the text comes before, the file to wait for)."""
    calls: tuple[PlannedCall, ...]


@dataclass(frozen=True)
class Plan:
    """The whole answer."""

    label: str
    steps: tuple[PlannedStep, ...]

    @property
    def text(self) -> str:
        return "".join(step.text for step in self.steps)

    @property
    def calls(self) -> list[PlannedCall]:
        return [call for step in self.steps for call in step.calls]


def is_question(text: str) -> bool:
    return "|" in text


def read_plan(question: str) -> Plan:
    label, _, steps = question.partition("|")
    return Plan(label, tuple(_step(f"{label}.{i}", s) for i, s in enumerate(steps.split(";"))))


def _step(name: str, words: str) -> PlannedStep:
    thought, text, said = "", "", 0
    holds: list[tuple[int, str]] = []
    calls: list[PlannedCall] = []
    for word in words.split(","):
        kind, _, value = word.partition(":")
        if kind == "think":
            thought = f"What do I say to {name}? "
        elif kind == "say":
            text += "".join(f"{name}.{said + n} " for n in range(int(value)))
            said += int(value)
        elif kind == "hold":
            holds.append((len(text), value))
        else:
            assert kind in TOOLS, f"a plan knows no {word!r}"
            calls.append(PlannedCall(kind, f"{name}.{len(calls)}"))
    return PlannedStep(thought, text, tuple(holds), tuple(calls))


def pieces(text: str) -> list[str]:
    return [text[i : i + PIECE] for i in range(0, len(text), PIECE)]
