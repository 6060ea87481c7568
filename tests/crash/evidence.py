"""What the store says, read beside the server, and the promises of spec/04 §0 held against it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import Any

from tests.crash.plan import read_plan, without_aside
from tests.crash.process import World, until
from thinkwell.journal.reading import packed_journal
from thinkwell.messages.chunks import check_chunk
from thinkwell.messages.fold import Fold
from thinkwell.messages.message import UIMessage, tool_parts


def query(world: World, sql: str, *values: Any) -> list[dict[str, Any]]:
    """Rows of the store, as of the last commit."""
    if not world.store.exists():
        return []
    with closing(sqlite3.connect(f"file:{world.store}?mode=ro", uri=True)) as link:
        link.row_factory = sqlite3.Row
        return [dict(row) for row in link.execute(sql, values)]


def turn_of(world: World, request: str) -> dict[str, Any] | None:
    """The row of a turn."""
    return next(iter(query(world, "SELECT * FROM turns WHERE id = ?", request)), None)


async def accepted(world: World, request: str) -> None:
    """Wait until a turn is durable."""
    await until(lambda: turn_of(world, request), f"{request} is accepted")


async def settled(world: World, request: str) -> dict[str, Any]:
    """Wait until a turn has ended, without touching its agent; its row."""
    has_ended = "SELECT * FROM turns WHERE id = ? AND status NOT IN ('accepted', 'running')"
    rows = await until(lambda: query(world, has_ended, request), f"{request} ends")
    return rows[0]


def stored_stream(world: World, request: str) -> list[str]:
    """The chunks of an ended turn, byte for byte."""
    rows = query(world, "SELECT * FROM packed_journals WHERE turn = ?", request)
    assert len(rows) == 1
    return list(packed_journal(rows[0]).bodies)


def stored_messages(world: World, agent: str) -> list[UIMessage]:
    """Every message of an agent, in the order of storage."""
    rows = query(world, "SELECT content FROM messages WHERE agent = ? ORDER BY seq", agent)
    return [json.loads(row["content"]) for row in rows]


def check_stream(world: World, request: str) -> UIMessage:
    """The whole journal is one legal stream of one message; the message it makes."""
    turn = turn_of(world, request)
    assert turn is not None
    chunks = [json.loads(body) for body in stored_stream(world, request)]
    assert [problem for problem in map(check_chunk, chunks) if problem] == []
    kinds = [chunk["type"] for chunk in chunks]
    assert kinds.count("start") <= 1
    assert kinds.count("finish") == (1 if turn["status"] == "completed" else 0)
    assert "finish" not in kinds[:-1]
    check_nesting(chunks)
    fold = Fold({"id": turn["message_id"], "role": "assistant", "parts": []})
    for chunk in chunks:
        fold.apply(chunk)
    return fold.message


def check_nesting(chunks: list[dict[str, Any]]) -> None:
    """Steps do not overlap; a part is used between its start and its end, and started once."""
    in_step, begun, open_parts = False, set[str](), set[str]()
    for chunk in chunks:
        kind, part = chunk["type"], chunk.get("id", "")
        if kind in ("start-step", "finish-step"):
            assert in_step == (kind == "finish-step")
            assert not open_parts
            in_step = not in_step
        elif kind.endswith("-start") and part:
            assert part not in begun
            begun.add(part)
            open_parts.add(part)
        elif part:
            assert part in open_parts
            open_parts -= {part} if kind.endswith("-end") else set()


def check_answer(world: World, agent: str, request: str, question: str) -> UIMessage:
    """A completed turn: everything said once, in one stored message that its stream makes."""
    turn = turn_of(world, request)
    assert turn is not None
    assert (turn["status"], turn["error"]) == ("completed", None)
    messages = stored_messages(world, agent)
    ids = [message["id"] for message in messages]
    assert ids.count(f"m{request}") == 1
    assert ids.count(turn["message_id"]) == 1
    answer = messages[ids.index(turn["message_id"])]
    assert ids.index(answer["id"]) == ids.index(f"m{request}") + 1
    assert answer == check_stream(world, request)
    texts = [part["text"] for part in answer["parts"] if part["type"] == "text"]
    assert "".join(map(without_aside, texts)) == read_plan(question).text
    check_calls(world, answer, question)
    return answer


def check_calls(world: World, answer: UIMessage, question: str) -> None:
    """Every planned call has one result; a `once` tool ran at most once."""
    results = {p["input"]["note"]: p for p in tool_parts(answer) if p.get("input")}
    for call in read_plan(question).calls:
        part, ran = results[call.note], world.effects(call.note)
        assert part["state"] == "output-available" or "unknown" in part["errorText"]
        assert "preliminary" not in part
        if part["state"] == "output-available":
            assert part["output"] == f"did {call.note}"
            assert len(ran) >= 1
        if call.tool == "once":
            assert len(ran) <= 1
        assert len({line["key"] for line in ran}) <= 1
