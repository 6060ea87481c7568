"""What the hooks around a model call are shown and may give: `before_step` (alias `pre_request`)
and `on_response` (M-028, M-029; spec/02 §5.5, §5.7, §12.3).
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.turns.configured import Two
from tests.turns.support import part_of, running
from thinkwell import Output, Scope, StepConfig, TurnConfig
from thinkwell.hooks import ModelResponse, ResponseCall
from thinkwell.messages import TextContent, UserMessage
from thinkwell.models import ModelRequest, NamedTool
from thinkwell.testing import ScriptedModel, call, text

HI = UserMessage((TextContent("hi"),))


def give(response: Any) -> Any:
    return lambda _: {"response": response}


class TestAResponseGivenInPart:
    @pytest.mark.parametrize("response", [{"content": "B"}, {"content": "B", "reasoning": None}])
    async def test_5_7_the_text_changes_and_the_calls_stay(self, response: Any):
        async with running(Two, [text("A"), call("a", {"n": 3})], "done") as stage:
            stage.agent.add_hook(
                "on_response", lambda ctx: {"response": response} if ctx.response.calls else None
            )
            result = await stage.agent.run("go")
            assert result.status == "completed"
            assert stage.agent.seen == [(3, None)]
            parts = (await stage.answer())["parts"]
            assert [part["text"] for part in parts if part["type"] == "text"] == ["B", "done"]
            assert part_of(await stage.answer())["output"] == "a"

    async def test_002_the_pipeline_of_the_seed_trims_and_then_shouts(self):
        async with running(Two, [text("  fog ")]) as stage:
            for change in (str.strip, str.upper):
                stage.agent.add_hook(
                    "on_response",
                    lambda ctx, change=change: {
                        "response": {"content": change(ctx.response.content or "")}
                    },
                )
            assert (await stage.agent.run("go")).text == "FOG"

    @pytest.mark.parametrize("calls", [[], (), None])
    async def test_5_7_calls_are_dropped_when_they_are_named(self, calls: Any):
        async with running(Two, [text("A"), call("a")]) as stage:
            stage.agent.add_hook("on_response", give({"calls": calls}))
            result = await stage.agent.run("go")
            assert (result.text, result.status, stage.agent.seen) == ("A", "completed", [])

    @pytest.mark.parametrize(
        "made",
        [
            {"id": "c9", "name": "a", "arguments": '{"n": 9}'},
            {"id": "c9", "name": "a", "arguments": {"n": 9}},
            ResponseCall(id="c9", name="a", arguments='{"n": 9}'),
        ],
    )
    @pytest.mark.parametrize("whole", [True, False])
    async def test_12_3_calls_may_be_dicts(self, made: Any, whole: bool):
        response = ModelResponse(calls=[made]) if whole else {"calls": [made]}  # pyright: ignore[reportArgumentType] - a list of dicts is what people write
        async with running(Two, "A", "done") as stage:
            done: list[Any] = []

            def once(_: Any) -> Any:
                return None if done else done.append(1) or {"response": response}

            stage.agent.add_hook("on_response", once)
            await stage.agent.run("go")
            assert stage.agent.seen == [(9, None)]
            assert part_of(await stage.answer(), "c9")["output"] == "a"

    async def test_a_call_without_an_id_gets_one(self):
        async with running(Two, "done") as stage:
            answer = give({"calls": [{"name": "a", "arguments": {"n": 1}}]})
            stage.agent.add_hook("pre_request", lambda ctx: None if ctx.iteration else answer(ctx))
            result = await stage.agent.run("go")
            assert (result.text, stage.agent.seen) == ("done", [(1, None)])

    @pytest.mark.parametrize(
        ("response", "said"),
        [
            ("text", "a dict of the fields"),
            ({"contents": "B"}, "contents"),
            ({"calls": ["a"]}, '"name": "search"'),
            ({"calls": [{"name": "a", "arguments": 5}]}, '"name": "search"'),
        ],
    )
    async def test_what_is_no_response_fails_the_turn_and_says_what_to_write(
        self, response: Any, said: str
    ):
        async with running(Two, "A") as stage:
            stage.agent.add_hook("on_response", give(response))
            result = await stage.agent.run("go")
            assert result.status == "error"
            assert said in str(result.error)


class TestTheRequestIsWhatIsSent:
    async def test_5_5_1_with_what_scopes_say(self):
        seen: list[ModelRequest] = []
        async with running(Two, "ok") as stage:
            stage.agent.scopes.register(Scope("page", context="You are on /home."))
            stage.agent.scopes.register(
                Scope("user", context="Ann is signed in.", injection="user")
            )
            stage.agent.add_hook("pre_request", lambda ctx: seen.append(ctx.request))
            await stage.agent.run("go")
            (sent,) = stage.model.requests
            assert seen == [sent]
            assert sent.system.count("You are on /home.") == 1
            assert str(sent.messages).count("Ann is signed in.") == 1

    async def test_12_7_a_scope_is_said_once_after_every_kind_of_change(self):
        def change(given: Any) -> Any:
            return lambda ctx: given(ctx) if callable(given) else given

        async with running(Two, "ok") as stage:
            agent = stage.agent
            agent.scopes.register(Scope("page", context="You are on /home."))
            agent.add_hook("pre_request", change(StepConfig(system="S")))
            agent.add_hook("pre_request", change(StepConfig(temperature=0.5)))
            agent.add_hook("pre_request", change(lambda ctx: {"request": ctx.request}))
            agent.add_hook("pre_request", change(StepConfig(seed=3)))
            await agent.run("go")
            (sent,) = stage.model.requests
            assert sent.system == "S\n\n## page\nYou are on /home."
            assert (sent.temperature, sent.seed) == (0.5, 3)

    async def test_8_3_with_the_format_of_a_structured_output(self):
        class Native(ScriptedModel):
            supports_response_format = True

        seen: list[Any] = []
        async with running(Two) as stage:
            model = Native(['{"n": 1}'])
            output = Output(dict[str, int], mode="native")
            config = TurnConfig(model=model, output=output, active_tools=[])
            stage.agent.add_hook("before_turn", lambda _: config)
            stage.agent.add_hook("pre_request", lambda ctx: seen.append(ctx.request))
            result = await stage.agent.run("go")
            assert result.output == {"n": 1}
            assert seen == model.requests
            assert seen[0].response_format is not None

    async def test_002_the_cache_of_the_seed_answers_the_second_time(self):
        cache: dict[ModelRequest, ModelResponse] = {}

        def look(ctx: Any) -> Any:
            return {"response": cache[ctx.request]} if ctx.request in cache else None

        async with running(Two, "fog", "never asked") as stage:
            stage.agent.add_hook("pre_request", look)
            stage.agent.add_hook(
                "on_response", lambda ctx: cache.update({ctx.request: ctx.response})
            )
            config = TurnConfig(messages=[HI], provider_options={"x": {"y": [1]}})
            stage.agent.add_hook("before_turn", lambda _: config)
            first, second = [(await stage.agent.run("hi")).text for _ in range(2)]
            assert (first, second, len(stage.model.requests)) == ("fog", "fog", 1)

    def test_equal_requests_have_one_hash_and_others_another(self):
        request = ModelRequest(messages=(HI,), provider_options={"x": {"y": [1, {"z": 2}]}})
        same = ModelRequest(messages=(HI,), provider_options={"x": {"y": [1.0, {"z": 2}]}})
        other = msgspec.structs.replace(request, system="S")
        assert (request, hash(request)) == (same, hash(same))
        assert hash(request) != hash(other)
        held = msgspec.structs.replace(request, provider_options={"x": {1, 2}})
        assert hash(held) == hash(held)

    async def test_13_9_a_dict_without_messages_changes_the_fields_it_names(self):
        async with running(Two, "ok") as stage:
            request = {"system": "S", "temperature": 0.5, "tool_choice": {"tool_name": "b"}}
            stage.agent.add_hook("pre_request", lambda _: {"request": request})
            await stage.agent.run("hi")
            (sent,) = stage.model.requests
            assert (sent.system, sent.temperature) == ("S", 0.5)
            assert (sent.messages, sent.tool_choice) == ((HI,), NamedTool("b"))
            assert [spec.name for spec in sent.tools] == ["a", "b"]

    async def test_and_may_write_messages_as_everywhere(self):
        async with running(Two, "ok") as stage:
            request = {"messages": [{"role": "user", "content": "hi"}]}
            stage.agent.add_hook("pre_request", lambda _: {"request": request})
            await stage.agent.run("not this")
            assert stage.model.requests[0].messages == (HI,)

    async def test_a_field_that_no_request_has_fails_the_turn_and_is_named(self):
        async with running(Two, "ok") as stage:
            stage.agent.add_hook("pre_request", lambda _: {"request": {"sytem": "S"}})
            result = await stage.agent.run("hi")
            assert "sytem" in str(result.error)
