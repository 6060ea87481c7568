"""Two versions of an app as real files, and processes that serve one after the other.

Each file has the agent `clerk` with a tool of its own, and the model they share: it calls `pay`
with five, and says what it reads as the result.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from tests.crash.evidence import query
from tests.crash.process import ROOT, Server, World, until
from thinkwell.messages.message import tool_parts

AGENT = "clerk/one"

SHARED = """
import asyncio
import json
import os
from pathlib import Path

from thinkwell import App, Think, ToolContext, tool
from thinkwell.models.base import Finish, TextDelta, TextEnd, TextStart, ToolCall, ToolInputStart
from thinkwell.messages.model_messages import ToolMessage
from thinkwell.tools import Done, NotDone

FOLDER = Path(os.environ["THINKWELL_TEST_FOLDER"])


async def effect(ctx, **given):
    with (FOLDER / "effects.jsonl").open("a") as out:
        out.write(json.dumps({"note": ctx.tool_name, **given}) + "\\n")
    while (FOLDER / "hold-tool").exists():
        await asyncio.sleep(0.001)


def look(earlier):
    with (FOLDER / "asked.jsonl").open("a") as out:
        out.write(json.dumps({"input": dict(earlier.input)}) + "\\n")
    answer = (FOLDER / "reconcile").read_text()
    return {"done": Done("paid, I looked"), "not_done": NotDone()}.get(answer)


class Reader:
    provider = "reader"
    model_id = "reader"

    async def stream(self, request, signal):
        with (FOLDER / "requests.jsonl").open("a") as out:
            offered = {spec.name: spec.input_schema for spec in request.tools}
            out.write(json.dumps({"tools": offered}) + "\\n")
        results = [m for m in request.messages if isinstance(m, ToolMessage)]
        if not results:
            yield ToolInputStart("c1", "pay")
            yield ToolCall("c1", "pay", json.dumps({"amount": 5}))
            yield Finish(reason="tool-calls")
            return
        yield TextStart("t")
        yield TextDelta("t", f"I read: {results[-1].content[-1].value}")
        yield TextEnd("t")
        yield Finish(reason="stop")
"""

APP = """
from shared import *


class Clerk(Think):
    model = Reader()

    @tool({options})
    async def {name}(self, ctx: ToolContext, {parameters}) -> str:
        {docstring}
        await effect(ctx, amount={given})
        return "paid"


app = App(agents=[Clerk], version={version!r})
"""


def write_app(
    world: World,
    version: str,
    *,
    options: str = "",
    name: str = "pay",
    parameters: str = "amount: int",
    given: str = "amount",
    docstring: str = '"""Pay."""',
) -> Path:
    """One version of the app, in a folder of its own."""
    folder = world.folder / version
    folder.mkdir()
    (folder / "shared.py").write_text(SHARED)
    file = folder / "clerk_app.py"
    texts = {"options": options, "name": name, "parameters": parameters, "given": given}
    file.write_text(APP.format(**texts, docstring=docstring, version=version))
    return file


class Deployed(Server):
    """A process that serves one version."""

    def __init__(self, world: World, file: Path, crash_at: str = "") -> None:
        super().__init__(world, crash_at)
        self._file = file
        world.servers.append(self)

    async def spawn(self) -> asyncio.subprocess.Process:
        with (self._world.folder / "stderr.txt").open("ab") as errors:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "thinkwell.cli", "serve", str(self._file), "--port", "0"),
                *("--store", f"sqlite:///{self._world.store}"),
                env=environment(self._world, self._crash_at),
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
            )
        return self._process


def environment(world: World, crash_at: str = "") -> dict[str, str]:
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    changes = {"PYTHONPATH": paths, "THINKWELL_TEST_FOLDER": str(world.folder)}
    return {**os.environ, **changes, "THINKWELL_CRASH_AT": crash_at}


async def reply(world: World) -> tuple[dict[str, Any], str]:
    """The call and the text of the whole reply, once the agent is done."""
    open_turns = "SELECT 1 FROM turns WHERE status IN ('accepted', 'running')"
    await until(lambda: not query(world, open_turns), "every turn has ended")
    (row,) = query(
        world, "SELECT content FROM messages WHERE agent = ? AND role = 'assistant'", AGENT
    )
    message = json.loads(row["content"])
    (part,) = tool_parts(message)
    text = "".join(part["text"] for part in message["parts"] if part["type"] == "text")
    return part, text
