"""What a question asks the model to say, written in the question itself.

A question is `label|step;step;…`, a step is `word,word,…`:

    think     a thought, in pieces
    say:N     N more numbered words, in pieces that cut through words
    hold:X    wait while the file X exists in the folder of the test
    once, idempotent, pure, growing, hasty, book    call that tool, after the words
    kill, kill_late    call a tool that kills the process, at once or after a preliminary result
    remember, load, unload    write to a context block, load a document, unload it again
    aside     a remark after the calls, which is nobody's loss if it is cut

So a model that reads the conversation knows what is still to come, in whatever process it runs,
and a test knows what the whole answer must be. Pure: no clock, no process.
"""

from __future__ import annotations

from dataclasses import dataclass

TOOLS = (
    *("once", "idempotent", "pure", "growing", "hasty", "book", "kill", "kill_late"),
    *("remember", "load", "unload"),
)
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
    aside: str

    def stretches(self, begin: int) -> list[tuple[int, list[str]]]:
        """(how far to talk without a break, what to wait for there), from `begin` to the end."""
        breaks = [(place, [name]) for place, name in self.holds if place > begin]
        return [*breaks, (len(self.text), [])]


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
    thought, text, aside, said = "", "", "", 0
    holds: list[tuple[int, str]] = []
    calls: list[PlannedCall] = []
    for word in words.split(","):
        kind, _, value = word.partition(":")
        if kind == "think":
            thought = f"What do I say to {name}? "
        elif kind == "aside":
            aside = f"(by the way, this is {name})"
        elif kind == "say":
            text += "".join(f"{name}.{said + n} " for n in range(int(value)))
            said += int(value)
        elif kind == "hold":
            holds.append((len(text), value))
        else:
            assert kind in TOOLS, f"a plan knows no {word!r}"
            calls.append(PlannedCall(kind, f"{name}.{len(calls)}"))
    return PlannedStep(thought, text, tuple(holds), tuple(calls), aside)


def without_aside(text: str) -> str:
    """What is said in a text beside a remark, whole or cut."""
    return text.partition("(")[0]


def pieces(text: str) -> list[str]:
    return [text[i : i + PIECE] for i in range(0, len(text), PIECE)]
