"""Every field of StepConfig takes effect, for one step or for the rest (spec/02 §5.5, §8.2)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.turns.support import part_of, running
from thinkwell import StepConfig, Think, ToolContext, TurnConfig, tool
from thinkwell.messages.model_messages import AssistantMessage, TextContent, UserMessage
from thinkwell.models.openai_chat import OpenAIChatModel
from thinkwell.testing import ScriptedModel, call
from thinkwell.testing.mock_provider import MockCall, MockProvider, Reply
from thinkwell.tools.output import Output


class Two(Think):
    seen: list[Any]

    async def on_start(self) -> None:
        self.seen = []

    @tool
    async def a(self, ctx: ToolContext) -> str:
        """One."""
        self.seen.append(ctx.runtime_context)
        return "a"

    @tool
    async def b(self) -> str:
        """Two."""
        return "b"


def at(step: int, config: Any) -> Any:
    """A hook that answers at one step only."""
    return lambda ctx: config if ctx.step_number == step else None


async def requests_of(hook: Any, *steps: Any) -> list[Any]:
    """What the model was sent in each step."""
    async with running(Two, *(steps or ([call("a")], [call("b")], "ok"))) as stage:
        stage.agent.add_hook("before_step", hook)
        assert (await stage.agent.run("hi")).status == "completed"
        return stage.model.requests


class TestOneStep:
    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("temperature", 0.0),
            ("top_p", 0.5),
            ("top_k", 3),
            ("presence_penalty", 0.1),
            ("frequency_penalty", 0.2),
            ("max_output_tokens", 9),
            ("stop_sequences", ("X",)),
            ("seed", 4),
            ("provider_options", {"p": {"x": 1}}),
            ("tool_choice", "required"),
        ],
    )
    async def test_8_1_sampling_and_choice_last_one_step(self, field: str, value: Any):
        before, during, after = await requests_of(at(1, {field: value}))
        assert getattr(during, field) == value
        assert getattr(before, field) == getattr(after, field) != value

    async def test_8_1_the_step_wins_over_the_turn_and_reaches_the_provider(self):
        replies = [Reply(calls=[MockCall(name="a")]), Reply(deltas=["ok"])]
        async with MockProvider(replies) as provider, running(Two) as stage:
            model = OpenAIChatModel("m", base_url=provider.base_url, api_key="k")
            setattr(stage.agent, "model", model)  # noqa: B010 - a class setting of one instance
            stage.agent.add_hook("before_turn", lambda _: TurnConfig(temperature=1.0, seed=5))
            stage.agent.add_hook("before_step", at(0, StepConfig(temperature=0.0)))
            await stage.agent.run("hi")
            await model.aclose()
        sent = [(r.body["temperature"], r.body["seed"]) for r in provider.requests]
        assert sent == [(0.0, 5), (1.0, 5)]

    async def test_5_3_3_a_zero_of_one_hook_survives_the_answer_of_the_next(self):
        async with running(Two, "ok") as stage:
            stage.agent.add_hook("before_turn", lambda _: {"temperature": 1.0})
            stage.agent.add_hook("before_step", lambda _: {"temperature": 0.0})
            stage.agent.add_hook("before_step", lambda _: {"seed": 1})
            await stage.agent.run("hi")
            assert stage.model.requests[0].temperature == 0.0

    async def test_8_1_provider_options_of_one_provider_are_merged(self):
        async with running(Two, "ok") as stage:
            stage.agent.add_hook("before_turn", lambda _: {"provider_options": {"p": {"a": 1}}})
            stage.agent.add_hook("before_step", lambda _: {"provider_options": {"p": {"b": 2}}})
            stage.agent.add_hook("before_step", lambda _: {"provider_options": {"p": {"a": 3}}})
            await stage.agent.run("hi")
            assert stage.model.requests[0].provider_options == {"p": {"a": 3, "b": 2}}

    async def test_5_5_5_a_model_given_by_name_is_resolved_and_lasts_one_step(self):
        other = ScriptedModel(["from the chain"])
        async with running(Two) as stage:
            stage.agent.add_hook("before_step", at(0, {"model": [other]}))
            assert (await stage.agent.run("hi")).text == "from the chain"

    async def test_8_1_active_tools_may_bring_back_what_an_earlier_hook_hid(self):
        async with running(Two, "ok") as stage:
            stage.agent.add_hook("before_step", lambda _: {"active_tools": []})
            stage.agent.add_hook("before_step", lambda _: {"active_tools": ["b"]})
            await stage.agent.run("hi")
            assert [t.name for t in stage.model.requests[0].tools] == ["b"]

    async def test_ac60_a_call_of_a_tool_that_is_not_active_in_this_step_is_unknown(self):
        async with running(Two, [call("b")], "ok") as stage:
            stage.agent.add_hook("before_step", at(0, {"active_tools": ["a"]}))
            await stage.agent.run("hi")
            assert "'b'" in part_of(await stage.answer())["errorText"]

    async def test_ac66_output_of_one_step_only(self):
        class Native(ScriptedModel):
            supports_response_format = True

        model = Native([[call("a")], '{"value":3}'])
        async with running(Two) as stage:
            setattr(stage.agent, "model", model)  # noqa: B010 - a class setting of one instance
            stage.agent.add_hook("before_step", at(1, {"output": Output(int, mode="native")}))
            result = await stage.agent.run("hi")
            first, second = model.requests
            assert (first.response_format, second.response_format is None) == (None, False)
            assert result.output == 3


class TestWhatStays:
    async def test_5_5_3_a_runtime_context_stays(self):
        async with running(Two, [call("a")], [call("a")], "ok") as stage:
            stage.agent.add_hook("before_step", at(0, StepConfig(runtime_context="mine")))
            await stage.agent.run("hi")
            assert stage.agent.seen == ["mine", "mine"]

    async def test_10_12_messages_that_end_with_an_answer_get_a_request_to_go_on(self):
        history = [UserMessage((TextContent("q"),)), AssistantMessage((TextContent("a"),))]
        (request,) = await requests_of(at(0, {"messages": history}), "ok")
        assert request.messages[:2] == tuple(history)
        assert isinstance(request.messages[2], UserMessage)

    async def test_a_request_is_replaced_for_one_step(self):
        def replace(ctx: Any) -> Any:
            if ctx.step_number == 1:
                return {"request": {"messages": ctx.messages[:1], "system": "Other."}}
            return None

        _, second, third = await requests_of(replace)
        assert (second.system, second.tools, len(second.messages)) == ("Other.", (), 1)
        assert (third.system == "Other.", len(third.tools)) == (False, 2)


class TestWhatItMayNotSay:
    @pytest.mark.parametrize("field", ["tools", "max_steps", "stop_when", "transforms", "headers"])
    async def test_8_2_a_field_of_the_turn_is_refused_and_the_right_ones_are_named(
        self, field: str
    ):
        async with running(Two, "never") as stage:
            stage.agent.add_hook("before_step", lambda _: {field: 1})
            result = await stage.agent.run("hi")
            assert result.status == "error"
            assert "StepConfig" in (result.error or "")
            assert "active_tools" in (result.error or "")

    async def test_5_5_1_remaining_steps_and_results_so_far(self):
        seen: list[Any] = []
        async with running(Two, [call("a")], "ok") as stage:
            stage.agent.add_hook(
                "before_step", lambda c: seen.append((c.remaining_steps, len(c.steps)))
            )
            await stage.agent.run("hi")
            assert seen == [(10, 0), (9, 1)]
