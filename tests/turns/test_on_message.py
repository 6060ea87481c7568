"""`on_message`: once per message of the conversation, when it is committed (M-030, M-129)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.turns.support import Stage, running
from thinkwell import Think, tool
from thinkwell.messages import ToolMessage
from thinkwell.testing import call, text
from thinkwell.tools import client_tool


class Clerk(Think):
    """Logs its messages in the diary of the store."""

    told: list[Any]

    async def on_start(self) -> None:
        self.told = []

    def get_tools(self) -> Any:
        return {"ask": client_tool("ask", "Ask the user.")}

    @tool
    async def now(self) -> str:
        """The time."""
        return "12:00"

    @tool
    async def broken(self) -> str:
        """Fails."""
        raise RuntimeError("inside")

    @tool(needs_approval=True)
    async def paint(self) -> str:
        """Paint."""
        return "painted"

    def on_message(self, ctx: Any) -> None:
        message = ctx.message
        result = [(c.kind, c.value) for c in message.content] if message.role == "tool" else None
        self.told.append((message.role, message.id if result else None, result))


def diary(stage: Stage[Any]) -> list[str]:
    """Have what is told written beside what is committed."""
    stage.agent.add_hook("on_message", lambda ctx: stage.log.append(f"told {ctx.message.role}"))
    return stage.log


class TestAfterTheCommit:
    async def test_5_13_each_message_is_told_when_it_is_stored(self):
        async with running(Clerk, [text("Look:"), call("now")], "Noon.") as stage:
            log = diary(stage)
            await stage.agent.run("hi")
            told = [line for line in log if line.startswith("told")]
            assert told == ["told user", "told assistant", "told tool", "told assistant"]
            for line, before in (
                ("told user", "stored user"),
                ("told assistant", "committed tool-input-available"),
                ("told tool", "committed tool-output-available"),
            ):
                assert log.index(before) < log.index(line)
            last = len(log) - 1 - log[::-1].index("told assistant")
            assert "committed text-end" in log[log.index("told tool") : last]

    @pytest.mark.parametrize(
        ("name", "result"),
        [
            ("now", ("text", "12:00")),
            ("broken", ("error-text", "The tool failed.")),
            ("nobody", None),
        ],
    )
    async def test_002_a_tool_message_has_the_id_of_its_call(self, name: str, result: Any):
        async with running(Clerk, [call(name, id="c7")], "ok") as stage:
            await stage.agent.run("hi")
            role, found, contents = stage.agent.told[2]
            assert (role, found) == ("tool", "c7")
            assert result is None or contents == [result]


class TestAnswersFromOutside:
    @pytest.mark.parametrize(
        ("given", "result"),
        [
            ({"output": "blue"}, ("text", "blue")),
            ({"output": {"n": 1}}, ("json", {"n": 1})),
            ({"error": "no screen"}, ("error-text", "no screen")),
        ],
    )
    async def test_m030_the_result_of_a_client_tool_is_told(self, given: Any, result: Any):
        async with running(Clerk, [call("ask")], "ok") as stage:
            await stage.agent.run("hi")
            assert [told[0] for told in stage.agent.told] == ["user", "assistant"]
            await stage.agent.add_tool_result("call-1", **given)
            await stage.agent.wait_until_stable()
            assert stage.agent.told[2:] == [("tool", "call-1", [result]), ("assistant", None, None)]

    async def test_m030_a_refused_approval_is_told(self):
        async with running(Clerk, [call("paint")], "ok") as stage:
            await stage.agent.run("hi")
            await stage.agent.respond_to_approval("call-1", False, reason="wet")
            await stage.agent.wait_until_stable()
            assert stage.agent.told[2] == ("tool", "call-1", [("execution-denied", "wet")])

    async def test_m030_an_approved_call_is_told_once_when_it_has_run(self):
        async with running(Clerk, [call("paint")], "ok") as stage:
            await stage.agent.run("hi")
            await stage.agent.respond_to_approval("call-1", True)
            await stage.agent.wait_until_stable()
            assert [told[0] for told in stage.agent.told] == [
                "user",
                "assistant",
                "tool",
                "assistant",
            ]
            assert stage.agent.told[2] == ("tool", "call-1", [("text", "painted")])

    async def test_it_says_which_stored_message_and_step_it_belongs_to(self):
        async with running(Clerk, [call("now")], [call("ask", id="c2")], "ok") as stage:
            await stage.agent.run("hi")
            seen: list[Any] = []
            stage.agent.add_hook("on_message", seen.append)
            await stage.agent.add_tool_result("c2", output="blue")
            await stage.agent.wait_until_stable()
            first = seen[0]
            assert isinstance(first.message, ToolMessage)
            assert first.ui_message_id == (await stage.answer())["id"]
            assert (first.step_number, first.continuation) == (1, False)

    async def test_a_result_that_nobody_asked_for_is_not_told(self):
        async with running(Clerk, [call("ask")], "ok") as stage:
            await stage.agent.run("hi")
            await stage.agent.add_tool_result("other", output="blue")
            assert len(stage.agent.told) == 2
