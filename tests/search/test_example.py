"""The example does what it says."""

from __future__ import annotations

import importlib.util
import re
from typing import Any

from tests.architecture.support import ROOT
from thinkwell import App


def diary() -> Any:
    spec = importlib.util.spec_from_file_location("diary", ROOT / "examples" / "diary.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Diary


async def test_what_was_told_is_found_with_its_day():
    cls = diary()
    async with App(agents=[cls], store="sqlite://:memory:") as app:
        agent = app.agent(cls)
        await agent.run("I met Ada at the harbour, we talked about engines")
        await agent.run("It rained all day")
        said = await agent.last_time("Ada harbour")
        assert re.fullmatch(r"\d{4}-\d\d-\d\d: I met Ada at the harbour, .*", said)
        assert await agent.last_time("Grace") == "never"
        told = "I met Ada at the harbour, we talked about engines"
        assert told in await agent.this_week("engine")
