"""Every field of TurnConfig takes effect (spec/02 §8.1; AC60-AC64, AC91, AC93, AC94, AC96)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.turns.configured import Two, configured
from tests.turns.support import part_of, running
from thinkwell import TurnConfig
from thinkwell.core.errors import MaxStepsError
from thinkwell.messages.message import text_of
from thinkwell.models.base import NamedTool
from thinkwell.models.openai_chat import OpenAIChatModel
from thinkwell.store.sqlite import SqliteStore
from thinkwell.testing import ScriptedModel, call, reasoning, text
from thinkwell.testing.mock_provider import MockCall, MockProvider, Reply
from thinkwell.tools.stopping import has_tool_call, step_count_is


async def sent(config: Any, *replies: Reply) -> tuple[list[Any], Any]:
    """What the real adapter sends to a provider for a turn with this config."""
    async with MockProvider(list(replies) or [Reply(deltas=["ok"])]) as provider:
        model = OpenAIChatModel("m", base_url=provider.base_url, api_key="k")
        async with configured(config) as stage:
            setattr(stage.agent, "model", model)  # noqa: B010 - a class setting of one instance
            result = await stage.agent.run("hi")
        await model.aclose()
        return provider.requests, result


class TestProviderRequest:
    @pytest.mark.parametrize(
        ("field", "value", "sent_as"),
        [
            ("temperature", 0.0, {"temperature": 0.0}),
            ("top_p", 0.5, {"top_p": 0.5}),
            ("top_k", 7, {"top_k": 7}),
            ("presence_penalty", 0.1, {"presence_penalty": 0.1}),
            ("frequency_penalty", 0.2, {"frequency_penalty": 0.2}),
            ("max_output_tokens", 99, {"max_tokens": 99}),
            ("stop_sequences", ("END",), {"stop": ["END"]}),
            ("seed", 3, {"seed": 3}),
            ("provider_options", {"openai-chat": {"user": "u1"}}, {"user": "u1"}),
            ("provider_options", {"openai": {"user": "u1"}}, {"user": "u1"}),
            ("tool_choice", "required", {"tool_choice": "required"}),
            ("tool_choice", "none", {"tool_choice": "none"}),
        ],
    )
    async def test_8_1_a_setting_is_in_the_body(self, field: str, value: Any, sent_as: Any):
        (request,), result = await sent({field: value})
        assert result.status == "completed"
        assert sent_as.items() <= request.body.items()

    async def test_8_1_a_named_tool_choice_headers_and_system(self):
        config = TurnConfig(tool_choice=NamedTool("b"), headers={"x-team": "t"}, system="S")
        first, second = (
            await sent(
                config,
                Reply(calls=[MockCall(name="b")]),
                Reply(deltas=["ok"]),
            )
        )[0]
        for request in (first, second):
            assert request.body["tool_choice"]["function"] == {"name": "b"}
            assert request.headers["x-team"] == "t"
            assert request.body["messages"][0] == {"role": "system", "content": "S"}

    async def test_8_1_only_active_tools_are_sent(self):
        (request,), _ = await sent({"active_tools": ["b"]})
        assert [t["function"]["name"] for t in request.body["tools"]] == ["b"]

    async def test_nothing_is_sent_that_nobody_set(self):
        (request,), _ = await sent(None)
        known = {"model", "messages", "stream", "stream_options", "tools"}
        assert set(request.body) == known


class TestMerging:
    async def test_004_a_header_without_a_value_is_not_sent(self):
        async with configured({"headers": {"a": "1", "b": "2"}}, "ok") as stage:
            stage.agent.add_hook("before_turn", lambda _: {"headers": {"b": None, "c": None}})
            await stage.agent.run("hi")
            assert dict(stage.model.requests[0].headers) == {"a": "1"}

    async def test_ac93_the_last_given_value_wins_and_each_hook_sees_the_one_before(self):
        seen: list[Any] = []

        def choose(value: float | None) -> Any:
            def hook(ctx: Any) -> Any:
                seen.append(ctx.config.temperature)
                return None if value is None else {"temperature": value}

            return hook

        class First(Two):
            def before_turn(self, ctx: Any) -> Any:
                return choose(1)(ctx)

        async with running(First, "ok") as stage:
            for value in (2, None, 3):
                stage.agent.add_hook("before_turn", choose(value))
            await stage.agent.run("hi")
            assert stage.model.requests[0].temperature == 3
            assert seen == [None, 1, 2, 2]

    async def test_ac94_headers_options_conditions_and_transforms_are_joined(self):
        async with running(Two, [call("a")], [call("b")], "never") as stage:
            agent = stage.agent
            options = {"p": {"x": 1}}, {"p": {"y": 2}}
            for index, name in enumerate("ab"):
                config = TurnConfig(
                    headers={name: "1"},
                    provider_options=options[index],
                    stop_when=has_tool_call("b") if name == "b" else has_tool_call("zzz"),
                )
                agent.add_hook("before_turn", lambda _, config=config: config)
            result = await agent.run("hi")
            assert result.stop_reason == "stop_when"
            request = stage.model.requests[0]
            assert dict(request.headers) == {"a": "1", "b": "1"}
            assert request.provider_options == {"p": {"x": 1, "y": 2}}

    async def test_5_5_5_a_model_is_resolved_before_the_next_hook_sees_it(self):
        other = ScriptedModel(["other"])
        seen: list[Any] = []
        async with running(Two) as stage:
            stage.agent.add_hook("before_turn", lambda _: {"model": [other]})
            stage.agent.add_hook("before_turn", lambda ctx: seen.append(ctx.model))
            await stage.agent.run("hi")
            assert hasattr(seen[0], "stream")


class TestSteps:
    async def test_ac63_has_tool_call_stops_and_a_condition_that_never_holds_does_not(self):
        async with configured({"stop_when": has_tool_call("b")}, [call("b")]) as stage:
            result = await stage.agent.run("hi")
            assert (result.stop_reason, result.steps) == ("stop_when", 1)
        never = {"stop_when": [has_tool_call("zzz"), step_count_is(9)], "max_steps": 2}
        async with configured(never, [call("a")], [call("a")]) as stage:
            assert (await stage.agent.run("hi")).stop_reason == "max_steps"

    async def test_8_1_a_condition_may_be_async_and_one_that_raises_fails_the_turn(self):
        async def yes(steps: Any) -> bool:
            return len(steps) == 1

        async with configured({"stop_when": yes}, [call("a")]) as stage:
            assert (await stage.agent.run("hi")).stop_reason == "stop_when"

        def broken(_: Any) -> bool:
            raise RuntimeError("condition")

        async with configured({"stop_when": broken}, [call("a")]) as stage:
            result = await stage.agent.run("hi")
            assert (result.status, result.error) == ("error", "condition")

    async def test_ac64_error_at_the_cap_after_both_tools_ran(self):
        errors: list[Any] = []
        config = {"max_steps": 2, "on_max_steps": "error"}
        async with configured(config, [call("a")], [call("b")]) as stage:
            stage.agent.add_hook("on_chat_error", lambda e, _: errors.append(e))
            result = await stage.agent.run("hi")
            (problem,) = errors
            assert isinstance(problem, MaxStepsError)
            assert (result.status, problem.steps) == ("error", 2)
            assert part_of(await stage.answer(), "call-2")["output"] == "b"

    async def test_ac64_one_more_step_without_tools_gives_the_answer(self):
        config = {"max_steps": 1, "on_max_steps": "answer", "tool_choice": "required"}
        async with configured(config, [call("a")], "in words") as stage:
            result = await stage.agent.run("hi")
            assert (result.text, result.steps) == ("in words", 2)
            last = stage.model.requests[1]
            assert (last.tools, last.tool_choice) == ((), "auto")

    async def test_ac64_a_call_in_the_extra_step_is_unknown_and_ends_the_turn(self):
        config = {"max_steps": 1, "on_max_steps": "answer"}
        async with configured(config, [call("a")], [call("a")]) as stage:
            result = await stage.agent.run("hi")
            assert (result.status, result.stop_reason, result.steps) == (
                *("completed", "max_steps"),
                2,
            )

    async def test_ac06_sequential_runs_one_call_after_the_other(self):
        order: list[str] = []
        config = {"tool_execution": "sequential"}
        async with configured(config, [call("a"), call("b")], "ok") as stage:
            stage.agent.add_hook("before_tool_call", lambda c: order.append(f"B {c.tool_name}"))
            stage.agent.add_hook("after_tool_call", lambda c: order.append(f"A {c.tool_name}"))
            await stage.agent.run("hi")
            assert order == ["B a", "A a", "B b", "A b"]

    async def test_8_1_runtime_context_reaches_tools_and_before_step(self):
        thing = object()
        async with configured(TurnConfig(runtime_context=thing), [call("a")], "ok") as stage:
            seen: list[Any] = []
            stage.agent.add_hook("before_step", lambda ctx: seen.append(ctx.runtime_context))
            await stage.agent.run("hi")
            assert (stage.agent.seen, seen) == ([(0, thing)], [thing, thing])


class TestReasoning:
    STEP = (reasoning("let me see"), text("42"))

    @pytest.mark.parametrize(("send", "store"), [(True, True), (True, False), (False, True)])
    async def test_ac62_ac91_who_sees_reasoning(self, send: bool, store: bool):
        class Chosen(Two):
            store_reasoning = store

        observed: list[str] = []
        async with configured({"send_reasoning": send}, self.STEP, "again", cls=Chosen) as stage:
            client = await stage.connect()
            stage.agent.add_hook("on_chunk", lambda ctx: observed.append(ctx.chunk["type"]))
            await client.ask("hi")
            await client.until_end()
            told = [c for c in client.chunks() if c["type"].startswith("reasoning")]
            assert (bool(told), "reasoning-delta" in observed) == (send, True)
            kinds = [part["type"] for part in (await stage.answer())["parts"]]
            assert ("reasoning" in kinds) == store
            if not send:
                assert "let me see" not in str(client.frames)

    async def test_ac91_hidden_reasoning_stays_hidden_after_a_restart(self, tmp_path: Path):
        file = tmp_path / "x.db"
        hide = {"send_reasoning": False}
        async with configured(hide, self.STEP, store=SqliteStore(file)) as stage:
            await stage.agent.run("hi")
        async with configured(hide, "more", store=SqliteStore(file)) as stage:
            client = await stage.connect()
            await client.ask("and?")
            await client.until_end()
            assert "let me see" not in str(client.frames)
            assert "let me see" in str(await stage.messages())

    async def test_ac91_a_client_that_sends_its_list_back_does_not_change_the_stored_answer(self):
        async with configured({"send_reasoning": False}, self.STEP, "more") as stage:
            client = await stage.connect()
            await client.ask("hi")
            await client.until_end()
            shown = client.transcript()
            again = [*shown, {"id": "u2", "role": "user", "parts": [{"type": "text", "text": "?"}]}]
            await client.request("q2", messages=again)
            await client.until_end("q2")
            assert "let me see" in str(await stage.messages())
            assert [m["role"] for m in await stage.messages()] == ["user", "assistant"] * 2


class TestTransforms:
    async def test_8_1_transforms_run_in_order_before_hooks_storage_and_clients(self):
        def shout(chunk: Any) -> Any:
            if chunk["type"] == "text-delta":
                return {**chunk, "delta": chunk["delta"].upper()}
            return chunk

        def keep_text(chunk: Any) -> Any:
            return None if chunk["type"].startswith("reasoning") else chunk

        observed: list[Any] = []
        step = (reasoning("hm"), text("loud"))
        async with configured({"transforms": [shout, keep_text]}, step) as stage:
            client = await stage.connect()
            stage.agent.add_hook("on_chunk", lambda ctx: observed.append(dict(ctx.chunk)))
            await client.ask("hi")
            await client.until_end()
            assert text_of(await stage.answer()) == "LOUD"
            assert client.chunks() == observed
            assert "hm" not in str(await stage.answer())


class TestRepair:
    async def test_9_13_ac23_a_mended_call_runs_once_and_the_policy_sees_the_mended_input(self):
        asked: list[Any] = []

        def mend(context: Any) -> Any:
            asked.append(context.tool_call.input)
            return context.tool_call.corrected(input={"n": 5})

        async with configured({"repair_tool_call": mend}, [call("a", '{"n":"x"}')], "ok") as stage:
            seen: list[Any] = []
            stage.agent.add_hook("before_tool_call", lambda ctx: seen.append(dict(ctx.input)))
            await stage.agent.run("hi")
            assert (asked, seen) == (['{"n":"x"}'], [{"n": 5}])
            assert stage.agent.seen == [(5, None)]

    async def test_9_13_a_mended_name_runs_the_right_tool(self):
        def mend(context: Any) -> Any:
            return context.tool_call.corrected(tool_name="b")

        async with configured({"repair_tool_call": mend}, [call("B")], "ok") as stage:
            assert (await stage.agent.run("hi")).text == "ok"
            part = part_of(await stage.answer())
            assert (part["type"], part["output"]) == ("tool-b", "b")

    @pytest.mark.parametrize("answer", [None, {"input": "still no json"}, RuntimeError("x")])
    async def test_9_13_ac24_a_call_that_cannot_be_mended_is_a_tool_error(self, answer: Any):
        def mend(_: Any) -> Any:
            if isinstance(answer, Exception):
                raise answer
            return answer

        async with configured({"repair_tool_call": mend}, [call("a", "{no")], "ok") as stage:
            assert (await stage.agent.run("hi")).text == "ok"
            assert part_of(await stage.answer())["state"] == "output-error"
            assert stage.agent.seen == []
