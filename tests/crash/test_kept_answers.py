"""An answer that the provider keeps, and `kill -9`: one request is paid for, nothing is shown twice
and nothing is missing (spec/04 §6, §9).
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import signal
import sqlite3
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.crash.process import DEADLINE, ROOT, until
from thinkwell.testing.mock_provider import MockCall, MockProvider, Reply

pytestmark = pytest.mark.crash

LONG = Reply(
    reasoning=["Let me ", "see."],
    deltas=["Hel", "lo ", "wor", "ld"],
    calls=[MockCall(name="look", arguments=['{"what":', '"it"}'], id="call_1")],
)
DONE = Reply(deltas=["Done."])
TOLD = ["Let me ", "see.", "Hel", "lo ", "wor", "ld", '{"what":', '"it"}', "Done."]
"""Every delta of the turn, in order."""


async def started(
    store: Path, what: str, provider: MockProvider, crash_at: str = "", prompt: str = "Look it up."
) -> Process:
    changes = {
        "OPENAI_BASE_URL": provider.base_url,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        "THINKWELL_CRASH_AT": crash_at,
        "THINKWELL_TEST_PROMPT": prompt,
    }
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.crash.kept_program",
        str(store),
        what,
        stdout=PIPE,
        stderr=PIPE,
        cwd=ROOT,
        env={**os.environ, **changes},
    )


async def ended(process: Process) -> tuple[list[dict[str, Any]], dict[str, Any], str]:
    """The chunks it told, how the turn ended, and what it logged."""
    async with asyncio.timeout(DEADLINE):
        said, logged = await process.communicate()
    lines = [line.partition(" ") for line in said.decode().splitlines()]
    told = [json.loads(body) for kind, _, body in lines if kind == "told"]
    ends = [json.loads(body) for kind, _, body in lines if kind == "end"]
    return told, (ends or [{}])[-1], logged.decode()


def deltas(chunks: list[dict[str, Any]]) -> list[str]:
    return [c.get("delta") or c["inputTextDelta"] for c in chunks if c["type"].endswith("-delta")]


def is_kept(store: Path) -> bool:
    """Whether the journal says where the answer can be taken up."""
    if not store.exists():
        return False
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as database:
        try:
            found = database.execute("SELECT count(*) FROM journal WHERE kind = 'kept'").fetchone()
        except sqlite3.OperationalError:  # the process is still making its tables
            return False
        return found[0] > 0


def held(after: int) -> Reply:
    return dataclasses.replace(LONG, hold_after=after)


@pytest.mark.parametrize("after", [2, 5, 11, 14, 21])
async def test_a_killed_process_goes_on_with_the_same_answer(tmp_path: Path, after: int):
    async with MockProvider([held(after), DONE]) as provider:
        first = await started(tmp_path / "a.db", "ask", provider)
        kept = provider.kept.responses
        await until(lambda: is_kept(tmp_path / "a.db"), "the answer is known to be kept")
        first.kill()
        before, _, _ = await ended(first)
        kept["resp_1"].release()  # it goes on, or has ended, while nobody listens
        told, end, logged = await ended(await started(tmp_path / "a.db", "look", provider))
        assert (end["status"], end["attempt"]) == ("completed", 2), logged
        assert deltas(told) == TOLD
        assert told[: len(before)] == before  # what clients have seen stays as it was
        assert len(provider.requests) == 2  # one for each step


@pytest.mark.parametrize("point", ["c17", "c4", "c4:3", "c5", "c5:2"])
async def test_at_each_stored_place_one_request_is_paid_for(tmp_path: Path, point: str):
    async with MockProvider([LONG, DONE]) as provider:
        first = await started(tmp_path / "a.db", "ask", provider, point)
        before, _, _ = await ended(first)
        assert first.returncode == -signal.SIGKILL
        told, end, logged = await ended(await started(tmp_path / "a.db", "look", provider))
        assert (end["status"], end["attempt"]) == ("completed", 2), logged
        assert deltas(told) == TOLD
        assert told[: len(before)] == before
        assert len(provider.requests) == 2  # one for each step
        assert [response for response, _ in provider.kept.taken_up] == ["resp_1"]


async def test_a_deploy_in_between_uses_the_paid_answer_and_says_so(tmp_path: Path):
    async with MockProvider([LONG, DONE]) as provider:
        await ended(await started(tmp_path / "a.db", "ask", provider, "c4:3"))
        second = await started(tmp_path / "a.db", "look", provider, prompt="You are new here.")
        told, end, logged = await ended(second)
        assert end["status"] == "completed", logged
        assert deltas(told) == TOLD
        assert "although the prompt changed" in logged
        first, following = provider.requests
        assert first.body["instructions"].startswith("Look it up.")
        assert following.body["instructions"].startswith("You are new here.")


async def test_a_stop_that_a_crash_cut_short_cancels_the_answer_later(tmp_path: Path):
    async with MockProvider([held(12)]) as provider:
        first = await started(tmp_path / "a.db", "stop", provider, "c16")
        await ended(first)
        assert first.returncode == -signal.SIGKILL
        assert provider.kept.cancelled == []
        second = await started(tmp_path / "a.db", "stay", provider)
        await until(lambda: provider.kept.cancelled, "the answer is cancelled")
        (tmp_path / "a.db.seen").touch()
        _, end, logged = await ended(second)
        assert end["status"] == "aborted", logged
        assert provider.kept.cancelled == ["resp_1"]


async def test_an_answer_that_has_expired_goes_on_after_the_shown_text(tmp_path: Path):
    async with MockProvider([held(12), Reply(deltas=["lo again"])]) as provider:
        first = await started(tmp_path / "a.db", "ask", provider, "c4:3")
        await ended(first)
        provider.kept.responses.clear()
        told, end, logged = await ended(await started(tmp_path / "a.db", "look", provider))
        assert end["status"] == "completed", logged
        assert "cannot be taken up" in logged
        texts = [c["delta"] for c in told if c["type"] == "text-delta"]
        assert "".join(texts) == "Hello again"
        assert len(provider.requests) == 2
