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
    assert said["path"].endswith("/broken/x/anything")
