"""What `run` was given, after `kill -9`: data goes on, and what was none is missed aloud."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any

import pytest

from tests.crash.process import ROOT
from thinkwell.testing.mock_provider import MockProvider, Reply

pytestmark = pytest.mark.crash

PROGRAM = Path(__file__).with_name("options_program.py")


async def run(*arguments: str, provider: MockProvider) -> str:
    address = {"OPENAI_BASE_URL": provider.base_url, "PYTHONPATH": str(ROOT / "src")}
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(PROGRAM), *arguments, stdout=PIPE, env={**os.environ, **address}
    )
    said, _ = await process.communicate()
    return said.decode().strip()


async def killed_and_started(store: Path, what: str, *replies: Reply) -> tuple[Any, MockProvider]:
    async with MockProvider(list(replies)) as provider:
        request_id = await run(str(store), what, provider=provider)
        assert request_id
        said = await run(str(store), what, request_id, provider=provider)
    return json.loads(said), provider


async def test_names_numbers_body_and_schema_hold_for_the_next_attempt(tmp_path: Path):
    reply = Reply(deltas=['{"name": "Rome"}'])
    found, provider = await killed_and_started(tmp_path / "a.db", "data", reply)
    assert (found["status"], found["attempt"]) == ("completed", 2)
    assert found["body"] == {"city": "Oslo"}
    # The schema is data; what a Python type does beside it is not stored, and is not done.
    assert found["output"] == {"name": "Rome"}
    asked = provider.requests[0].body
    assert asked["model"] == "m"
    assert asked["response_format"]["json_schema"]["name"] == "City"


@pytest.mark.parametrize(("what", "lost"), [("tool", "'double'"), ("model", "ScriptedModel")])
async def test_a_turn_that_has_lost_an_object_of_its_process_fails_and_names_it(
    tmp_path: Path, what: str, lost: str
):
    found, provider = await killed_and_started(tmp_path / "a.db", what)
    assert (found["status"], found["output"], provider.requests) == ("error", None, [])
    assert lost in found["error"]
    assert "died with the process that asked" in found["error"]
