"""Hooks of connections, calls and state may raise anything (DESIGN §8.16)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.turns.support import running
from thinkwell import HttpRequest, Think, rpc
from thinkwell.core.errors import UserCodeError
from thinkwell.host.client import AgentAddress

RAISED: list[Any] = [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), asyncio.CancelledError()]


class Breaks(Think):
    initial_state = 0
    broken = ""
    error: BaseException = SystemExit(1)

    def check(self, name: str) -> None:
        if self.broken == name:
            raise self.error

    async def on_connect(self, connection: Any, request: Any) -> None:
        self.check("on_connect")

    async def on_close(self, connection: Any, code: int, reason: str) -> None:
        self.check("on_close")

    async def on_client_message(self, connection: Any, data: Any) -> None:
        self.check("on_client_message")

    async def on_request(self, request: Any) -> str:
        self.check("on_request")
        return "fine"

    def on_state_changed(self, state: Any, source: Any) -> None:
        self.check("on_state_changed")

    def validate_state_change(self, state: Any, source: Any) -> None:
        self.check("validate_state_change")

    def authorize(self, action: Any, principal: Any, subject: Any) -> Any:
        self.check("authorize")
        return True

    @rpc
    async def count(self) -> int:
        """Counts."""
        self.check("count")
        return 1


@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
async def test_whatever_they_raise_the_agent_goes_on(error: BaseException):
    async with running(Breaks, "ok") as stage:
        agent = stage.agent
        agent.error = error
        client = await stage.connect()
        for hook in ("on_client_message", "on_state_changed", "validate_state_change", "authorize"):
            agent.broken = hook
            await client.send(type="something of ours")
            await client.send(type="cf_agent_state", state=len(hook))
        for hook in ("count", "authorize"):
            agent.broken = hook
            await client.send(type="rpc", id=hook, method="count", args=[])
            answer = await client.until(lambda frame, id=hook: frame.get("id") == id)
            assert answer["success"] is False
        agent.broken = "on_close"
        assert client.connection is not None
        await client.connection.close()
        agent.broken = "on_connect"
        with pytest.raises(UserCodeError):
            await stage.connect("other")
        agent.broken = "on_request"
        address = AgentAddress("breaks", "x")
        request = HttpRequest(method="GET", path="page")
        with pytest.raises(UserCodeError):
            await stage.host.client().handle_request(address, request)
        agent.broken = ""
        assert (await stage.host.client().handle_request(address, request)).body == b"fine"
        assert (await agent.run("hi")).text == "ok"
