"""A replay with the recorded model and tools gives the same bytes (spec/04 §22.3)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from tests.travel.support import asked, case_of, newest, replayed, same
from tests.turns.support import running
from thinkwell import Block, Output, StepConfig, Substitute, Think, TurnConfig, tool
from thinkwell.core import json
from thinkwell.core.errors import ModelError
from thinkwell.hooks.answers import Allow
from thinkwell.models.base import FilePart, SourceUrl, ToolCall, ToolResult
from thinkwell.store.sqlite import SqliteStore
from thinkwell.testing import call, error, pause, reasoning, text

PLACE = [{"name": "place", "description": "Where", "parameters": {"type": "object"}}]


class Clerk(Think, name="clerk"):
    system_prompt = "You file things."
    time_limits = {"grace": 0}
    ran: list[str] = []

    @tool(effect="pure")
    async def look(self, what: str) -> dict[str, Any]:
        """Looks something up."""
        self.ran.append(what)
        return {"found": what, "pages": [1, 2]}

    @tool
    async def fail(self, what: str) -> str:
        """Fails."""
        raise ValueError(f"no {what}")


@pytest.fixture(autouse=True)
def nothing_ran():
    Clerk.ran.clear()


@pytest.fixture
def store() -> SqliteStore:
    return SqliteStore(":memory:")


async def test_plain_text_in_a_conversation(store: SqliteStore):
    async with running(Clerk, "one", "two words", store=store) as stage:
        await asked(stage, "hi", "q1")
        await asked(stage, "and on", "q2")
        same(await replayed(store, Clerk, "q1"))
        same(await replayed(store, Clerk, "q2"))


async def test_reasoning_files_sources_and_calls_that_the_provider_ran(store: SqliteStore):
    said = [
        reasoning("hm", provider_metadata={"p": {"signature": "s"}}),
        text("a"),
        FilePart("data:text/plain,x", "text/plain"),
        SourceUrl("s1", "https://example.com", "Title"),
        ToolCall("w1", "web", '{"q": 1}', None, True),
        ToolResult("w1", {"hits": 2}),
        text("b"),
    ]
    async with running(Clerk, said, store=store) as stage:
        await asked(stage, "hi", "q1")
        same(await replayed(store, Clerk, "q1"))


async def test_reasoning_that_clients_do_not_see(store: SqliteStore):
    class Quiet(Clerk, name="clerk"):
        send_reasoning = False

    steps = [[reasoning("hm"), call("look", {"what": "x"})], "done"]
    async with running(Quiet, *steps, store=store) as stage:
        await asked(stage, "hi", "q1")
        same(await replayed(store, Quiet, "q1"))


async def test_parallel_tools_in_the_order_they_ended(store: SqliteStore):
    second = asyncio.Event()

    class Racing(Clerk, name="clerk"):
        @tool
        async def slow(self) -> str:
            """Ends last."""
            await second.wait()
            return "slow"

        @tool
        async def quick(self) -> Any:
            """Shows something first."""
            yield {"half": True}
            yield {"whole": True}
            second.set()

    steps = [[call("slow"), call("quick"), call("look", {"what": "x"})], "done"]
    async with running(Racing, *steps, store=store) as stage:
        await asked(stage, "hi", "q1")
        second.clear()
        replay = await replayed(store, Racing, "q1")
        same(replay)
        assert not second.is_set()
    chunks = [json.loads(body) for body in replay.case.journal.bodies]
    told = [c["toolCallId"] for c in chunks if c["type"].startswith("tool-output")]
    assert told[-1] == "call-1"
    assert told.count("call-2") > 1


async def test_tools_that_fail_and_calls_that_do_not_fit(store: SqliteStore):
    calls = [
        call("fail", {"what": "x"}),
        call("look", {"wrong": 1}),
        call("look", "{not json"),
        call("nobody", {"x": 1}),
    ]
    async with running(Clerk, calls, "sorry", store=store) as stage:
        await asked(stage, "hi", "q1")
        same(await replayed(store, Clerk, "q1"))


async def test_calls_whose_errors_a_hook_sees_first(store: SqliteStore):
    class Polite(Clerk, name="clerk"):
        def on_tool_error(self, ctx: Any) -> Any:
            return RuntimeError("not now")

    calls = [call("fail", {"what": "x"}), call("look", "{not json"), call("nobody")]
    async with running(Polite, calls, "sorry", store=store) as stage:
        await asked(stage, "hi", "q1")
        same(await replayed(store, Polite, "q1"))


async def test_an_approval_and_the_turn_that_goes_on_with_it(store: SqliteStore):
    class Careful(Clerk, name="clerk"):
        @tool(needs_approval=True)
        async def send(self, to: str) -> str:
            """Sends it."""
            self.ran.append(to)
            return f"sent to {to}"

    first = [text("May I?"), call("send", {"to": "Bo"}), call("send", {"to": "Al"})]
    steps = [first, [call("look", {"what": "x"})], "Sent."]
    async with running(Careful, *steps, store=store) as stage:
        await asked(stage, "hi", "q1")
        await stage.agent.respond_to_approval("call-1", approved=True)
        await stage.agent.respond_to_approval("call-2", approved=False)
        await stage.agent.wait_until_stable()
        continuation = await newest(store)
        assert continuation != "q1"
        same(await replayed(store, Careful, "q1"))
        same(await replayed(store, Careful, continuation))
    assert Clerk.ran == ["Bo", "x"]


async def test_client_tools_and_the_turn_that_goes_on_with_them(store: SqliteStore):
    steps = [[call("place"), call("look", {"what": "x"})], "There."]
    async with running(Clerk, *steps, store=store) as stage:
        await asked(stage, "hi", "q1", clientTools=PLACE)
        await stage.agent.add_tool_result("call-1", output={"city": "Oslo"})
        await stage.agent.wait_until_stable()
        same(await replayed(store, Clerk, "q1"))
        continuation = await newest(store)
        assert continuation != "q1"
        same(await replayed(store, Clerk, continuation))


async def test_an_answer_that_came_while_the_turn_ran(store: SqliteStore):
    gate = asyncio.Event()

    class Waits(Clerk, name="clerk"):
        @tool
        async def wait(self) -> str:
            """Waits."""
            await gate.wait()
            return "waited"

    async with running(Waits, [call("place"), call("wait")], "There.", store=store) as stage:
        client = await stage.connect()
        await client.ask("hi", "q1", clientTools=PLACE)
        await client.until(lambda f: "tool-input-available" in str(f) and "call-2" in str(f))
        await stage.agent.add_tool_result("call-1", output={"city": "Oslo"})
        gate.set()
        await client.until_end("q1")
        await stage.agent.wait_until_stable()
        same(await replayed(store, Waits, "q1"))


class Verdict(BaseModel):
    good: bool


async def test_structured_output_that_was_asked_for_twice(store: SqliteStore):
    twice = Output(Verdict, retries=1)
    bad = [call("final_answer", {"good": "perhaps"})]
    steps = [bad, [call("final_answer", {"good": True})]]
    async with running(Clerk, *steps, store=store) as stage:
        result = await stage.agent.run("Is it?", output=twice)
        assert result.output == Verdict(good=True)
        same(await replayed(store, Clerk, result.request_id, output=twice))


async def test_structured_output_as_the_text_of_the_reply(store: SqliteStore):
    class Judge(Think, name="clerk"):
        """Has no tools."""

    twice = Output(Verdict, retries=1)

    async with running(Judge, '{"good": "perhaps"}', '{"good": true}', store=store) as stage:
        setattr(stage.model, "supports_response_format", True)  # noqa: B010 - as real models do
        result = await stage.agent.run("Is it?", output=twice)
        assert result.output == Verdict(good=True)
        same(await replayed(store, Judge, result.request_id, output=twice))


async def test_three_attempts_after_a_crash_in_a_tool_and_one_in_a_text(tmp_path: Path):
    digging, gate = asyncio.Event(), pause()

    class Long(Clerk, name="clerk"):
        @tool(effect="pure")
        async def dig(self) -> str:
            """Takes long the first time."""
            if not digging.is_set():
                digging.set()
                await asyncio.Event().wait()
            return "gold"

        @tool
        async def once(self) -> str:
            """May not run twice."""
            await asyncio.Event().wait()
            return ""

    store = SqliteStore(tmp_path / "t.db")
    calls = [call("look", {"what": "x"}), call("dig"), call("once")]
    async with running(Long, calls, store=store, drain=0) as stage:
        client = await stage.connect()
        await client.ask("dig", "q1")
        await digging.wait()
        await client.until(lambda f: "tool-output-available" in str(f))
    store = SqliteStore(tmp_path / "t.db")
    async with running(Long, [reasoning("so"), text("Half an"), gate], store=store, drain=0):
        await gate.reached()
    store = SqliteStore(tmp_path / "t.db")
    async with running(Long, " answer", store=store) as stage:
        await stage.agent.wait_until_stable()
        replay = await replayed(store, Long, "q1")
    assert replay.turn.attempt == 3
    same(replay)


async def test_a_model_that_failed_and_one_that_stalled(store: SqliteStore):
    class Patient(Clerk, name="clerk"):
        def before_turn(self, ctx: Any) -> TurnConfig:
            return TurnConfig(chat_stream_stall_timeout=0.05 if ctx.attempt == 0 else 0)

    busy = error(ModelError("busy", provider="p", retryable=True))
    steps = [[busy], [text("Half an"), pause()], " answer"]
    async with running(Patient, *steps, store=store) as stage:
        await asked(stage, "hi", "q1")
        same(await replayed(store, Patient, "q1"))


async def test_a_turn_that_failed(store: SqliteStore):
    fails = [text("Well"), error(ModelError("the model is gone", provider="p"))]
    async with running(Clerk, fails, store=store) as stage:
        await asked(stage, "hi", "q1")
        replay = await replayed(store, Clerk, "q1")
    same(replay)
    assert (replay.turn.status, replay.turn.error) == ("error", "the model is gone")


async def test_turns_that_were_stopped_in_a_text_and_in_a_tool(store: SqliteStore):
    began, gate = asyncio.Event(), pause()

    class Slow(Clerk, name="clerk"):
        @tool
        async def wait(self) -> str:
            """Waits for ever."""
            began.set()
            await asyncio.Event().wait()
            return ""

    steps = [[text("Half"), gate], [call("look", {"what": "x"}), call("wait")]]
    async with running(Slow, *steps, store=store) as stage:
        client = await stage.connect()
        await client.ask("hi", "q1")
        await gate.reached()
        await stage.agent.cancel_chat("q1")
        await client.until_end("q1")
        await client.ask("hi", "q2")
        await began.wait()
        await client.until(lambda f: "tool-output-available" in str(f))
        await stage.agent.cancel_chat("q2")
        await client.until_end("q2")
        await stage.agent.wait_until_stable()
        same(await replayed(store, Slow, "q1"))
        same(await replayed(store, Slow, "q2"))


async def test_hooks_that_changed_the_request_the_calls_and_the_reply(store: SqliteStore):
    class Changed(Clerk, name="clerk"):
        def before_turn(self, ctx: Any) -> TurnConfig:
            headers = {"x-team": "files", "Authorization": "Bearer s3cret"}
            return TurnConfig(system=f"{ctx.system} Briefly.", temperature=0.25, headers=headers)

        def before_step(self, ctx: Any) -> StepConfig | None:
            return StepConfig(tool_choice="none") if ctx.step_number else None

        def before_tool_call(self, ctx: Any) -> Any:
            what = ctx.input["what"]
            if what == "secret":
                return Block("not that")
            return Substitute({"known": 1}) if what == "known" else Allow({"what": what * 2})

        def on_tool_result(self, ctx: Any) -> Any:
            return {"result": {"wrapped": ctx.result}}

        def on_response(self, ctx: Any) -> Any:
            said = ctx.response
            if said.content is None:
                return None
            return {"response": said.__class__(content=said.content.upper())}

    calls = [call("look", {"what": what}) for what in ("x", "secret", "known")]
    async with running(Changed, calls, "done", store=store) as stage:
        await asked(stage, "hi", "q1")
        same(await replayed(store, Changed, "q1"))
        assert "s3cret" not in (await case_of(store, "q1")).to_json()
    assert Clerk.ran == ["xx"]
