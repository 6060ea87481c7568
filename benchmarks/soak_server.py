"""The server of the soak: an agent that answers everything, asleep soon after nobody needs it."""

from __future__ import annotations

import sys

from benchmarks.soak import IDLE_TIMEOUT
from thinkwell import App, Think, tool
from thinkwell.cli.main import main
from thinkwell.host.host import Host
from thinkwell.models.base import ModelRequest
from thinkwell.testing import ScriptedModel, call, text


class Soaked(Think):
    """Looks something up every now and then."""

    def get_model(self) -> ScriptedModel:
        """Two steps: perhaps a tool, then words."""
        return ScriptedModel([_answer, _answer])

    @tool
    async def look(self, what: str) -> str:
        """Looks something up."""
        return f"all about {what} " * 10


def _answer(request: ModelRequest):
    asked = repr(request.messages[-1])
    if "-0?" in asked:
        return [text("I look. "), call("look", {"what": "it"})]
    return [text(*["some words of an answer "] * 40)]


app = App(agents=[Soaked])

if __name__ == "__main__":
    defaults = Host.__init__.__kwdefaults__
    if defaults is None or "idle_timeout" not in defaults:
        raise RuntimeError("the host has no idle timeout any more")
    defaults["idle_timeout"] = IDLE_TIMEOUT
    main(["serve", "benchmarks.soak_server:app", "--port", "0", "--store", sys.argv[1]])
