"""Our server against the recorded reference: same frames, same order per connection (spec/01)."""

from __future__ import annotations

import asyncio

import pytest

from tests.wire import ref_agents
from tests.wire.ref_agents import PlainAgent, RefAgent, scripted
from tests.wire.replay import load, recorded, replay
from tests.wire.serving import serving
from thinkwell import App

TRACES = [
    "01-connect",
    "02-plain-text",
    "03-reasoning",
    "04-server-tool",
    "05-parallel-tools",
    "05b-parallel-slow",
    "06-tool-throws",
    "07-before-tool-call",
    "10-cancel",
    "14-get-messages",
]


@pytest.mark.parametrize("name", TRACES)
async def test_the_server_says_what_the_reference_said(name: str, monkeypatch: pytest.MonkeyPatch):
    trace, added = load(name), asyncio.Event()
    monkeypatch.setattr(ref_agents, "ADD_WAS_SEEN", added)
    if (model := scripted(trace)) is not None:
        agent_name = trace["model_script"][0]["agent"].split("/")[1]
        monkeypatch.setitem(ref_agents.MODELS, agent_name, model)
    reference = recorded(trace)
    async with serving(App(agents=[RefAgent, PlainAgent], store="sqlite://:memory:")) as url:
        ours = await replay(trace, url, added)
    assert dict(ours.frames) == dict(reference.frames)
    assert ours.http == reference.http
