"""Structured output of a turn (spec/02 §8.3, §8.4; AC65, AC66)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from tests.turns.support import Stage, running, until_event, untyped
from thinkwell import Think, TurnConfig, tool
from thinkwell.core import json
from thinkwell.core.errors import StoreUnavailableError
from thinkwell.messages.message import text_of
from thinkwell.models.base import NamedTool
from thinkwell.models.openai_chat import OpenAIChatModel
from thinkwell.store.sqlite import SqliteStore
from thinkwell.testing import ScriptedModel, call, error
from thinkwell.testing.mock_provider import MockProvider, Reply
from thinkwell.tools.output import FINAL_ANSWER, Output
from thinkwell.tools.tool import as_tool


class City(BaseModel):
    name: str
    people: int


class Plain(Think):
    """Has no tools."""


class WithTool(Think):
    ran: int = 0

    @tool
    async def look_up(self) -> str:
        """Looks something up."""
        self.ran += 1
        return "found"

    @tool(needs_approval=True)
    async def risky(self) -> str:
        """Needs a person."""
        return "done"


class Native(ScriptedModel):
    """A model that can be bound to a schema."""

    supports_response_format = True


ROME = {"name": "Rome", "people": 3}
TOOL = Output(City, mode="tool")


def wants(stage: Stage[Any], output: Any, **more: Any) -> None:
    """Ask for structured output in every turn."""
    stage.agent.add_hook("before_turn", lambda _: TurnConfig(output=output, **more))


def give(stage: Stage[Any], model: Any) -> Any:
    """Let another model answer."""
    setattr(stage.agent, "model", model)  # noqa: B010 - a class setting, given to one instance
    return model


class EndsBadly:
    """A store that does not take the end of a turn."""

    def __init__(self, inner: SqliteStore) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Any]:
        async with self._inner.transaction() as tx:
            yield Refusing(tx)


class Refusing:
    def __init__(self, tx: Any) -> None:
        self._tx = tx

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)

    async def execute(self, query: str, params: Any, /) -> int:
        if query == "settle_turn":
            raise StoreUnavailableError("the disk is full")
        return await self._tx.execute(query, params)


class TestNative:
    async def test_8_3_the_schema_reaches_the_provider_and_the_result_is_typed(self):
        replies = [Reply(deltas=[json.dumps(ROME)])]
        async with MockProvider(replies) as provider, running(Plain) as stage:
            model = give(stage, OpenAIChatModel("m", base_url=provider.base_url, api_key="k"))
            wants(stage, Output(City))
            result = await stage.agent.run("hi")
            await model.aclose()
        assert result.output == City(name="Rome", people=3)
        sent = provider.requests[0].body["response_format"]
        assert (sent["type"], sent["json_schema"]["name"]) == ("json_schema", "City")
        assert sent["json_schema"]["schema"]["required"] == ["name", "people"]

    async def test_8_3_auto_takes_the_hidden_tool_while_tools_are_active(self):
        async with running(WithTool) as stage:
            model = give(stage, Native([[call(FINAL_ANSWER, ROME)]]))
            wants(stage, Output(City))
            assert (await stage.agent.run("hi")).output == City(**ROME)
            assert model.requests[0].response_format is None

    @pytest.mark.parametrize("answer", ["no json", '{"name":1}', ""])
    async def test_8_4_an_answer_that_does_not_fit_fails_at_stage_output_and_stays(
        self, answer: str
    ):
        async with running(Plain) as stage:
            give(stage, Native([answer or []]))
            wants(stage, Output(City))
            result = await stage.agent.run("hi")
            assert (result.status, result.output) == ("error", None)
            assert stage.fields("chat:request:failed")[0]["stage"] == "output"
            stored = [text_of(m) for m in await stage.messages() if m["role"] == "assistant"]
            assert stored == ([answer] if answer else [])

    async def test_8_4_a_retry_tells_the_model_what_was_wrong(self):
        async with running(Plain) as stage:
            model = give(stage, Native(['{"name":"Rome"}', json.dumps(ROME)]))
            wants(stage, Output(City, retries=1))
            result = await stage.agent.run("hi")
            assert (result.output, result.steps) == (City(**ROME), 2)
            assert "people" in str(model.requests[1].messages[-1])


class TestTool:
    async def test_ac65_the_input_is_the_result_and_nobody_sees_the_tool(self):
        seen: list[str] = []
        async with running(WithTool, [call("look_up")], [call(FINAL_ANSWER, ROME)]) as stage:
            client = await stage.connect()
            for event in ("on_chunk", "before_tool_call", "after_tool_call"):
                stage.agent.add_hook(event, lambda ctx: seen.append(str(ctx)))
            stage.agent.add_hook("on_response", lambda ctx: seen.append(str(ctx.response)))
            stage.agent.add_hook("on_step_finish", lambda ctx: seen.append(str(ctx.content)))
            stage.agent.add_hook("on_message", lambda ctx: seen.append(str(ctx.message)))
            wants(stage, TOOL)
            result = await stage.agent.run("hi")
            assert (result.output, result.stop_reason) == (City(**ROME), "end")
            assert "Rome" not in f"{seen} {client.frames}"
            assert FINAL_ANSWER not in str(await stage.messages())
            assert stage.agent.ran == 1

    async def test_ac65_a_message_with_nothing_else_is_not_stored(self):
        async with running(Plain, [call(FINAL_ANSWER, ROME)]) as stage:
            wants(stage, TOOL)
            result = await stage.agent.run("hi")
            assert (result.output, result.message) == (City(**ROME), None)
            assert [m["role"] for m in await stage.messages()] == ["user"]

    async def test_8_3_the_choice_is_required_or_the_tool_itself_and_the_callers_wins(self):
        async with running(Plain, *[[call(FINAL_ANSWER, ROME)]] * 2) as stage:
            wants(stage, TOOL)
            await stage.agent.run("hi")
            assert stage.model.requests[0].tool_choice == NamedTool(FINAL_ANSWER)
            assert FINAL_ANSWER in stage.model.requests[0].system
        async with running(WithTool, *[[call(FINAL_ANSWER, ROME)]] * 2) as stage:
            wants(stage, TOOL)
            await stage.agent.run("hi")
            assert stage.model.requests[0].tool_choice == "required"
            wants(stage, TOOL, tool_choice="none")
            await stage.agent.run("hi")
            assert stage.model.requests[1].tool_choice == "none"

    async def test_8_3_it_stays_callable_under_active_tools(self):
        async with running(WithTool, [call(FINAL_ANSWER, ROME)]) as stage:
            wants(stage, TOOL, active_tools=[])
            assert (await stage.agent.run("hi")).output == City(**ROME)

    async def test_8_3_it_is_forced_on_the_last_permitted_step(self):
        steps = [call("look_up")], [call(FINAL_ANSWER, ROME)]
        async with running(WithTool, *steps) as stage:
            wants(stage, TOOL, max_steps=2)
            assert (await stage.agent.run("hi")).output == City(**ROME)
            first, last = stage.model.requests
            assert (first.tool_choice, last.tool_choice) == ("required", NamedTool(FINAL_ANSWER))

    async def test_8_3_its_name_gives_way_to_a_tool_of_that_name(self):
        async def final_answer() -> str:
            """Taken."""
            return "own"

        own = as_tool(final_answer)
        async with running(Plain, [call("final_answer_1", ROME)]) as stage:
            wants(stage, TOOL, tools={"final_answer": own})
            assert (await stage.agent.run("hi")).output == City(**ROME)

    @pytest.mark.parametrize("step", ["just words", [call(FINAL_ANSWER, {"name": 1})]])
    async def test_ac65_never_called_or_called_wrongly_is_an_output_error(self, step: Any):
        async with running(WithTool, step) as stage:
            wants(stage, TOOL)
            assert (await stage.agent.run("hi")).status == "error"
            assert stage.fields("chat:request:failed")[0]["stage"] == "output"

    async def test_8_4_a_retry_asks_again(self):
        steps = "words", [call(FINAL_ANSWER, "{no json")], [call(FINAL_ANSWER, ROME)]
        async with running(WithTool, *steps) as stage:
            wants(stage, Output(City, mode="tool", retries=2))
            assert (await stage.agent.run("hi")).output == City(**ROME)


class TestAroundIt:
    async def test_a_turn_that_waits_for_a_person_owes_no_output_yet(self):
        async with running(WithTool, [call("risky")], [call(FINAL_ANSWER, ROME)]) as stage:
            wants(stage, TOOL)
            result = await stage.agent.run("hi")
            assert (result.status, result.stop_reason) == ("completed", "approval")
            assert result.output is None

    async def test_a_response_of_a_hook_is_read_as_text(self):
        async with running(Plain) as stage:
            wants(stage, TOOL)
            stage.agent.add_hook(
                "before_step", lambda _: {"response": {"content": json.dumps(ROME)}}
            )
            assert (await stage.agent.run("hi")).output == City(**ROME)

    async def test_a_rewritten_response_keeps_the_final_answer(self):
        async with running(Plain, ["words", call(FINAL_ANSWER, ROME)]) as stage:
            wants(stage, TOOL)
            stage.agent.add_hook("on_response", lambda _: {"response": {"content": "other"}})
            result = await stage.agent.run("hi")
            assert (result.output, result.text) == (City(**ROME), "other")

    async def test_2_32_the_hooks_of_the_end_see_the_output(self):
        seen: list[Any] = []
        async with running(Plain, [call(FINAL_ANSWER, ROME)]) as stage:
            wants(stage, TOOL)
            stage.agent.add_hook("on_chat_done", lambda ctx: seen.append(ctx.output))
            stage.agent.add_hook("on_chat_response", lambda ctx: seen.append(ctx.output))
            await stage.agent.run("hi")
            assert seen == [City(**ROME)] * 2

    async def test_the_output_is_stored_with_the_turn(self, tmp_path: Path):
        store = SqliteStore(tmp_path / "x.db")
        async with running(Plain, [call(FINAL_ANSWER, ROME)], store=store) as stage:
            wants(stage, TOOL)
            result = await stage.agent.run("hi")
            record = await untyped(stage)._turns.find(result.request_id)
            assert record is not None
            assert record.output == ROME

    async def test_the_output_survives_a_process_that_died_before_the_end_was_stored(
        self, tmp_path: Path
    ):
        told: list[Any] = []

        class Remembers(Plain):
            def before_turn(self, ctx: Any) -> Any:
                return TurnConfig(output=TOOL)

            def on_chat_done(self, ctx: Any) -> Any:
                told.append(ctx.output)

        file = tmp_path / "x.db"
        store: Any = EndsBadly(SqliteStore(file))
        steps = [call(FINAL_ANSWER, ROME)]
        async with running(Remembers, steps, store=store, drain=0) as stage:
            request_id = (await stage.agent.submit("hi")).request_id
            await until_event(stage, "store:failing")
        async with running(Remembers, store=SqliteStore(file)) as stage:
            await untyped(stage)._turns.wait_until_idle()
            assert (await stage.agent.get_turn(request_id)).status == "completed"
            assert (told[-1:], stage.model.requests) == ([ROME], [])

    async def test_a_failed_model_call_says_nothing_about_the_output(self):
        async with running(Plain, [error(RuntimeError("down"))]) as stage:
            wants(stage, TOOL)
            assert (await stage.agent.run("hi")).error == "down"


class TestPrompted:
    """For models that have neither response formats nor tools."""

    @pytest.mark.parametrize(
        "answer",
        [
            json.dumps(ROME),
            f"```json\n{json.dumps(ROME)}\n```",
            f"Here it is:\n\n```\n{json.dumps(ROME)}\n```\nAnything else?",
        ],
    )
    async def test_the_schema_is_in_the_prompt_and_the_text_is_the_answer(self, answer: str):
        async with running(WithTool, answer) as stage:
            result = await stage.agent.run("Rome?", output=Output(City, mode="prompted"))
            assert result.output == City(name="Rome", people=3)
            (request,) = stage.model.requests
            assert '"people"' in request.system
            assert [tool.name for tool in request.tools] == ["look_up", "risky"]
            assert (request.tool_choice, request.response_format) == ("auto", None)

    async def test_what_does_not_fit_is_asked_for_again(self):
        async with running(Plain, "Rome, of course.", json.dumps(ROME)) as stage:
            output = Output(City, mode="prompted", retries=1)
            result = await stage.agent.run("Rome?", output=output)
            assert result.output == City(name="Rome", people=3)
            assert "required form" in str(stage.model.requests[-1].messages[-1])
