"""Messages for the model as applications write them: `TurnConfig.messages`, `StepConfig.messages`
(M-005, M-008; spec/02 §8.1).
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.turns.configured import Two, configured
from tests.turns.support import running
from thinkwell.messages import (
    AssistantMessage,
    FileContent,
    SystemMessage,
    TextContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
)

HI = UserMessage((TextContent("hi"),))
CALL = ToolCallContent(tool_call_id="c", tool_name="look", input={"n": 1})


def result(kind: Any, value: Any) -> ToolMessage:
    content = ToolResultContent(tool_call_id="c", tool_name="look", kind=kind, value=value)
    return ToolMessage((content,))


def tool_dict(**given: Any) -> dict[str, Any]:
    part = {"type": "tool-result", "tool_call_id": "c", "tool_name": "look", **given}
    return {"role": "tool", "content": [part]}


FORMS: list[tuple[Any, Any]] = [
    ({"role": "user", "content": "hi"}, HI),
    ({"role": "user", "content": [{"type": "text", "text": "hi"}]}, HI),
    ({"id": "u", "role": "user", "parts": [{"type": "text", "text": "hi"}]}, HI),
    (HI, HI),
    (UserMessage("hi"), HI),  # pyright: ignore[reportArgumentType] - what a newcomer writes
    (UserMessage([TextContent("hi")]), HI),  # pyright: ignore[reportArgumentType] - so is this
    ({"role": "system", "content": "be brief"}, SystemMessage("be brief")),
    ({"role": "assistant", "content": "yes"}, AssistantMessage((TextContent("yes"),))),
    (
        {"role": "user", "content": [{"type": "file", "url": "data:,x", "mediaType": "text/x"}]},
        UserMessage((FileContent("data:,x", "text/x"),)),
    ),
    (
        {"role": "user", "content": [{"type": "image", "image": "https://x/y.png"}]},
        UserMessage((FileContent("https://x/y.png", "image/*"),)),
    ),
    (
        {
            "role": "assistant",
            "content": [
                {"type": "tool-call", "toolCallId": "c", "toolName": "look", "input": {"n": 1}}
            ],
        },
        AssistantMessage((CALL,)),
    ),
    (tool_dict(output={"type": "text", "value": "fog"}), result("text", "fog")),
    (tool_dict(output={"type": "error-text", "value": "no"}), result("error-text", "no")),
    (tool_dict(result="fog"), result("text", "fog")),
    (tool_dict(output={"fog": True}), result("json", {"fog": True})),
]


@pytest.mark.parametrize(("given", "sent"), FORMS)
class TestForms:
    async def test_8_1_before_turn_may_write_messages_so(self, given: Any, sent: Any):
        async with configured({"messages": [given, HI]}, "ok") as stage:
            result = await stage.agent.run("not this")
            assert result.status == "completed"
            assert stage.model.requests[0].messages == (sent, HI)

    async def test_8_1_and_so_may_before_step(self, given: Any, sent: Any):
        async with running(Two, "ok") as stage:
            stage.agent.add_hook("before_step", lambda _: {"messages": [given, HI]})
            await stage.agent.run("not this")
            assert stage.model.requests[0].messages == (sent, HI)


async def test_the_next_hook_sees_messages_of_one_kind():
    seen: list[Any] = []
    async with configured({"messages": [{"role": "user", "content": "hi"}]}, "ok") as stage:
        stage.agent.add_hook("before_turn", lambda ctx: seen.append(ctx.messages))
        await stage.agent.run("not this")
    assert seen == [(HI,)]


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ("hi", "Give a list"),
        ({"role": "user", "content": "hi"}, "Give a list"),
        ([HI, 5], "messages[1] cannot be read: a int is no message"),
        ([{"role": "user"}], "messages[0] cannot be read: 'content' is missing"),
        ([{"role": "robot", "content": "hi"}], "the role 'robot'"),
        ([{"role": "user", "content": 5}], "is a int"),
        ([{"role": "user", "content": [{"type": "video"}]}], "the type 'video'"),
        ([tool_dict(output={"type": "video", "value": 1})], "messages[0]"),
        ([{"role": "user", "content": tool_dict(result=1)["content"]}], "a tool-result part"),
    ],
)
async def test_what_cannot_be_read_fails_the_turn_and_says_which_it_is(messages: Any, said: str):
    async with configured({"messages": messages}, "never") as stage:
        result = await stage.agent.run("hi")
        assert (result.status, stage.model.requests) == ("error", [])
        assert said in str(result.error)
        assert '{"role": "user", "content": ' in str(result.error)  # how it is written
