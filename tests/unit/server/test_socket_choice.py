"""Frames are joined only with the versions of uvicorn and websockets that this was tested with."""

from __future__ import annotations

import json
from importlib.metadata import version

import pytest

from tests.wire.room import room
from thinkwell.server import socket_choice
from thinkwell.server.joined_socket import JoinedWebSocket
from thinkwell.server.socket_choice import TESTED, is_tested, websocket_class


def test_the_installed_versions_are_the_tested_ones():
    assert all(is_tested(name, version(name)) for name in TESTED)
    assert websocket_class() is JoinedWebSocket


@pytest.mark.parametrize(
    ("name", "text", "tested"),
    [
        ("uvicorn", "0.54.0", True),
        ("uvicorn", "0.54.9.post1", True),
        ("uvicorn", "0.53.9", False),
        ("uvicorn", "0.55.0", False),
        ("uvicorn", "1.54.0", False),
        ("websockets", "17.4", True),
        ("websockets", "18.0", False),
        ("websockets", "dev", False),
    ],
)
def test_other_versions_are_not(name: str, text: str, *, tested: bool):
    assert is_tested(name, text) is tested


async def test_with_another_version_a_chat_works_with_plain_writes(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(socket_choice, "version", lambda _: "99.0")
    assert websocket_class() == "auto"
    async with room("Hello there") as r:
        tab = await r.tab()
        await tab.ask("hi")
        assert (await tab.stream()).text == "Hello there"
        assert json.dumps(await r.texts())
