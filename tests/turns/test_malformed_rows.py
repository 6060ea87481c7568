"""A malformed stored part costs itself and nothing else, whoever reads it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from tests.turns.support import running
from thinkwell import Think
from thinkwell.host.client import AgentAddress
from thinkwell.messages.message import text_of
from thinkwell.store.sqlite import SqliteStore
from thinkwell.wire.http import HttpRequest

CALL = {"type": "tool-x", "toolCallId": "c", "state": "output-available", "input": {}, "output": 1}
PARTS: dict[str, Any] = {
    "null": None,
    "a number": 1,
    "a text": "x",
    "a list": [],
    "no type": {},
    "a type that is no text": {"type": 5},
    "a text that is a number": {"type": "text", "text": 5},
    "no text": {"type": "text"},
    "a thought that is null": {"type": "reasoning", "text": None},
    "a call without id": {**CALL, "toolCallId": None},
    "a call with a number for its state": {**CALL, "state": 5},
    "a call with a text for its input": {**CALL, "input": "zz"},
    "a call with a number for its approval": {**CALL, "approval": 4},
    "a call with an odd error": {**CALL, "state": "output-error", "errorText": 4},
    "a tool without a name": {**CALL, "type": "dynamic-tool"},
    "a file without a place": {"type": "file"},
    "a file of numbers": {"type": "file", "url": 5, "mediaType": 7},
    "a source of nothing": {"type": "source-url"},
    "odd metadata": {"type": "text", "text": "", "providerMetadata": 5},
}


class Plain(Think):
    pass


@pytest.fixture
def path(tmp_path):
    return tmp_path / "thinkwell.db"


async def prepared(path, role: str, change) -> None:
    """A conversation of one turn, with one row changed by another program."""
    async with running(Plain, "one", store=SqliteStore(path)) as stage:
        await stage.agent.run("hi")
    with closing(sqlite3.connect(path)) as connection, connection:
        select = "SELECT seq, content FROM messages WHERE role = ?"
        seq, content = connection.execute(select, (role,)).fetchone()
        changed = change(json.loads(content))
        connection.execute("UPDATE messages SET content = ? WHERE seq = ?", (changed, seq))
    connection.close()


def between(part: Any):
    """The part between two sound ones."""
    sound = [{"type": "text", "text": "before "}, part, {"type": "text", "text": "after"}]
    return lambda message: json.dumps({**message, "parts": sound})


@pytest.mark.parametrize("role", ["user", "assistant"])
@pytest.mark.parametrize("kind", PARTS)
async def test_every_reader_survives_with_the_rest_intact(path, kind, role):
    await prepared(path, role, between(PARTS[kind]))
    async with running(Plain, "two", store=SqliteStore(path)) as stage:
        index = 0 if role == "user" else 1
        assert text_of((await stage.messages())[index]) == "before after"
        client = await stage.connect()
        assert text_of(client.transcript()[index]) == "before after"
        activation = await stage.host.agent(AgentAddress("plain", "x"))
        answer = await activation.handle_request(HttpRequest(method="GET", path="get-messages"))
        assert (answer.status, "after" in str(answer.body)) == (200, True)
        await client.ask("and now?")
        end = await client.until_end()
        assert "error" not in end
        assert "before" in repr(stage.model.requests[0].messages)
        listed = await stage.host.client().conversations("plain", 10)
        assert [each.name for each in listed] == ["x"]


@pytest.mark.parametrize("content", ["{", "[]", "5", '{"id": "a"}', '{"id": "a", "parts": 5}'])
async def test_a_row_that_holds_no_message_is_left_out(path, content, caplog):
    await prepared(path, "assistant", lambda _: content)
    async with running(Plain, "two", store=SqliteStore(path)) as stage:
        result = await stage.agent.run("and now?")
        assert (result.status, result.text) == ("completed", "two")
        assert [text_of(m) for m in await stage.messages()] == ["hi", "and now?", "two"]
    assert "malformed" in caplog.text
