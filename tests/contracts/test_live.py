"""`make live` asks whom it has a key for and says whom it has not asked, and why.

Here nobody has a real key: a mock that does what it is told stands in for a real model.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from typing import Any

from tests.architecture.support import ROOT
from tests.live.providers import Live, Skipped, look_around
from tests.live.suite import CALL, REPEAT, SAY
from thinkwell.models.presets import NATIVE, PRESETS
from thinkwell.testing.mock_provider import AnyReply, MockProvider, RawReply
from thinkwell.testing.protocols.reply import MockCall, Reply


async def run_live(*arguments: str, **variables: str) -> tuple[int, str]:
    """What `make live` runs, without any key but those given."""
    ours = {name for preset in (*NATIVE.values(), *PRESETS.values()) for name in _names(preset)}
    kept = {name: value for name, value in os.environ.items() if name not in ours}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.live", "-p", "no:cacheprovider", *arguments),
        cwd=ROOT,
        env={**kept, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", **variables},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    assert process.stdout is not None
    output = (await process.stdout.read()).decode()
    return await process.wait(), output


def _names(preset: Any) -> tuple[str, str]:
    return preset.key_variable, preset.url_variable


async def test_without_a_key_it_asks_nobody_says_so_and_succeeds():
    status, output = await run_live()
    assert status == 0
    assert "skipped  anthropic: ANTHROPIC_API_KEY is not set" in output
    assert "skipped  ollama: THINKWELL_LIVE_OLLAMA names no model" in output
    assert "asked " not in output
    assert "No provider was asked: set a key and run it again." in output
    assert output.count("skipped") == len(NATIVE) + len(PRESETS)


def test_a_key_is_enough_where_there_is_a_usual_model():
    found = {each.provider: each for each in look_around({"GROQ_API_KEY": "k"})}
    assert isinstance(found["groq"], Live)
    azure = look_around({"AZURE_OPENAI_API_KEY": "k", "THINKWELL_LIVE_AZURE": "mine"})
    assert Skipped("azure", "AZURE_OPENAI_ENDPOINT is not set") in azure
    chosen = look_around({"GROQ_API_KEY": "k", "THINKWELL_LIVE_GROQ": "other"})
    assert Live("groq", "other") in chosen


def obey(body: dict[str, Any]) -> AnyReply:
    """A model that does what it is told, whatever protocol it is told in."""
    if body["model"] == "no-such-model":
        return RawReply(chunks=[b'{"error":{"message":"The model does not exist"}}'], status=404)
    told = str((body.get("messages") or body.get("input") or [""])[-1])
    if REPEAT in told:
        return Reply(deltas=["word "] * 300, interval=0.005)
    if CALL in told:
        inputs = re.findall(r"(\w+)\((\{.*?\})\)", told.replace("\\", ""))
        calls = [MockCall(name=n, arguments=[i], id=f"c{k}") for k, (n, i) in enumerate(inputs)]
        return Reply(calls=calls)
    start = told.index(SAY) + len(SAY) + 1
    return Reply(deltas=[told[start:].partition('"')[0]])


async def test_the_suite_passes_with_models_that_do_what_they_are_told():
    async with MockProvider(obey) as mock:
        status, output = await run_live(
            OPENAI_API_KEY="k",
            OPENAI_BASE_URL=mock.base_url,
            ANTHROPIC_API_KEY="k",
            ANTHROPIC_BASE_URL=mock.origin,
        )
    assert status == 0, output
    assert "asked    anthropic:claude-haiku-4-5" in output
    assert "skipped  groq: GROQ_API_KEY is not set" in output
    passed = re.search(r"(\d+) passed", output)
    assert passed is not None
    assert int(passed[1]) >= 60
