"""Our server against the recorded reference: same frames, same order per connection (spec/01).

A difference we want is a function that takes both sides and makes them equal in that one point;
its docstring says why.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from tests.wire import ref_agents
from tests.wire.ref_agents import MaxStepAgent, Pace, PlainAgent, RefAgent, scripted
from tests.wire.replay import ContinuationPlayer, Heard, Player, Served, load, recorded
from tests.wire.serving import serving
from thinkwell import App
from thinkwell.messages.message import user_message

SAME = [
    "01-connect",
    "02-plain-text",
    "03-reasoning",
    "04-server-tool",
    "05-parallel-tools",
    "05b-parallel-slow",
    "06-tool-throws",
    "07-before-tool-call",
    "08b-client-tool-error",
    "08c-client-tool-noauto",
    "10-cancel",
    "12-second-tab",
    "14-get-messages",
    "15-regenerate",
    "17-max-steps",
    "19-server-turn",
]

SERVER_CALLS = {
    "saveMessages": ("save_messages", "from server"),
    "submitMessages": ("submit_messages", "submitted"),
    "addMessages": ("add_messages", "added only"),
}
"""What the recorded server did by itself, by its note."""


async def call_agent(app: App, agent_name: str, note: str) -> None:
    if note not in SERVER_CALLS:  # a word of whoever recorded it
        return
    method, said = SERVER_CALLS[note]
    agent: Any = app.agent(RefAgent, agent_name)
    await getattr(agent, method)([user_message(f"made-by-{method}", said)])


async def play(
    name: str, monkeypatch: pytest.MonkeyPatch, player: type[Player] = Player
) -> tuple[Heard, Heard]:
    """Our side and the reference's."""
    trace, added, pace = load(name), asyncio.Event(), Pace()
    monkeypatch.setattr(ref_agents, "ADD_WAS_SEEN", added)
    (agent_name,) = {e["json"]["name"] for e in trace["frames"] if "name" in e.get("json", {})}
    if trace.get("model_script"):
        monkeypatch.setitem(ref_agents.MODELS, agent_name, scripted(trace, pace))
    reference = recorded(trace)
    app = App(agents=[RefAgent, PlainAgent, MaxStepAgent], store="sqlite://:memory:")
    async with serving(app) as url:
        served = Served(url, pace, added, partial(call_agent, app, agent_name))
        ours = await player(trace, reference, served).play()
    return ours, reference


def assert_same(ours: Heard, reference: Heard) -> None:
    assert dict(ours.frames) == dict(reference.frames)
    assert ours.http == reference.http


@pytest.mark.parametrize("name", SAME)
async def test_the_server_says_what_the_reference_said(name: str, monkeypatch: pytest.MonkeyPatch):
    assert_same(*await play(name, monkeypatch))


Difference = Callable[[Heard, Heard], None]


def is_chunk(frame: dict[str, Any], kind: str = "") -> bool:
    body = frame.get("body")
    return isinstance(body, dict) and kind in body["type"]


def transcripts(heard: Heard) -> list[list[dict[str, Any]]]:
    """Every list of messages that was shown, to be changed in place."""
    frames = [frame for said in heard.frames.values() for frame in said]
    shown = [frame["messages"] for frame in frames if "messages" in frame]
    return shown + [answer["body"] for answer in heard.http]


def a_stopped_call_has_a_result(ours: Heard, reference: Heard) -> None:
    """The reference leaves the call of a stopped turn open; we settle it (spec/02 §7.10)."""
    frames = ours.frames["a"]
    assert sum(is_chunk(frame, "tool-output-error") for frame in frames) == 1
    frames[:] = [frame for frame in frames if not is_chunk(frame, "tool-output-error")]
    for messages in transcripts(ours):
        for part in (part for message in messages for part in message["parts"]):
            if part.get("state") == "output-error":
                assert part.pop("errorText")
                part["state"] = "input-available"


def the_end_comes_before_the_clear(ours: Heard, reference: Heard) -> None:
    """After a clear, the end of a stream makes a client show an empty answer (spec/01 §8.3 ★); and
    nothing of such a turn is kept, so it is skipped, not aborted (spec/02 §3.7).
    """
    cleared, ended = reference.frames["b"][-2:]
    reference.frames["b"][-2:] = [ended, cleared]
    for frame in (reference.frames["a"][-1], ended):
        assert frame["outcome"] == "aborted"
        frame["outcome"] = "skipped"


def an_answer_follows_its_question(ours: Heard, reference: Heard) -> None:
    """The reference stores a waiting question before the answer to the one before it; here inputs
    join the tree when their turn begins (DESIGN §8.1, AC53).
    """
    for messages in transcripts(reference):
        answers = [m for m in messages if m["role"] == "assistant"]
        questions = [m for m in messages if m["role"] == "user"]
        messages[:] = [m for pair in zip(questions, answers, strict=False) for m in pair]
        messages += questions[len(answers) :]


DIFFERENT: list[tuple[str, Difference]] = [
    ("10b-cancel-in-tool", a_stopped_call_has_a_result),
    ("13-clear", the_end_comes_before_the_clear),
    ("18-back-to-back", an_answer_follows_its_question),
]


@pytest.mark.parametrize(("name", "difference"), DIFFERENT)
async def test_the_server_differs_where_it_wants_to(
    name: str, difference: Difference, monkeypatch: pytest.MonkeyPatch
):
    ours, reference = await play(name, monkeypatch)
    difference(ours, reference)
    assert_same(ours, reference)


def without_the_handshake(heard: Heard) -> None:
    """When the offer is made and taken is a matter of timing: the probe is answered `pending` or
    `resuming`, and what was streamed before the acknowledgement is told again. What stays is every
    update, the last transcript, and one end.
    """
    frames = heard.frames["a"]
    ends = [frame for frame in frames if frame.get("continuation") and frame.get("done")]
    (request_id,) = {frame["id"] for frame in ends}
    assert {frame["outcome"] for frame in ends} == {"completed"}
    heard.frames["a"] = [frame for frame in frames if frame.get("id") != request_id]


def one_answer_is_one_message(reference: Heard) -> None:
    """DESIGN §8.2: a continuation goes on in the same stored message; the reference adds one."""
    for messages in transcripts(reference):
        for first, second in pairwise(messages):
            if first["role"] == second["role"] == "assistant":
                first["parts"] = first["parts"] + second["parts"]
                messages.remove(second)


@pytest.mark.parametrize("name", ["08-client-tool", "09a-approve", "09b-deny"])
async def test_a_continuation_says_what_the_reference_said(
    name: str, monkeypatch: pytest.MonkeyPatch
):
    ours, reference = await play(name, monkeypatch, ContinuationPlayer)
    without_the_handshake(ours)
    without_the_handshake(reference)
    one_answer_is_one_message(reference)
    assert_same(ours, reference)
