"""From stored history to the model's prompt (spec/02 §10; AC82-AC84)."""

from __future__ import annotations

from typing import Any

from tests.turns.support import part_of, running
from thinkwell import Think
from thinkwell.core import json
from thinkwell.messages.message import UIMessage, user_message
from thinkwell.messages.model_messages import ToolMessage, UserMessage


class Plain(Think):
    pass


def call_message(message_id: str, state: str, **fields: Any) -> UIMessage:
    part = {"type": "tool-look", "toolCallId": "c1", "state": state, "input": {}, **fields}
    return {"id": message_id, "role": "assistant", "parts": [{"type": "step-start"}, part]}


class TestRepair:
    async def test_ac82_an_interrupted_call_is_repaired_once_and_stored(self):
        async with running(Plain, "one", "two") as stage:
            broken = call_message("a1", "input-available")
            await stage.agent.add_messages([user_message("u1", "hi"), broken])
            await stage.agent.run("go on")
            stored = (await stage.messages())[1]
            assert part_of(stored, "c1")["state"] == "output-error"
            (repaired,) = stage.fields("chat:transcript:repaired")
            assert list(repaired["tool_call_ids"]) == ["c1"]
            assert any(isinstance(m, ToolMessage) for m in stage.model.requests[0].messages)
            await stage.agent.run("again")
            assert len(stage.fields("chat:transcript:repaired")) == 1

    async def test_10_3_an_input_that_is_no_object_becomes_one(self):
        async with running(Plain, "one") as stage:
            odd = call_message("a1", "output-available", output=1)
            odd["parts"][1]["input"] = '{"a": 1}'
            await stage.agent.add_messages([user_message("u1", "hi"), odd])
            await stage.agent.run("go on")
            assert part_of((await stage.messages())[1], "c1")["input"] == {"a": 1}


class TestWindow:
    async def test_ac83_an_old_big_output_is_shortened_for_the_model_only(self):
        output = {"text": "x" * 2000}
        async with running(Plain, "ok") as stage:
            history = [
                user_message("u0", "hi"),
                call_message("a0", "output-available", output=output),
            ]
            # The border between old and recent moves in steps of four (spec/03 §14).
            history += [user_message(f"u{n}", f"more {n}") for n in range(1, 6)]
            await stage.agent.add_messages(history)
            await stage.agent.run("now")
            sent = next(m for m in stage.model.requests[0].messages if isinstance(m, ToolMessage))
            value = sent.content[0].value
            assert isinstance(value, dict)
            assert len(json.dumps(value)) <= 500
            assert part_of((await stage.messages())[1], "c1")["output"] == output

    async def test_ac84_a_history_that_ends_with_an_answer_gets_an_unstored_user_message(self):
        async with running(Plain, "one", "two") as stage:
            await stage.agent.run("hi")
            result = await stage.agent.save_messages([])
            assert result.text == "two"
            assert isinstance(stage.model.requests[1].messages[-1], UserMessage)
            assert [m["role"] for m in await stage.messages()] == ["user", "assistant", "assistant"]

    async def test_2_16_reserved_metadata_of_a_client_is_not_kept(self):
        async with running(Plain, "ok") as stage:
            client = await stage.connect()
            message = user_message("u1", "hi")
            message["metadata"] = {"channel": "evil", "turnMetadata": {"a": 1}, "x": 1}
            await client.request("q1", messages=[message])
            await client.until_end()
            metadata = (await stage.messages())[0].get("metadata", {})
            assert metadata.get("x") == 1
            assert metadata.get("channel") != "evil"
            assert "turnMetadata" not in metadata
