"""The Python fold and npm `ai` make the same message of the same stream (spec/01 §9.3)."""

import json
import shutil
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.unit.messages.helpers import fold_chunks
from tests.unit.messages.strategies import make_stream
from thinkwell.messages.chunks import Chunk, check_chunk
from thinkwell.messages.message import Part

HERE = Path(__file__).parent
STREAMS = 600

pytestmark = pytest.mark.xdist_group("ai_sdk")  # one installation, one run of node

Answer = dict[str, Any]


@pytest.fixture(scope="module")
def streams() -> list[list[Chunk]]:
    return [make_stream(Random(seed)) for seed in range(STREAMS)]


@pytest.fixture(scope="module")
def answers(streams: list[list[Chunk]]) -> list[Answer]:
    if not (HERE / "node_modules" / "ai").is_dir():
        npm = shutil.which("npm") or "npm"
        install = [npm, "install", "--no-audit", "--no-fund", "--no-package-lock"]
        subprocess.run(install, cwd=HERE, check=True, capture_output=True, timeout=50)
    done = subprocess.run(
        [shutil.which("node") or "node", "read_streams.mjs"],
        cwd=HERE,
        input="".join(json.dumps(stream) + "\n" for stream in streams),
        capture_output=True,
        text=True,
        check=True,
        timeout=50,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def as_stored(message: dict[str, Any]) -> dict[str, Any]:
    """A message of the AI SDK in the shape servers store.

    The recorded reference server differs from the client library in three habits, and so do we:
    - it writes `toolName` on static tool parts too, so that one rule finds every tool's name;
    - it keeps no `id` on reasoning parts: ids belong to the stream and may repeat in later steps;
    - while an input streams it stores none of it. Clients show a best guess (`input`) and the text
      it was made from (`rawInput`); a guess is nothing to run a tool with after a crash.
    """
    return {**message, "parts": [_part_as_stored(part) for part in message["parts"]]}


def _part_as_stored(part: Part) -> Part:
    kind = part["type"]
    if kind == "reasoning":
        return {key: value for key, value in part.items() if key != "id"}
    if kind.startswith("tool-"):
        part = {**part, "toolName": kind.removeprefix("tool-")}
    unfinished = ("input", "rawInput") if part.get("state") == "input-streaming" else ("rawInput",)
    return {key: value for key, value in part.items() if key not in unfinished}


def test_all_generated_streams_are_legal(streams):
    problems = {
        problem for stream in streams for chunk in stream if (problem := check_chunk(chunk))
    }
    assert problems == set()


def test_the_ai_sdk_accepts_every_stream(streams, answers):
    for stream, answer in zip(streams, answers, strict=True):
        expected = [chunk["errorText"] for chunk in stream if chunk["type"] == "error"]
        assert answer["errors"] == expected


def test_both_make_the_same_message(streams, answers):
    for seed, (stream, answer) in enumerate(zip(streams, answers, strict=True)):
        ours = fold_chunks(stream, "initial")
        assert ours == as_stored(answer["message"]), f"stream {seed}: {json.dumps(stream)}"


def test_the_streams_reach_every_kind_and_every_state(streams, answers):
    kinds = {chunk["type"] for stream in streams for chunk in stream}
    parts = [part for answer in answers for part in answer["message"]["parts"]]
    states = {part["state"] for part in parts if "toolCallId" in part}
    assert len(kinds) == 30
    assert len(states) == 7
