"""`thinkwell chat` in a real terminal: what a person sees and presses."""

from __future__ import annotations

import asyncio
import builtins
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.cli.commands import DEMO, terminal
from thinkwell.cli.keyboard import TerminalKeyboard

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def chat(tmp_path: Path) -> tuple[str, ...]:
    return ("chat", DEMO, "--store", f"sqlite:///{tmp_path}/x.db")


async def test_markdown_thoughts_and_tools_are_shown(chat: tuple[str, ...]):
    async with terminal(*chat) as person:
        await person.prompt()
        person.type("Compare the weather in Paris and Tokyo\n")
        await person.shows("This is about the weather")
        await person.shows_all(
            r'✓ get_weather\(city: "Paris"\) → .*?\d\.\d s', r'✓ get_weather\(city: "Tokyo"\)'
        )
        await person.shows(r" Paris +rainy +8 ")  # a drawn table, not its source
        await person.prompt()


@pytest.mark.parametrize(
    ("key", "said"), [("y", "All reports are gone"), ("n", "You did not allow delete_report")]
)
async def test_a_call_is_allowed_or_refused_by_one_key(chat: tuple[str, ...], key: str, said: str):
    async with terminal(*chat) as person:
        await person.prompt()
        person.type("Delete the report\n")
        await person.shows(r"Allow delete_report\(\)\? \[y/n\]")
        person.type(key)
        await person.shows(said)
        await person.prompt()


async def test_the_question_is_asked_again_after_a_restart(chat: tuple[str, ...]):
    """spec/01 §18.58: an approval survives; so it does over the end of the process."""
    async with terminal(*chat) as person:
        await person.prompt()
        person.type("Delete the report\n")
        await person.shows(r"Allow delete_report")
    async with terminal(*chat) as person:
        await person.shows(r"Allow delete_report\(\)\? \[y/n\]")
        person.type("y")
        await person.shows("All reports are gone")


async def test_ctrl_c_stops_then_leaves(chat: tuple[str, ...]):
    async with terminal(*chat) as person:
        await person.prompt()
        person.type("Count to 900\n")
        await person.shows("1, 2, 3")
        person.type("\x03")
        await person.shows(r"Stopped\.")
        await person.prompt()
        # Python misses a signal that comes right before it waits for a key: press until it is seen.
        while person.process.returncode is None:
            person.type("\x03")
            await asyncio.wait([asyncio.create_task(person.process.wait())], timeout=1)
        assert person.process.returncode == 0


class TestALine:
    def typed(self, monkeypatch: pytest.MonkeyPatch, *lines: str | type[BaseException]) -> None:
        said = iter(lines)

        def read(prompt: str) -> str:
            line = next(said)
            if isinstance(line, str):
                return line
            raise line

        monkeypatch.setattr(builtins, "input", read)

    def test_goes_on_after_a_backslash(self, monkeypatch: pytest.MonkeyPatch):
        self.typed(monkeypatch, "one\\", "two ")
        assert TerminalKeyboard().line() == "one\ntwo"

    @pytest.mark.parametrize(("buffer", "leaves"), [("half a line", False), ("", True)])
    def test_is_given_up_by_ctrl_c_and_an_empty_one_leaves(
        self, monkeypatch: pytest.MonkeyPatch, buffer: str, leaves: bool
    ):
        self.typed(monkeypatch, KeyboardInterrupt)
        keyboard = TerminalKeyboard(typed=lambda: buffer)
        with pytest.raises(KeyboardInterrupt) if leaves else nullcontext():
            assert keyboard.line() == ""


async def test_slash_commands_are_for_the_program(chat: tuple[str, ...]):
    async with terminal(*chat) as person:
        await person.prompt()
        person.type("/help\n")
        await person.shows("/branches +the versions")
        await person.prompt()
        person.type("/etc/hosts is a file\n")
        await person.shows('You said: "/etc/hosts is a file"')
        await person.prompt()
        person.type("two \\\nlines\n")
        await person.shows('You said: "two')
        await person.prompt()
        person.type("/quit\n")
        async with asyncio.timeout(60):
            assert await person.process.wait() == 0


async def test_what_was_said_last_is_shown_on_return(chat: tuple[str, ...]):
    async with terminal(*chat) as person:
        await person.prompt()
        for word in ("one", "two"):
            person.type(f"{word}\n")
            await person.shows(f'You said: "{word}"')
            await person.prompt()
    async with terminal(*chat) as person:
        await person.shows("2 earlier messages; /history shows them")
        await person.shows('› two\n(.|\n)*You said: "two"')
