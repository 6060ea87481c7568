"""What a client may send as a message (spec/01 §7.2, spec/03 §1)."""

import pytest

from tests.unit.messages.helpers import text
from thinkwell.messages.validate import check_message

GOOD = {"id": "m", "role": "user", "parts": [text("hi")]}


@pytest.mark.parametrize("more", [{}, {"metadata": {"a": 1}}, {"unknown": [1]}, {"role": "system"}])
def test_a_good_message_comes_back_as_it_is(more):
    message = GOOD | more
    assert check_message(message) is message


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "a message must be an object, not null"),
        ([GOOD], "a message must be an object, not list"),
        (GOOD | {"id": ""}, "a message needs a non-empty string `id`"),
        (GOOD | {"id": 7}, "a message needs a non-empty string `id`"),
        (GOOD | {"role": "tool"}, "message 'm' needs a `role`: one of user, assistant, system"),
        (GOOD | {"parts": "hi"}, "message 'm' needs a list of `parts`, not str"),
        ({"id": "m", "role": "user"}, "message 'm' needs a list of `parts`, not null"),
        (GOOD | {"parts": [text("a"), "b"]}, "part 1 of message 'm' must be an object, not str"),
        (GOOD | {"parts": [{"text": "a"}]}, "part 0 of message 'm' needs a string `type`"),
        (GOOD | {"parts": [{"type": "text"}]}, "part 0 of message 'm' needs a string `text`"),
        (
            GOOD | {"parts": [{"type": "tool-x"}]},
            "part 0 of message 'm' needs a string `toolCallId`",
        ),
        (GOOD | {"metadata": None}, "`metadata` of message 'm' must be an object or left out"),
    ],
)
def test_a_bad_one_is_told_why(value, reason):
    with pytest.raises(ValueError, match="^" + reason.replace("(", r"\(") + "$"):
        check_message(value)


class TestOlderClients:
    def test_content_becomes_a_text_part(self):
        old = {"id": "m", "role": "user", "content": "hi", "metadata": {}}
        assert check_message(old) == GOOD | {"metadata": {}}

    def test_invocations_become_tool_parts(self):
        done = {
            "toolCallId": "c",
            "toolName": "x",
            "args": {"a": 1},
            "state": "result",
            "result": 2,
        }
        asked = {"toolCallId": "d", "toolName": "x", "args": {}, "state": "call"}
        old = {"id": "m", "role": "assistant", "content": "", "toolInvocations": [done, asked]}
        common = {"type": "tool-x", "toolName": "x"}
        assert check_message(old)["parts"] == [
            common
            | {"toolCallId": "c", "state": "output-available", "input": {"a": 1}, "output": 2},
            common | {"toolCallId": "d", "state": "input-available", "input": {}},
        ]

    def test_a_broken_invocation_is_told(self):
        old = {"id": "m", "role": "assistant", "toolInvocations": ["x"]}
        with pytest.raises(ValueError, match="part 0"):
            check_message(old)
