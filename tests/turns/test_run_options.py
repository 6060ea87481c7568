"""`run(input, output=, model=, body=, tools=, max_steps=)` and what its result says."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pydantic import BaseModel

from tests.turns.support import part_of, running, untyped
from thinkwell import App, Output, Think, TurnConfig, TurnResult, create_agent, tool
from thinkwell.core import json
from thinkwell.core.errors import (
    AbortTurn,
    ConfigurationError,
    HostClosedError,
    ToolDefinitionError,
    TurnFailedError,
)
from thinkwell.journal.turns import find_turn
from thinkwell.messages.message import text_of
from thinkwell.store.sqlite import SqliteStore
from thinkwell.testing import ScriptedModel, call, error, pause, text
from thinkwell.tools.output import FINAL_ANSWER
from thinkwell.tools.tool import as_tool


class City(BaseModel):
    name: str
    people: int = 0


ROME = {"name": "Rome", "people": 3}
GIVES_ROME = [call(FINAL_ANSWER, ROME)]


class Guide(Think):
    body: Any = None

    def before_turn(self, ctx: Any) -> None:
        self.body = ctx.body

    @tool
    async def look_up(self) -> str:
        """Looks something up."""
        return "found"

    @tool(needs_approval=True)
    async def risky(self) -> str:
        """Needs a person."""
        return "done"


def double(number: int) -> int:
    """Doubles a number."""
    return number * 2


class TestOutput:
    async def test_the_answer_is_an_object_of_the_type_that_was_asked_for(self):
        async with running(Guide, GIVES_ROME, GIVES_ROME, "Rome.") as stage:
            result = await stage.agent.run("which?", output=City)
            again = await stage.agent.run("which?", output=Output(City, name="place"))
            plain = await stage.agent.run("which?")
        assert result.output == again.output == City(name="Rome", people=3)
        assert plain.output is None
        assert result.raise_for_status() is result

    async def test_a_type_that_is_no_object_and_a_schema_work_too(self):
        replies = [call(FINAL_ANSWER, {"value": [1, 2]})], GIVES_ROME
        async with running(Guide, *replies) as stage:
            assert (await stage.agent.run("which?", output=list[int])).output == [1, 2]
            schema = City.model_json_schema()
            assert (await stage.agent.run("which?", output=schema)).output == ROME

    async def test_no_hook_puts_another_type_into_the_result(self):
        async with running(Guide, GIVES_ROME) as stage:
            stage.agent.add_hook("before_turn", lambda _: TurnConfig(output=Output(int)))
            assert (await stage.agent.run("which?", output=City)).output == City(**ROME)

    async def test_an_output_that_is_not_there_is_never_read_as_none(self):
        async with running(Guide, [error(RuntimeError("down"))], [call("risky")]) as stage:
            failed = await stage.agent.run("which?", output=City, model=stage.model)
            waits = await stage.agent.run("which?", output=City)
            nothing = await stage.agent.run("", output=City)
        for result, why in ((failed, "down"), (waits, "waits .approval."), (nothing, "nothing")):
            with pytest.raises(TurnFailedError, match=why):
                _ = result.output
            with pytest.raises(TurnFailedError, match=why):
                result.raise_for_status()
        assert waits.status == "completed"

    async def test_an_answer_that_a_person_allowed_goes_on_to_the_same_output(self):
        replies = [call("risky", id="call-1")], GIVES_ROME
        async with running(Guide, *replies) as stage:
            await stage.agent.run("which?", output=City)
            await stage.agent.respond_to_approval("call-1", True)
            await stage.agent.wait_until_stable()
        assert FINAL_ANSWER in [t.name for t in stage.model.requests[1].tools]


class TestModel:
    async def test_an_object_or_a_name_answers_this_turn_only(self):
        async with running(Guide, "the usual") as stage:
            other = ScriptedModel(["another"])
            assert (await stage.agent.run("hi", model=other)).text == "another"
            assert "You said" in (await stage.agent.run("hello", model="demo")).text
            assert (await stage.agent.run("hi")).text == "the usual"

    @pytest.mark.parametrize("model", ["openai-chat", 7, Guide])
    async def test_what_is_no_model_is_refused_before_anything_is_stored(self, model: Any):
        async with running(Guide) as stage:
            with pytest.raises(ConfigurationError, match="model"):
                await stage.agent.run("hi", model=model)
            assert await stage.messages() == []

    async def test_before_turn_has_the_last_word(self):
        async with running(Guide) as stage:
            policy = ScriptedModel(["the policy's"])
            stage.agent.add_hook("before_turn", lambda _: TurnConfig(model=policy))
            result = await stage.agent.run("hi", model=ScriptedModel(["the caller's"]))
        assert result.text == "the policy's"


class TestTools:
    @pytest.mark.parametrize("tools", [[double], [as_tool(double)], {"double": double}])
    async def test_functions_and_tools_are_there_for_this_turn(self, tools: Any):
        replies = [call("double", {"number": 4})], "8", "none"
        async with running(Guide, *replies) as stage:
            result = await stage.agent.run("4?", tools=tools)
            await stage.agent.run("again?")
        assert result.steps == 2
        offered = [[t.name for t in request.tools] for request in stage.model.requests]
        assert ["double" in names for names in offered] == [True, True, False]

    async def test_the_names_of_a_mapping_are_what_the_model_sees(self):
        async with running(Guide, [call("twice", {"number": 4})], "8") as stage:
            result = await stage.agent.run("4?", tools={"twice": double})
        assert result.message is not None
        assert [p["output"] for p in result.message["parts"] if "output" in p] == [8]

    async def test_a_name_that_is_taken_fails_the_turn_and_names_both(self):
        async with running(Guide) as stage:
            result = await stage.agent.run("hi", tools={"look_up": double})
        assert "run(tools=...) brings a tool named 'look_up'" in (result.error or "")

    @pytest.mark.parametrize("tools", [double, "double", [double, double], ["double"]])
    async def test_what_is_no_list_of_tools_is_refused(self, tools: Any):
        async with running(Guide) as stage:
            with pytest.raises(ToolDefinitionError):
                await stage.agent.run("hi", tools=tools)

    async def test_a_call_that_a_person_allows_later_still_finds_its_tool(self):
        @tool(needs_approval=True)
        def pay(amount: int) -> str:
            """Pays."""
            return f"paid {amount}"

        replies = [call("pay", {"amount": 5}, id="call-1")], "Paid."
        async with running(Guide, *replies) as stage:
            await stage.agent.run("pay", tools=[pay])
            await stage.agent.respond_to_approval("call-1", True)
            await stage.agent.wait_until_stable()
            answer = await stage.answer()
        assert [p["output"] for p in answer["parts"] if "output" in p] == ["paid 5"]


class TestTheRest:
    async def test_a_cap_of_steps_holds_for_this_turn(self):
        replies = [call("look_up")], [call("look_up")], "done"
        async with running(Guide, *replies) as stage:
            capped = await stage.agent.run("hi", max_steps=1)
            free = await stage.agent.run("hi")
        assert (capped.stop_reason, capped.steps) == ("max_steps", 1)
        assert (free.stop_reason, free.steps) == ("end", 2)

    @pytest.mark.parametrize("steps", [0, -1, "many", 1.5, True])
    async def test_no_cap_below_one(self, steps: Any):
        async with running(Guide) as stage:
            with pytest.raises(ConfigurationError, match="max_steps"):
                await stage.agent.run("hi", max_steps=steps)

    async def test_hooks_read_the_body(self):
        async with running(Guide, "ok") as stage:
            await stage.agent.run("hi", body={"city": "Oslo"})
            assert dict(stage.agent.body) == {"city": "Oslo"}

    @pytest.mark.parametrize("body", ["Oslo", {"at": object()}, {1: 2}])
    async def test_a_body_that_cannot_be_stored_is_refused(self, body: Any):
        async with running(Guide) as stage:
            with pytest.raises(ConfigurationError, match="body"):
                await stage.agent.run("hi", body=body)

    async def test_stubs_and_agents_without_a_class_take_the_same(self):
        class Clerk(Think):
            model = ScriptedModel([])

        async with App(agents=[Clerk], store="sqlite://:memory:") as app:
            stub = app.agent(Clerk)
            result = await stub.run("which?", output=City, model=ScriptedModel([GIVES_ROME]))
            assert result.output.name == "Rome"
        async with create_agent(model=ScriptedModel([])) as agent:
            result = await agent.run("which?", output=City, model=ScriptedModel([GIVES_ROME]))
            assert result.output.name == "Rome"


class TestRaiseForStatus:
    async def test_a_turn_that_failed_or_was_stopped_raises_and_says_why(self):
        class Stops(Guide):
            def before_turn(self, ctx: Any) -> None:
                if ctx.body == {"stop": True}:
                    raise AbortTurn("enough")

        async with running(Stops, [error(RuntimeError("the line is dead"))]) as stage:
            failed = await stage.agent.run("hi", max_steps=1)
            stopped = await stage.agent.run("hi", body={"stop": True})
        with pytest.raises(TurnFailedError, match="the line is dead") as caught:
            failed.raise_for_status()
        assert caught.value.request_id == failed.request_id
        assert (caught.value.status, caught.value.error) == ("error", failed.error)
        with pytest.raises(TurnFailedError, match="stopped"):
            stopped.raise_for_status()

    async def test_a_steered_turn_says_that_another_message_is_answered(self):
        gate = pause()
        async with running(Guide, [call("look_up"), gate], "on it") as stage:
            asked = asyncio.ensure_future(stage.agent.run("which?", output=City))
            await gate.reached()
            await stage.agent.steer("wait")
            gate.open()
            result = await asked
            await stage.agent.wait_until_stable()
        assert (result.status, result.stop_reason) == ("completed", "steered")
        with pytest.raises(TurnFailedError, match="a later message steered it") as caught:
            _ = result.output
        assert "waits" not in str(caught.value)
        with pytest.raises(TurnFailedError, match="a later message steered it"):
            result.raise_for_status()

    def test_a_result_can_be_made_with_an_output_and_shows_it_under_its_name(self):
        result = TurnResult(request_id="r", status="completed", message=None, output=3)
        assert (result.output, result.raise_for_status().output) == (3, 3)
        assert "output=3" in repr(result)
        assert "_output" not in repr(result)
        assert msgspec.structs.asdict(result)["output"] == 3
        assert msgspec.structs.replace(result, output=4).output == 4

    def test_a_result_is_json_as_it_was(self):
        result: TurnResult[Any] = TurnResult(request_id="r", status="completed", message=None)
        assert json.loads(json.dumps(result))["output"] is None


class TestWhatIsStored:
    async def test_a_clear_takes_it_away(self, tmp_path: Path):
        store = SqliteStore(str(tmp_path / "a.db"))
        async with running(Guide, GIVES_ROME, store=store) as stage:
            result = await stage.agent.run("which?", output=City, max_steps=3)
            row = await find_turn(store, "guide/x", result.request_id)
            assert row is not None
            assert row.chosen is not None
            assert row.chosen.max_steps == 3
            await stage.agent.clear_messages()
            row = await find_turn(store, "guide/x", result.request_id)
            assert row is not None
            assert row.chosen is None

    async def test_a_stopped_host_keeps_what_was_said_and_tells_what_is_lost(self, tmp_path: Path):
        file, gate = str(tmp_path / "a.db"), pause()
        replies = [text("Half an answer"), gate]
        async with running(Guide, replies, store=SqliteStore(file), drain=0.01) as stage:
            asked = asyncio.create_task(stage.agent.run("hi", tools=[double]))
            await gate.reached()
            (record,) = [handle.record for handle in untyped(stage)._turns.handles()]
        with pytest.raises(HostClosedError):
            await asked
        async with running(Guide, store=SqliteStore(file)) as stage:
            await stage.agent.wait_until_stable()
            turn = await stage.agent.get_turn(record.request_id)
            assert (turn.status, "the tool 'double'" in (turn.error or "")) == ("error", True)
            assert text_of(await stage.answer()) == "Half an answer"


class TestGoingOn:
    """Whoever goes on with an answer goes on as it was asked for."""

    async def test_continue_last_turn_keeps_what_is_stored_of_it(self):
        async with running(Guide, "Rome has", GIVES_ROME) as stage:
            first = await stage.agent.run("which?", output=City, max_steps=1)
            assert first.status == "error"  # it told, but did not give, what was asked for
            going_on = await stage.agent.continue_last_turn()
            assert going_on.output == City(name="Rome", people=3)

    async def test_and_the_functions_as_long_as_their_process_lives(self):
        async with running(Guide, "Half", [call("double", {"number": 2})], "4") as stage:
            await stage.agent.run("twice 2?", tools=[double])
            going_on = await stage.agent.continue_last_turn()
            assert going_on.status == "completed"
            assert part_of(await stage.answer())["output"] == 4

    async def test_without_them_it_fails_and_says_what_is_lost(self, tmp_path: Path):
        file = str(tmp_path / "a.db")
        async with running(Guide, "Half", store=SqliteStore(file)) as stage:
            await stage.agent.run("twice 2?", tools=[double])
        async with running(Guide, "never asked", store=SqliteStore(file)) as stage:
            going_on = await stage.agent.continue_last_turn()
            assert "the tool 'double'" in (going_on.error or "")

    async def test_a_question_of_its_own_is_asked_without_it(self):
        async with running(Guide, GIVES_ROME, "Paris.") as stage:
            await stage.agent.run("which?", output=City)
            assert (await stage.agent.run("and now?")).output is None
