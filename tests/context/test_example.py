"""The example does what it says."""

from __future__ import annotations

import importlib.util
from typing import Any

from tests.architecture.support import ROOT
from tests.turns.support import running
from thinkwell.testing import ScriptedModel, call


def butler() -> Any:
    spec = importlib.util.spec_from_file_location("butler", ROOT / "examples" / "butler.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Butler


def note(label: str, text: str, **more: Any) -> Any:
    return [call("set_context", {"label": label, "content": text, "action": "append", **more})]


async def test_the_butler_remembers_and_forgets_on_request():
    model = ScriptedModel(
        [
            note("guest", "Prefers tea."),
            note("guest", "Dislikes coffee."),
            note("errands", "Fetched the coat.", metadata={"title": "coat"}),
            [call("search_context", {"label": "errands", "query": "where is my coat"})],
            "Certainly.",
        ]
    )
    cls: Any = type("Butler", (butler(),), {"model": model}, name="butler")
    async with running(cls) as stage:
        agent: Any = stage.agent
        await agent.run("Tea, never coffee. And my coat?")
        assert await agent.what_you_know() == "Prefers tea.\nDislikes coffee."
        await agent.forget_last()
        assert await agent.what_you_know() == "Prefers tea."
        assert [v.source for v in await agent.who_wrote_it()] == ["code", "model", "model"]
        first = model.requests[0]
        assert "Breakfast is served" in first.system
        assert "UTC" in str(first.messages[-1])
        assert "UTC" not in first.system
