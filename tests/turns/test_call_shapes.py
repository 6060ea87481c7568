"""How calls are told: what cannot run, tools nobody knows, tools of the provider, documents
(spec/01 F5-F12, §9.2).
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.turns.configured import configured
from tests.turns.support import Client, Stage, part_of, running
from tests.turns.test_tools import Tools
from thinkwell import Think
from thinkwell.messages.chunks import check_chunk
from thinkwell.messages.model_messages import AssistantMessage, ToolCallContent, ToolMessage
from thinkwell.models.base import (
    SourceDocument,
    ToolCall,
    ToolInputDelta,
    ToolInputStart,
    ToolResult,
)
from thinkwell.testing import Gate, call, text

SEARCH = [
    ToolInputStart("s1", "web_search", provider_executed=True),
    ToolInputDelta("s1", '{"q":"moon"}'),
    ToolCall("s1", "web_search", '{"q":"moon"}', {"acme": {"k": 1}}, provider_executed=True),
]
FOUND = ToolResult("s1", {"hits": 3}, provider_metadata={"acme": {"r": 2}})


async def told(stage: Stage[Any]) -> list[dict[str, Any]]:
    """The chunks of one turn, all of which clients can read."""
    client: Client = await stage.connect()
    await client.ask("go")
    await client.until_end()
    chunks = client.chunks()
    assert [problem for problem in map(check_chunk, chunks) if problem] == []
    return chunks


def about_calls(chunks: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(c["type"].removeprefix("tool-"), c["toolCallId"]) for c in chunks if "toolCallId" in c]


class TestAnInputThatDoesNotFit:
    @pytest.mark.parametrize(
        ("written", "shown"),
        [('{"n":"many"}', {"n": "many"}), ("{not json", {}), ("[1]", {}), ('"n"', {})],
    )
    async def test_the_input_of_the_error_is_an_object(self, written: str, shown: Any):
        async with running(Tools, [call("double", written)], "ok") as stage:
            (failed,) = [c for c in await told(stage) if c["type"] == "tool-input-error"]
            assert failed["input"] == shown
            assert "dynamic" not in failed
            part = part_of(await stage.answer())
            assert (part["type"], part["state"], part["input"]) == (
                "tool-double",
                "output-error",
                shown,
            )

    async def test_it_is_told_when_it_is_read_and_not_when_the_model_has_ended(self):
        gate = Gate()
        bad = call("double", '{"n":"many"}')
        async with running(Tools, [bad, gate, text("so")], "ok") as stage:
            client = await stage.connect()
            await client.ask("go")
            await gate.reached()
            await client.until(lambda frame: "tool-input-error" in frame.get("body", ""))
            gate.open()
            await client.until_end()
            kinds = [chunk["type"] for chunk in client.chunks()]
            assert kinds.count("tool-input-error") == 1
            assert kinds.index("tool-input-error") < kinds.index("text-start")

    async def test_a_hook_that_may_change_the_error_sees_it_before_anybody(self):
        class Discreet(Tools, name="tools"):
            async def on_tool_error(self, ctx: Any) -> Any:
                return {"error": RuntimeError("no comment")}

        async with running(Discreet, [call("double", "{not json")], "ok") as stage:
            failed = [c for c in await told(stage) if c["type"] == "tool-input-error"]
            assert [chunk["errorText"] for chunk in failed] == ["no comment"]


class TestAToolNobodyKnows:
    async def test_its_call_is_dynamic_from_the_start(self):
        async with running(Tools, [call("nowhere", {"a": 1})], "ok") as stage:
            chunks = [c for c in await told(stage) if "toolName" in c]
            assert [c["type"] for c in chunks] == ["tool-input-start", "tool-input-error"]
            assert all(c["dynamic"] is True for c in chunks)
            part = part_of(await stage.answer())
            assert (part["type"], part["toolName"], part["input"]) == (
                "dynamic-tool",
                "nowhere",
                {"a": 1},
            )
            (asked,) = [m for m in stage.model.requests[1].messages if isinstance(m, ToolMessage)]
            assert asked.content[0].tool_name == "nowhere"

    async def test_a_name_that_may_be_mended_is_not_dynamic(self):
        """For clients, the same call under another kind would be another call."""

        def mend(context: Any) -> Any:
            return context.tool_call.corrected(tool_name="b")

        async with configured({"repair_tool_call": mend}, [call("B")], "ok") as stage:
            assert not any("dynamic" in chunk for chunk in await told(stage))
            assert part_of(await stage.answer())["type"] == "tool-b"


class TestAToolOfTheProvider:
    async def test_it_is_shown_and_stored_and_never_run_or_waited_for(self):
        async with running(Think, [*SEARCH, FOUND, text("three hits")]) as stage:
            chunks = [c for c in await told(stage) if "toolCallId" in c]
            assert about_calls(chunks) == [
                ("input-start", "s1"),
                ("input-delta", "s1"),
                ("input-available", "s1"),
                ("output-available", "s1"),
            ]
            by_provider = [c for c in chunks if c["type"] != "tool-input-delta"]
            assert all(c["providerExecuted"] is True for c in by_provider)
            turn = await stage.agent.get_turn("q1")
            assert (turn.status, turn.stop_reason) == ("completed", "end")
            part = part_of(await stage.answer(), "s1")
            assert part == {
                "type": "tool-web_search",
                "toolCallId": "s1",
                "toolName": "web_search",
                "state": "output-available",
                "input": {"q": "moon"},
                "output": {"hits": 3},
                "providerExecuted": True,
                "callProviderMetadata": {"acme": {"k": 1}},
                "resultProviderMetadata": {"acme": {"r": 2}},
            }

    async def test_the_next_question_brings_call_and_result_back_to_the_model(self):
        async with running(Think, [*SEARCH, FOUND, text("three hits")], "sure") as stage:
            await stage.agent.run("search")
            await stage.agent.run("sure?")
            sent = stage.model.requests[1].messages
            (made,) = [
                c
                for m in sent
                if isinstance(m, AssistantMessage)
                for c in m.content
                if isinstance(c, ToolCallContent)
            ]
            (result,) = [c for m in sent if isinstance(m, ToolMessage) for c in m.content]
            assert made.provider_executed
            assert result.provider_executed
            assert (made.provider_metadata, result.value) == ({"acme": {"k": 1}}, {"hits": 3})

    @pytest.mark.parametrize(
        ("result", "state"),
        [(ToolResult("s1", error="offline"), "output-error"), (None, "output-error")],
    )
    async def test_a_failure_or_a_missing_result_is_an_error(self, result: Any, state: str):
        said = [*SEARCH, *([] if result is None else [result]), text("hm")]
        async with running(Think, said, "well") as stage:
            chunks = await told(stage)
            (failed,) = [c for c in chunks if c["type"] == "tool-output-error"]
            assert failed["providerExecuted"] is True
            assert part_of(await stage.answer(), "s1")["state"] == state

    async def test_a_client_cannot_answer_in_its_place(self):
        gate = Gate()
        async with running(Think, [*SEARCH, gate, FOUND, text("three hits")]) as stage:
            client = await stage.connect()
            await client.ask("go")
            await gate.reached()
            assert not await stage.agent.add_tool_result("s1", output="forged")
            gate.open()
            await client.until_end()
            assert part_of(await stage.answer(), "s1")["output"] == {"hits": 3}

    async def test_a_hook_that_changes_the_answer_leaves_it_there(self):
        class Editing(Think, name="editing"):
            async def on_response(self, ctx: Any) -> Any:
                return {"response": {"content": "changed"}}

        async with running(Editing, [*SEARCH, FOUND, text("three hits")]) as stage:
            assert "reset-step" in [chunk["type"] for chunk in await told(stage)]
            parts = (await stage.answer())["parts"]
            kinds = [part["type"] for part in parts]
            assert kinds == ["step-start", "tool-web_search", "text"]
            assert parts[1]["output"] == {"hits": 3}


async def test_a_document_is_a_source():
    document = SourceDocument("d1", "application/pdf", "The moon", "moon.pdf")
    plain = SourceDocument("d2", "text/plain", "Notes")
    async with running(Think, [document, plain, text("see there")]) as stage:
        sources = [c for c in await told(stage) if c["type"] == "source-document"]
        assert sources[0] == {
            "type": "source-document",
            "sourceId": "d1",
            "mediaType": "application/pdf",
            "title": "The moon",
            "filename": "moon.pdf",
        }
        assert "filename" not in sources[1]
        assert [
            p for p in (await stage.answer())["parts"] if p["type"] in ("source-document",)
        ] == (sources)
