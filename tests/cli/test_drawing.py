"""What is left on a terminal when an answer has been drawn piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import StringIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from tests.cli.emulator import Emulator
from thinkwell.cli.cards import Card
from thinkwell.cli.region import Region
from thinkwell.cli.reply_items import GrowingText, Painter, split_blocks
from thinkwell.cli.terminal import TerminalScreen
from thinkwell.models.demo_texts import FORMATS, STORY


def console(height: int = 10) -> Console:
    return Console(file=StringIO(), width=60, height=height, force_terminal=True, color_system=None)


def draw(text: str, cuts: Sequence[int], height: int = 10) -> Emulator:
    """A markdown text drawn in pieces."""
    terminal = Emulator(height)
    region = Region(terminal.write, lambda: height)
    item = GrowingText(Painter(console()).markdown, blocks=True)
    region.add(item)
    for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        item.add(text[start:end])
        region.draw("waiting")
    item.end()
    region.draw()
    region.close()
    return terminal


@given(st.lists(st.integers(0, len(FORMATS)), max_size=40).map(sorted))
def test_however_it_comes_the_same_is_left(cuts: list[int]):
    assert draw(FORMATS, cuts).shown == draw(FORMATS, []).shown


@pytest.mark.parametrize("height", [4, 6, 24])
def test_a_long_answer_scrolls_and_no_line_is_lost_or_doubled(height: int):
    cuts = list(range(0, len(STORY), 7))
    assert draw(STORY, cuts, height).shown == draw(STORY, [], height=500).shown


def test_a_block_taller_than_the_terminal_is_given_out_line_by_line():
    code = "```\n" + "".join(f"line {n}\n" for n in range(50)) + "```\n"
    terminal = draw(code, list(range(0, len(code), 5)), height=6)
    assert [line.strip() for line in terminal.shown] == [f"line {n}" for n in range(50)]


def test_what_has_scrolled_away_is_never_drawn_again():
    """A growing table changes all its lines; `Emulator` complains about those out of reach."""
    rows = [f"| row{n} | {'x' * n} |" for n in range(30)]
    table = "\n".join(["| a | b |", "|---|---|", *rows])
    cuts = [index for index, letter in enumerate(table) if letter == "\n"][2:]
    shown = " ".join(draw(table, cuts, height=8).shown)
    assert [shown.count(f"row{n} ") for n in range(30)] == [1] * 30


def test_finished_blocks_are_not_rendered_again():
    rendered: list[str] = []
    painter = Painter(console())

    def render(text: str) -> list[str]:
        rendered.append(text)
        return painter.markdown(text)

    item = GrowingText(render, blocks=True)
    for piece in ("first\n\n", "second\n\n", "third"):
        item.add(piece)
        item.settle(10)
        item.growing()
    assert rendered[-1] == "third"


def test_nothing_is_written_when_nothing_has_changed():
    terminal = Emulator()
    region = Region(terminal.write, lambda: 10)
    item = GrowingText(Painter(console()).markdown, blocks=True)
    region.add(item)
    item.add("words")
    region.draw()
    before = terminal.writes
    region.draw()
    assert terminal.writes == before


@pytest.mark.parametrize(
    ("text", "final", "growing"),
    [
        ("", "", ""),
        ("one line", "", "one line"),
        ("one\n\ntwo", "one\n\n", "two"),
        ("- a\n- b\n", "", "- a\n- b\n"),
        ("# A\n\n```\ncode\n\nmore", "# A\n\n", "```\ncode\n\nmore"),
    ],
)
def test_all_blocks_but_the_last_are_final(text: str, final: str, growing: str):
    assert split_blocks(text) == (final, growing)


@pytest.fixture
def terminal():
    return Emulator(height=30)


@pytest.fixture
def screen(terminal: Emulator):
    return TerminalScreen(console(height=30), terminal.write)


def call(kind: str, call_id: str = "c1", **fields: Any) -> dict[str, Any]:
    return {"type": kind, "toolCallId": call_id, "toolName": "look", **fields}


Show = Callable[..., None]


@pytest.fixture
def show(screen: TerminalScreen) -> Show:
    def show(*chunks: dict[str, Any]) -> None:
        for chunk in chunks:
            screen.chunk(chunk, live=True)
            screen.refresh()

    screen.begin()
    return show


class TestAnswers:
    def test_a_call_is_one_line_from_start_to_end(
        self, screen: TerminalScreen, terminal: Emulator, show: Show
    ):
        show(call("tool-input-start"))
        assert terminal.shown[0].endswith(" look()")
        show(call("tool-input-available", input={"at": "x"}))
        assert terminal.shown[0].endswith(' look(at: "x")')
        show(call("tool-output-available", output={"done": 1}, preliminary=True))
        assert terminal.shown[0].endswith(' look(at: "x") → {"done":1}')
        show(call("tool-output-available", output={"done": 2}))
        screen.end("completed", None)
        [line] = terminal.shown
        assert line.startswith('✓ look(at: "x") → {"done":2}  0.')

    def test_calls_side_by_side_end_in_their_order(
        self, screen: TerminalScreen, terminal: Emulator, show: Show
    ):
        show(*(call("tool-input-available", f"c{n}", input={"n": n}) for n in (1, 2)))
        show(call("tool-output-error", "c2", errorText="no luck"))
        show(call("tool-output-available", "c1", output="here"))
        screen.end("completed", None)
        assert [line[:11] for line in terminal.shown] == ["✓ look(n: 1", "✗ look(n: 2"]
        assert "→ no luck" in terminal.shown[1]

    def test_a_long_call_is_cut_to_one_line(
        self, screen: TerminalScreen, terminal: Emulator, show: Show
    ):
        show(call("tool-input-available", input={"text": "words " * 100}))
        screen.end("completed", None)
        [line] = terminal.shown
        assert len(line) < 60
        assert line.endswith("…")

    def test_a_refused_call_and_one_that_waits_say_so(
        self, screen: TerminalScreen, terminal: Emulator, show: Show
    ):
        show(call("tool-input-available", input={}), call("tool-approval-request", approvalId="a"))
        show(call("tool-input-available", "c2", input={}), call("tool-output-denied", "c2"))
        screen.end("completed", None)
        assert terminal.shown == [
            "? look() → needs your permission",
            "⊘ look() → not allowed  0.0 s",
        ]

    def test_a_call_that_was_answered_elsewhere_is_shown_again(
        self, screen: TerminalScreen, terminal: Emulator, show: Show
    ):
        """spec/01 §11.12: the outcome of an approved call comes with the changed message."""
        show(call("tool-input-available", input={}), call("tool-approval-request", approvalId="a"))
        screen.end("completed", None)
        screen.begin()
        for state in ("approval-responded", "output-available"):
            part = {"type": "tool-look", "toolCallId": "c1", "state": state, "input": {}}
            part |= {"output": "found"} if state == "output-available" else {}
            screen.update({"id": "a1", "role": "assistant", "parts": [part]})
            screen.refresh()
        screen.end("completed", None)
        assert terminal.shown[0] == "? look() → needs your permission"
        assert terminal.shown[1].startswith("✓ look() → found")

    def test_while_nothing_comes_something_moves(
        self, screen: TerminalScreen, terminal: Emulator, show: Show
    ):
        show({"type": "start"})
        first = terminal.shown
        screen.tick()
        assert first[0].endswith(" Thinking")
        assert terminal.shown[0].endswith(" Thinking")
        assert terminal.shown != first
        screen.status("Connection lost, trying again")
        assert terminal.shown[0].endswith("trying again")
        show({"type": "text-start", "id": "t"}, {"type": "text-delta", "id": "t", "delta": "words"})
        screen.status("")
        screen.end("completed", None)
        assert terminal.shown == ["words"]

    @pytest.mark.parametrize(
        ("outcome", "error", "last"),
        [("completed", None, "half"), ("aborted", None, "Stopped."), ("error", "oh", "✗ oh")],
    )
    def test_how_it_ended_is_said(
        self,
        screen: TerminalScreen,
        terminal: Emulator,
        show: Show,
        outcome: str,
        error: str | None,
        last: str,
    ):
        show({"type": "text-start", "id": "t"}, {"type": "text-delta", "id": "t", "delta": "half"})
        screen.end(outcome, error)
        assert terminal.shown[0] == "half"
        assert terminal.shown[-1] == last

    def test_a_stored_message_is_shown_whole(self, screen: TerminalScreen, terminal: Emulator):
        parts = [
            {"type": "reasoning", "text": "hm"},
            {"type": "tool-look", "toolCallId": "c", "state": "output-available", "output": 1},
            {"type": "text", "text": "**done**"},
        ]
        question = [{"type": "text", "text": "what?"}]
        screen.message({"id": "u1", "role": "user", "parts": question})
        screen.message({"id": "a1", "role": "assistant", "parts": parts})
        assert terminal.shown == ["› what?", "✓ look() → 1", "done"]


def test_a_card_that_is_cut_still_says_how_long_it_took():
    card = Card(id="c", tool="find", state="output-available", output="x" * 200, seconds=0.6)
    line = Painter(Console(width=40, file=StringIO(), color_system=None)).card(card, 0)
    assert line.endswith("…  0.6 s")
    assert len(line) < 40
