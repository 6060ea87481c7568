"""Whoever may talk but not write changes no state through a turn either (spec/01 §2.6)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.http.support import Client, Guide, talking
from thinkwell import tool
from thinkwell.messages.message import user_message
from thinkwell.testing import call
from thinkwell.wire.http import HttpRequest

NOTE = call("note", {"text": "hi"})
ASK = call("ask", {"question": "where?"})


class Board(Guide):
    """Has a state that a tool changes; guests may talk, but not change it."""

    initial_state = {"note": ""}

    def should_request_be_readonly(self, request: HttpRequest) -> Any:
        return request.query.get("role") == "guest"

    def authorize(self, action: Any, principal: Any, subject: Any) -> bool:
        return True

    @tool
    async def note(self, text: str) -> str:
        """Write on the board."""
        await self.set_state({"note": text})
        return "noted"

    def on_request(self, request: HttpRequest) -> Any:
        return self.state if request.path == "state" else super().on_request(request)


class AsyncBoard(Board):
    """Has to look up who may write."""

    async def should_request_be_readonly(self, request: HttpRequest) -> bool:
        return request.query.get("role") == "guest"


class Broken(Board):
    """Cannot find out."""

    def should_request_be_readonly(self, request: HttpRequest) -> bool:
        raise RuntimeError("secret")


async def state_of(client: Client) -> Any:
    return await (await client.get("state")).json()


async def ask(client: Client, way: str, role: str) -> None:
    """Let a turn write on the board."""
    chat = {"messages": [user_message("u", "write")]}
    body = chat if way == "chat" else {"input": "write"}
    answer = await client.post(f"{way}?role={role}", body)
    assert answer.status == 200
    await answer.read()


@pytest.mark.parametrize("cls", [Board, AsyncBoard])
@pytest.mark.parametrize("way", ["chat", "run"])
@pytest.mark.parametrize(("role", "note"), [("guest", ""), ("owner", "hi")])
async def test_a_turn_writes_only_for_those_who_may(
    cls: type[Board], way: str, role: str, note: str
):
    async with talking([NOTE], "done", cls=cls) as client:
        await ask(client, way, role)
        assert await state_of(client) == {"note": note}
        outcome = (await client.stored())[1]["parts"][1]["state"]
        assert outcome == ("output-available" if note else "output-error")


async def test_going_on_with_an_answer_is_judged_by_who_asks_for_it():
    """14.7: the output was there already; the request only lets the answer go on"""
    async with talking([ASK], [NOTE], "done", cls=Board) as client:
        await client.say("where?")
        tab = await client.socket()
        result = {"toolCallId": "call-1", "toolName": "ask", "output": "here"}
        await tab.send_json({"type": "cf_agent_tool_result", **result, "autoContinue": False})
        while (await tab.receive_json(timeout=30))["type"] != "cf_agent_message_updated":
            pass
        client.settle("call-1", state="output-available", output="here")
        answer = await client.post("chat?role=guest", {"messages": client.shown})
        assert answer.status == 200
        await answer.read()
        client.model.assert_complete()
        assert await state_of(client) == {"note": ""}


async def test_a_hook_that_fails_lets_nobody_write():
    async with talking([NOTE], "done", cls=Broken) as client:
        answer = await client.post("run", {"input": "write"})
        assert (answer.status, await answer.text()) == (500, "Internal Server Error")
        assert await client.stored() == []
