"""What before_turn and before_step may change (spec/02 §5.3, §5.5, §8; AC60, AC61, AC63, AC68)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.turns.support import part_of, running
from thinkwell import StepConfig, Think, TurnConfig, tool
from thinkwell.messages.model_messages import TextContent, UserMessage
from thinkwell.models.base import NamedTool
from thinkwell.testing import ScriptedModel, call
from thinkwell.tools.tool import as_tool
from thinkwell.turn.run.assemble import with_capabilities


class Two(Think):
    system_prompt = "Be kind."

    @tool
    async def a(self) -> str:
        """One."""
        return "a"

    @tool
    async def b(self) -> str:
        """Two."""
        return "b"


def said(words: str) -> UserMessage:
    return UserMessage((TextContent(words),))


async def ask(config: Any, *steps: Any, cls: type[Think] = Two) -> tuple[Any, ScriptedModel]:
    """Run a turn whose before_turn returns `config`; its answer, and the model."""
    async with running(cls, *steps) as stage:
        stage.agent.add_hook("before_turn", lambda _: config)
        result = await stage.agent.run("hi")
        return result, stage.model


class TestTurnConfig:
    async def test_ac60_an_inactive_tool_is_not_offered_and_counts_as_unknown(self):
        result, model = await ask(TurnConfig(active_tools=["a"]), [call("b")], "ok")
        assert [t.name for t in model.requests[0].tools] == ["a"]
        assert "'b'" in part_of(result.message)["errorText"]
        assert part_of(result.message)["state"] == "output-error"

    async def test_8_1_no_active_tools_means_none_and_unknown_names_are_ignored(self):
        _, model = await ask(TurnConfig(active_tools=[]), "ok")
        assert model.requests[0].tools == ()
        _, model = await ask({"active_tools": ["b", "zzz"]}, "ok")
        assert [t.name for t in model.requests[0].tools] == ["b"]

    async def test_ac61_another_system_prompt_is_sent_exactly_and_the_hook_saw_the_old_one(self):
        seen: list[str] = []
        async with running(Two, "ok") as stage:
            stage.agent.add_hook("before_turn", lambda ctx: seen.append(ctx.system))
            stage.agent.add_hook("before_turn", lambda _: {"system": "Be brief."})
            stage.agent.add_hook("before_turn", lambda ctx: seen.append(ctx.system))
            await stage.agent.run("hi")
            assert stage.model.requests[0].system == "Be brief."
            assert seen == [with_capabilities("Be kind.", ["a", "b"]), "Be brief."]

    async def test_8_1_messages_replace_the_conversation(self):
        _, model = await ask(TurnConfig(messages=[said("something else")]), "ok")
        assert model.requests[0].messages == (said("something else"),)

    async def test_8_1_a_tool_of_the_hook_is_added_and_runs(self):
        async def c() -> str:
            """Three."""
            return "c"

        result, model = await ask(TurnConfig(tools={"c": as_tool(c)}), [call("c")], "ok")
        assert [t.name for t in model.requests[0].tools] == ["a", "b", "c"]
        assert part_of(result.message)["output"] == "c"

    async def test_8_1_another_model_answers(self):
        other = ScriptedModel(["from the other"])
        result, model = await ask(TurnConfig(model=other))
        assert (result.text, model.requests) == ("from the other", [])

    async def test_8_1_sampling_headers_and_choice_reach_every_step(self):
        config = TurnConfig(
            temperature=0.5,
            seed=7,
            stop_sequences=("END",),
            headers={"x-a": "1"},
            provider_options={"openai": {"user": "u"}},
            tool_choice=NamedTool("a"),
        )
        _, model = await ask(config, [call("a")], "ok")
        for request in model.requests:
            assert (request.temperature, request.seed) == (0.5, 7)
            assert request.stop_sequences == ("END",)
            assert (dict(request.headers), request.tool_choice) == ({"x-a": "1"}, NamedTool("a"))
            assert request.provider_options == {"openai": {"user": "u"}}

    @pytest.mark.parametrize("junk", [42, "text", ["a"], {"temprature": 1}])
    async def test_an_answer_nobody_understands_fails_the_turn_and_says_what_fits(self, junk: Any):
        result, model = await ask(junk, "never")
        assert (result.status, model.requests) == ("error", [])
        assert "TurnConfig" in (result.error or "")


class TestSteps:
    async def test_ac63_the_turn_stops_at_max_steps_with_its_tools_settled(self):
        result, model = await ask({"max_steps": 2}, [call("a")], [call("b")])
        assert (result.status, result.stop_reason, result.steps) == ("completed", "max_steps", 2)
        assert part_of(result.message, "call-2")["output"] == "b"
        assert len(model.requests) == 2

    async def test_ac63_the_class_sets_the_limit_too(self):
        class One(Two):
            max_steps = 1

        result, _ = await ask(None, [call("a")], cls=One)
        assert (result.stop_reason, result.steps) == ("max_steps", 1)

    async def test_ac68_messages_stay_for_later_steps_and_temperature_does_not(self):
        def choose(ctx: Any) -> Any:
            if ctx.step_number == 1:
                return StepConfig(messages=[said("replaced")], temperature=0.9)
            return None

        async with running(Two, [call("a")], [call("b")], "ok") as stage:
            stage.agent.add_hook("before_step", choose)
            await stage.agent.run("hi")
            _, second, third = stage.model.requests
            assert second.messages[0] == third.messages[0] == said("replaced")
            assert len(third.messages) == 3
            assert (second.temperature, third.temperature) == (0.9, None)

    async def test_5_5_3_a_system_prompt_of_a_step_stays_for_later_steps(self):
        def choose(ctx: Any) -> Any:
            return {"system": "From now on."} if ctx.step_number == 1 else None

        async with running(Two, [call("a")], [call("b")], "ok") as stage:
            stage.agent.add_hook("before_step", choose)
            await stage.agent.run("hi")
            assert [r.system for r in stage.model.requests] == [
                *(with_capabilities("Be kind.", ["a", "b"]), "From now on.", "From now on.")
            ]

    async def test_8_1_active_tools_choice_and_model_of_a_step_last_one_step(self):
        other = ScriptedModel([[call("a")]])

        def choose(ctx: Any) -> Any:
            if ctx.step_number == 0:
                return {"active_tools": ["a"], "tool_choice": "required", "model": other}
            return None

        async with running(Two, "ok") as stage:
            stage.agent.add_hook("before_step", choose)
            assert (await stage.agent.run("hi")).text == "ok"
            (first,), (second,) = other.requests, stage.model.requests
            assert ([t.name for t in first.tools], first.tool_choice) == (["a"], "required")
            assert ([t.name for t in second.tools], second.tool_choice) == (["a", "b"], "auto")

    async def test_5_0_4_a_later_hook_of_a_step_sees_what_an_earlier_one_changed(self):
        seen: list[Any] = []
        async with running(Two, "ok") as stage:
            stage.agent.add_hook("before_step", lambda _: {"system": "Changed."})
            stage.agent.add_hook("before_step", lambda ctx: seen.append(ctx.system))
            await stage.agent.run("hi")
            assert seen == ["Changed."]

    async def test_8_1_provider_options_of_a_step_are_merged_over_those_of_the_turn(self):
        async with running(Two, "ok") as stage:
            stage.agent.add_hook("before_turn", lambda _: {"provider_options": {"x": {"a": 1}}})
            stage.agent.add_hook("before_step", lambda _: {"provider_options": {"y": {"b": 2}}})
            await stage.agent.run("hi")
            assert stage.model.requests[0].provider_options == {"x": {"a": 1}, "y": {"b": 2}}

    async def test_a_before_step_that_raises_fails_the_turn_at_stage_step(self):
        def broken(ctx: Any) -> None:
            if ctx.step_number == 1:
                raise RuntimeError("no second step")

        async with running(Two, [call("a")], "never") as stage:
            stage.agent.add_hook("before_step", broken)
            result = await stage.agent.run("hi")
            assert (result.status, result.error) == ("error", "no second step")
            assert stage.fields("chat:request:failed")[0]["stage"] == "step"
            assert part_of(await stage.answer())["output"] == "a"


class TestDefaults:
    async def test_prompt_model_and_tools_may_be_made_for_each_turn(self):
        class Made(Think):
            async def get_system_prompt(self) -> str:
                return f"I am {self.name}."

            async def get_tools(self) -> Any:
                async def c() -> str:
                    """Three."""
                    return "c"

                return {"c": c}

        async with running(Made, "ok") as stage:
            await stage.agent.run("hi")
            (request,) = stage.model.requests
            assert (request.system, [t.name for t in request.tools]) == (
                with_capabilities("I am x.", ["c"]),
                ["c"],
            )
