"""Hooks about connections and requests that raise leave one line each, with agent and hook."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from tests.wire.room import Chat, room


class Broken(Chat):
    def on_connect(self, connection: Any, request: Any) -> None:
        raise RuntimeError("boom")

    def on_request(self, request: Any) -> Any:
        raise RuntimeError("boom")


def failures(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    records = [r for r in caplog.records if r.levelno >= logging.ERROR]
    assert all(r.exc_info and r.name.startswith("thinkwell.") for r in records)
    return [vars(r) for r in records]


async def test_on_connect_that_raises_leaves_one_line(caplog: pytest.LogCaptureFixture):
    async with room(cls=Broken) as r:
        tab = await r.open()
        await tab.closed()
    (said,) = failures(caplog)
    assert (said["agent"], said["hook"]) == ("broken/x", "on_connect")


async def test_on_request_that_raises_leaves_one_line(caplog: pytest.LogCaptureFixture):
    async with room(cls=Broken) as r:
        status, _ = await r.browser.get(f"{r.path}/anything")
        assert status == 500
    (said,) = failures(caplog)
    assert said["hook"] == "on_request"
    assert "code" not in said
    assert said["path"].endswith("/broken/x/anything")


async def test_a_hook_that_is_asked_before_the_connection_opens_is_named(
    caplog: pytest.LogCaptureFixture,
):
    class Untagged(Chat):
        def get_connection_tags(self, connection: Any, request: Any) -> Any:
            return [3]

    async with room(cls=Untagged) as r:
        tab = await r.open()
        await tab.closed()
    (said,) = failures(caplog)
    assert (said["agent"], said["hook"]) == ("untagged/x", "get_connection_tags")


async def test_a_failure_outside_of_the_apps_code_names_none(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    def broken(*_: Any) -> Any:
        raise RuntimeError("boom")

    async with room() as r:
        monkeypatch.setattr("thinkwell.server.http._respond_unless_stopped", broken)
        assert (await r.browser.get(f"{r.path}/anything"))[0] == 500
    (said,) = failures(caplog)
    assert not {"hook", "code"} & said.keys()
    assert "failed in the server" in said["msg"] % said["args"]
