"""What `on_tool_result` and `on_tool_error` hide is nowhere: not in a frame of any tab, not in a
row of the file, not in the log, not on the bus, not in what the model reads (spec/02 §5.9, §13.3).

The model asks for one call; every tool gives the secret in another way. Each test looks for it in
all of these places, with a real server, real sockets and a real file.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.wire.client import Tab
from tests.wire.room import LOCATE, Room, part_of, room, with_settings
from thinkwell import Think, ToolContext, tool
from thinkwell.errors import ToolError
from thinkwell.testing import call

SECRET = "sk-live-4711"
HIDDEN = "[hidden]"


def hidden(value: Any) -> Any:
    return json.loads(json.dumps(value).replace(SECRET, HIDDEN))


class Vault(Think):
    time_limits = {"grace": 0.0}
    max_tool_output_chars = 1_000
    shown: list[Any]

    async def on_start(self) -> None:
        self.shown = []
        self.left, self.go_on = asyncio.Event(), asyncio.Event()

    @tool
    async def read(self) -> dict[str, str]:
        """Gives it."""
        return {"key": SECRET}

    @tool
    async def long(self) -> str:
        """Gives it wherever the limit of a result cuts."""
        return SECRET * 200

    @tool
    async def pieces(self) -> AsyncIterator[str]:
        """Gives it in pieces."""
        yield f"first {SECRET}"
        yield f"then {SECRET}"

    @tool
    async def reports(self, ctx: ToolContext) -> str:
        """Reports it on the loop."""
        await ctx.report({"now": SECRET})
        return SECRET

    @tool
    def thread(self, ctx: ToolContext) -> str:
        """Reports it in a thread."""
        ctx.report({"now": SECRET})
        return SECRET

    @tool
    async def fails(self) -> str:
        """Raises it."""
        raise OSError(f"refused {SECRET}")

    @tool
    async def says_no(self) -> str:
        """Says it on purpose."""
        raise ToolError(f"not with {SECRET}")

    @tool
    async def wrong(self) -> Any:
        """Gives what JSON cannot hold."""
        return {SECRET: object()}

    @tool(needs_approval=True)
    async def allowed(self) -> str:
        """Gives it once a person has allowed it."""
        return SECRET

    def on_tool_result(self, ctx: Any) -> Any:
        self.shown.append((ctx.preliminary, ctx.result))
        return {"result": hidden(ctx.result)}

    def on_tool_error(self, ctx: Any) -> Any:
        return {"error": str(ctx.error).replace(SECRET, HIDDEN)}


class Watch:
    """Everything that anybody could see."""

    def __init__(self, r: Room, store: Path, log: pytest.LogCaptureFixture) -> None:
        self.room = r
        self.store = store
        self.log = log
        self.events: list[Any] = []
        self.tabs: list[Tab] = []
        r.app.events.subscribe(self.events.append)

    async def tab(self) -> Tab:
        tab = await self.room.tab()
        self.tabs.append(tab)
        return tab

    def places(self) -> dict[str, str]:
        handler = logging.Formatter()
        return {
            "frames": json.dumps([tab.heard for tab in self.tabs]),
            "file": "\n".join(rows(self.store)),
            "log": "\n".join(handler.format(record) for record in self.log.records)
            + "".join(repr(vars(record)) for record in self.log.records),
            "bus": repr(self.events),
            "model": repr([request.messages for request in self.room.model.requests]),
        }

    def leaks(self) -> list[str]:
        return [place for place, text in self.places().items() if SECRET[:5] in text]


def rows(path: Path) -> list[str]:
    """Every value of every row, packed ones unpacked."""
    with sqlite3.connect(path) as db:
        tables = [
            name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type='table'")
        ]
        found = [
            value
            for table in tables
            for row in db.execute(f"SELECT * FROM {table}")
            for value in row
        ]
    return [plain(value) for value in found]


def plain(value: Any) -> str:
    if isinstance(value, bytes):
        for packed in (value, value[1:]):
            try:
                return zlib.decompress(packed, -15).decode()
            except (zlib.error, UnicodeDecodeError):
                continue
        return value.decode(errors="replace")
    return str(value)


@asynccontextmanager
async def watched(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, *steps: Any, cls: type[Any] = Vault
) -> AsyncIterator[Watch]:
    caplog.set_level(logging.DEBUG, "thinkwell")
    store = tmp_path / "leaks.db"
    async with room(*steps, cls=cls, store=store) as r:
        yield Watch(r, store, caplog)


@pytest.mark.parametrize("name", ["read", "long", "pieces", "reports", "thread"])
async def test_5_9_a_result_that_a_hook_changes_is_nowhere_as_it_was(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    async with watched(tmp_path, caplog, [call(name)], "done") as watch:
        tab = await watch.tab()
        await tab.ask("go")
        await tab.stream()
        output = part_of((await watch.room.messages())[-1])["output"]
        assert HIDDEN[:4] in json.dumps(output)
        assert watch.leaks() == []
    assert watch.leaks() == []


@pytest.mark.parametrize("name", ["pieces", "reports", "thread"])
async def test_the_hook_sees_every_value_a_tool_shows_before_its_end_and_is_told_that_it_is_one(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    async with watched(tmp_path, caplog, [call(name)], "done") as watch:
        tab = await watch.tab()
        await tab.ask("go")
        stream = await tab.stream()
        early = [c["output"] for c in stream.chunks if c.get("preliminary")]
        assert early
        assert HIDDEN in json.dumps(early)
        host: Any = watch.room.app._host  # pyright: ignore[reportPrivateUsage]
        agent = (await host.agent(address(watch))).agent
        flags = [flag for flag, _ in agent.shown]
        assert flags == [True] * len(early) + [False]


def address(watch: Watch) -> Any:
    from thinkwell.host.host import AgentAddress

    return AgentAddress(watch.room.app.agents[0].agent_class, "x")


@pytest.mark.parametrize("exposed", [False, True])
@pytest.mark.parametrize("name", ["fails", "says_no", "wrong"])
async def test_5_9_an_error_that_a_hook_changes_is_nowhere_as_it_was(
    name: str,
    exposed: bool,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
):
    cls = with_settings(Vault, expose_errors=exposed)
    async with watched(tmp_path, caplog, [call(name)], "done", cls=cls) as watch:
        tab = await watch.tab()
        await tab.ask("go")
        await tab.stream()
        assert HIDDEN in part_of((await watch.room.messages())[-1])["errorText"]
    assert watch.leaks() == []


async def test_a_tool_that_raises_is_still_logged_when_a_hook_hides_what_it_says(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    async with watched(tmp_path, caplog, [call("fails")], "done") as watch:
        tab = await watch.tab()
        await tab.ask("go")
        await tab.stream()
    (record,) = [r for r in caplog.records if r.levelno >= logging.ERROR]
    assert record.name == "thinkwell.tools"
    assert "in fails" in caplog.text
    assert f"OSError, told as: refused {HIDDEN}" in caplog.text


async def test_an_approved_call_gives_its_result_to_the_hook_first(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    async with watched(tmp_path, caplog, [call("allowed")], "done") as watch:
        tab, other = await watch.tab(), await watch.tab()
        await tab.ask("go")
        await tab.stream()
        await tab.decide(approved=True)
        await other.until("use_chat_response", continuation=True, done=True)
        assert part_of((await watch.room.messages())[-1])["output"] == HIDDEN
    assert watch.leaks() == []


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ({"output": {"key": SECRET}}, {"output": {"key": HIDDEN}}),
        ({"state": "output-error", "errorText": f"no {SECRET}"}, {"errorText": f"no {HIDDEN}"}),
    ],
    ids=["result", "error"],
)
async def test_what_a_client_answers_goes_through_the_hook_before_it_is_stored_or_shown(
    answer: dict[str, Any],
    found: dict[str, Any],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
):
    async with watched(tmp_path, caplog, [call("locate")], "done") as watch:
        tab, other = await watch.tab(), await watch.tab()
        await tab.ask("go", clientTools=[LOCATE])
        await tab.stream()
        await tab.result(**{"output": None, **answer})
        await other.until("use_chat_response", continuation=True, done=True)
        part = part_of((await watch.room.messages())[-1])
        assert {key: part.get(key) for key in found} == found
    assert watch.leaks() == []


async def test_what_a_client_answers_over_http_goes_through_the_hook_too(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    async with watched(tmp_path, caplog, [call("locate")], "done") as watch:
        tab = await watch.tab()
        await tab.ask("go", clientTools=[LOCATE])
        await tab.stream()
        copy = (await watch.room.messages())[-1]
        part_of(copy).update(state="output-available", output=SECRET)
        body = {"id": "x", "messages": [copy], "trigger": "submit-message"}
        url = f"{watch.room.browser.url}{watch.room.path}/chat"
        async with watch.room.browser.session.post(url, json=body) as response:
            assert response.status == 200
            assert SECRET not in await response.text()
        assert part_of((await watch.room.messages())[-1])["output"] == HIDDEN
    assert watch.leaks() == []


def returning(value: Any) -> Any:
    return lambda self, ctx: value(ctx) if callable(value) else value


def raising(_self: Any, ctx: Any) -> Any:
    raise ValueError(f"cannot hide {ctx.result}")


WRONG: dict[str, Any] = {
    "a text": returning("[redacted]"),
    "another key": returning({"output": "x"}),
    "another key with the raw value": returning(lambda ctx: {"output": ctx.result}),
    "the raw value": returning(lambda ctx: ctx.result),
    "two keys": returning(lambda ctx: {"result": "x", "raw": ctx.result}),
    "no key": returning({}),
    "true": returning(True),
    "what JSON cannot hold": returning(lambda ctx: {"result": {SECRET: {1, 2}}}),
    "an error that quotes it": raising,
}


@pytest.mark.parametrize("strict", [False, True], ids=["", "strict"])
@pytest.mark.parametrize("exposed", [False, True], ids=["", "exposed"])
@pytest.mark.parametrize("how", WRONG)
async def test_13_3_a_wrong_return_is_an_error_and_the_raw_value_is_passed_to_nobody(
    how: str,
    exposed: bool,
    strict: bool,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
):
    settings = {"on_tool_result": WRONG[how], "expose_errors": exposed, "strict_hooks": strict}
    cls = with_settings(Vault, **settings)
    async with watched(tmp_path, caplog, [call("pieces")], "done", cls=cls) as watch:
        tab = await watch.tab()
        await tab.ask("go")
        await tab.stream()
        part = part_of((await watch.room.messages())[-1])
        assert part["state"] == "output-error"
        assert "output" not in part
    assert watch.leaks() == []
    assert [r for r in caplog.records if r.levelno >= logging.ERROR]


@pytest.mark.parametrize("how", ["a text", "another key", "two keys", "no key", "true"])
async def test_the_error_names_the_hook_and_what_to_return(
    how: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    cls = with_settings(Vault, on_tool_result=WRONG[how], expose_errors=True)
    async with watched(tmp_path, caplog, [call("read")], "done", cls=cls) as watch:
        tab = await watch.tab()
        await tab.ask("go")
        await tab.stream()
        text = part_of((await watch.room.messages())[-1])["errorText"]
    wanted = 'return {"result": ...} to change it, or None to leave it.'
    assert text.startswith("Vault.on_tool_result returned a ")
    assert text.endswith(wanted)
    assert wanted in caplog.text


async def test_a_client_result_that_the_hook_fails_on_is_withheld(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    cls = with_settings(Vault, on_tool_result=raising)
    async with watched(tmp_path, caplog, [call("locate")], "done", cls=cls) as watch:
        tab, other = await watch.tab(), await watch.tab()
        await tab.ask("go", clientTools=[LOCATE])
        await tab.stream()
        await tab.result(output=SECRET)
        await other.until("use_chat_response", continuation=True, done=True)
        assert "withheld" in part_of((await watch.room.messages())[-1])["errorText"]
    assert watch.leaks() == []
