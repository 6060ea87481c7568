"""A feature of somebody else is one file and one line, and survives `kill -9` (DESIGN §3)."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import thinkwell
from tests.abuse.process import server_process
from tests.features import notebook
from tests.wire.client import Browser, Tab, browser

PUBLIC_MODULES = thinkwell._MODULES  # pyright: ignore[reportPrivateUsage]
AGENT = "/agents/keeper/ann"


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[Browser]:
    """The app in a process of its own; leaving kills it with SIGKILL."""
    async with (
        server_process(folder, "tests.features.agents:app") as server,
        browser(server.http) as made,
    ):
        yield made
        assert server.defects() == ""


async def hear(tab: Tab, kind: str, **fields: Any) -> None:
    """Wait for a frame that may have come already: jobs and hooks run beside the turn."""
    wanted = {"type": kind, **fields}
    while wanted not in tab.heard:
        await tab.hear()


async def note(made: Browser, number: int) -> dict[str, Any]:
    status, text = await made.get(f"{AGENT}/notes/{number}")
    assert status == 200, text
    return json.loads(text)


@pytest.mark.crash
async def test_all_that_a_feature_brings_works_and_outlives_a_kill(tmp_path: Path):
    (tmp_path / "closed").touch()
    async with serving(tmp_path) as made:
        tab = await made.tab(AGENT)
        await hear(tab, "notebook", notes=0)

        await tab.ask("remember milk")
        stream = await tab.stream()
        outputs = [c["output"] for c in stream.chunks if c["type"] == "tool-output-available"]
        assert outputs == ["That is note 1."]
        assert stream.text == "Your notebook holds 0 notes."  # the prompt is older than the note
        await hear(tab, "notebook:turn", status="completed", turns=1)
        await hear(tab, "notebook:filing", note="milk", attempt=1)

        (answer,) = await tab.call("listNotes", 5)
        assert answer["result"] == ["milk"]
        (refused,) = await tab.call("listNotes", "many")
        assert "argument 'last'" in refused["error"]
        assert await note(made, 0) == {"text": "milk", "filed": None}
        assert await made.get(f"{AGENT}/notes/7") == (404, '{"error":"There is no note 7."}')

    (tmp_path / "closed").unlink()
    async with serving(tmp_path) as made:
        tab = await made.tab(AGENT)
        await hear(tab, "notebook", notes=1)
        while (stored := await note(made, 0))["filed"] is None:
            pass  # the job goes on by itself
        assert stored["filed"] == {"attempt": 2}

        await tab.ask("what do you keep?", "q2")
        assert (await tab.stream("q2")).text == "Your notebook holds 1 notes."
        await hear(tab, "notebook:turn", status="completed", turns=2)


@pytest.mark.crash
async def test_a_job_that_a_route_has_enqueued_goes_on_after_a_kill(tmp_path: Path):
    (tmp_path / "closed").touch()
    async with serving(tmp_path) as made:
        tab = await made.tab(AGENT)
        async with made.session.post(f"{made.url}{AGENT}/notes", data=b"bread") as answer:
            assert answer.status == 201
        await hear(tab, "notebook:filing", note="bread", attempt=1)
    async with serving(tmp_path) as made:
        tab = await made.tab(AGENT)
        (tmp_path / "closed").unlink()
        await hear(tab, "notebook:filed", note="bread")


def test_it_is_written_with_public_names_alone():
    tree = ast.parse(Path(notebook.__file__).read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    taken = {
        (getattr(node, "module", None) or alias.name, alias.name)
        for node in imports
        for alias in node.names
    }
    others = {(m, n) for m, n in taken if m.partition(".")[0] not in sys.stdlib_module_names}
    modules = {"thinkwell", *(f"thinkwell.{name}" for name in PUBLIC_MODULES)}
    assert {module for module, _ in others} <= modules
    assert [n for m, n in others if n not in import_module(m).__all__] == []
