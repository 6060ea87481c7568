"""The app that the notebook is tried out in. Its model takes notes and reads out its prompt."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.features.notebook import Notebook
from thinkwell import App, Think
from thinkwell.models import ModelRequest
from thinkwell.testing import ScriptedModel, call

CLOSED = Path("closed")
"""While there is such a file, notes are not filed."""


def answer(request: ModelRequest) -> str | Sequence[Any]:
    """Note what the user wants noted; else say what the prompt says about the notebook."""
    last: Any = request.messages[-1]
    said = last.content[0].text if last.role == "user" else ""
    if said.startswith("remember "):
        return [call("take_note", {"text": said.removeprefix("remember ")})]
    lines = (request.system or "").splitlines()
    return next(line for line in lines if "notebook" in line)


class Keeper(Think):
    model = ScriptedModel([answer] * 20)
    features = [Notebook(closed=CLOSED.exists)]


app = App(agents=[Keeper])
