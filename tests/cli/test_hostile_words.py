"""What clients and models say is shown to operators as it is, and moves no cursor."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cli.commands import COMMAND, environment
from thinkwell import App, Think, tool
from thinkwell.cli.plain_text import PlainText, visible
from thinkwell.testing import ScriptedModel, call

CLEARS, COPIES, TURNS = "\x1b[2J", "\x1b]52;c;aGk=\x07", "\u202e"
HOSTILE = f"[/x][bold]{CLEARS}{COPIES}{TURNS}\x9b31m"


class Payer(Think, name="payer"):
    def get_model(self) -> ScriptedModel:
        return ScriptedModel([[call("pay", {"to": HOSTILE}, id="c1")]])

    @tool(needs_approval=True)
    async def pay(self, to: str) -> str:
        """Pay somebody."""
        return to


@pytest.mark.parametrize(
    "asked", [("turns", "show"), ("approvals", "list"), ("agents", "show", "payer/x")]
)
async def test_words_are_shown_and_not_carried_out(tmp_path: Path, asked: tuple[str, ...]):
    store = f"sqlite:///{tmp_path / 'x.db'}"
    async with App(agents=[Payer], store=store) as app:
        payer = app.agent(Payer, "x")
        await payer.set_state({"note": HOSTILE})
        asking = await payer.run(HOSTILE)
    which = [asking.request_id] if asked == ("turns", "show") else []
    done = subprocess.run(
        [*COMMAND, *asked, *which, "--store", store],
        env=environment(COLUMNS="200"),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "[/x][bold]" in done.stdout
    assert not {"\x1b", "\x07", TURNS, "\x9b"} & set(done.stdout)


def test_all_but_lines_and_tabs_is_written_out():
    assert visible("a\tb\nc\x1bd\u2066e\x7f") == "a\tb\nc\\u001bd\\u2066e\\u007f"
    assert visible("שלום, ‘naïve’ 🙂") == "שלום, ‘naïve’ 🙂"
    assert PlainText.assemble("a\x1b", ("b\x9b", "bold")).plain == "a\\u001bb\\u009b"
