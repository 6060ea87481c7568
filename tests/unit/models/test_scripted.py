"""The scripted model: says what was written down and complains about the rest."""

import asyncio
from typing import Any

import pytest

from tests.unit.models.helpers import (
    calls_of,
    collect,
    failure_of,
    finish_of,
    reasoning_of,
    request,
    text_of,
)
from thinkwell.core.signal import AbortController
from thinkwell.models.base import Model, SourceUrl, TextDelta, TextStart
from thinkwell.testing import ScriptedModel, call, error, finish, pause, reasoning, text


class TestSteps:
    async def test_a_string_is_one_text_in_words(self):
        events = await collect(ScriptedModel(["Hello my  friend "]))
        deltas = [event.delta for event in events if isinstance(event, TextDelta)]
        assert deltas == ["Hello", " my", "  friend "]
        assert finish_of(events).reason == "stop"

    async def test_several_arguments_are_the_deltas_themselves(self):
        events = await collect(ScriptedModel([[text("Hel", "lo")]]))
        assert [e.delta for e in events if isinstance(e, TextDelta)] == ["Hel", "lo"]

    async def test_reasoning_text_and_calls_in_one_step(self):
        step = [reasoning("Hm"), "Wait.", call("f", {"a": 1}, id="c1"), call("g")]
        events = await collect(ScriptedModel([step]))
        assert (reasoning_of(events), text_of(events)) == ("Hm", "Wait.")
        assert calls_of(events) == [("c1", "f", '{"a":1}'), ("call-2", "g", "")]
        assert finish_of(events).reason == "tool-calls"

    async def test_arguments_may_be_bad_json_or_deltas(self):
        events = await collect(ScriptedModel([[call("f", "{oops"), call("f", ["{", "}"])]]))
        assert [arguments for _id, _name, arguments in calls_of(events)] == ["{oops", "{}"]

    async def test_call_ids_count_through_the_whole_script(self):
        model = ScriptedModel([[call("f")], [call("f")]])
        events = await collect(model) + await collect(model)
        assert [call_id for call_id, _name, _input in calls_of(events)] == ["call-1", "call-2"]

    async def test_an_error_ends_the_step(self):
        events = await collect(ScriptedModel([["A", error(ValueError("no"))]]))
        assert str(failure_of(events)) == "no"

    async def test_an_exception_alone_is_a_call_that_fails(self):
        events = await collect(ScriptedModel([RuntimeError("down")]))
        assert str(failure_of(events)) == "down"

    async def test_a_finish_replaces_the_reason(self):
        assert finish_of(await collect(ScriptedModel([["A", finish("length")]]))).reason == "length"

    async def test_plain_events_pass_through(self):
        source = SourceUrl("s1", "http://127.0.0.1/")
        assert source in await collect(ScriptedModel([[source]]))

    async def test_a_function_sees_the_request(self):
        model = ScriptedModel([lambda asked: f"{len(asked.messages)} message"])
        assert text_of(await collect(model)) == "1 message"

    async def test_a_function_that_raises_is_a_failure(self):
        model = ScriptedModel([lambda asked: asked.provider_options["nothing"]])
        assert isinstance(failure_of(await collect(model)), KeyError)

    async def test_a_function_that_gives_no_step_is_a_failure(self):
        model = ScriptedModel([lambda _: [5]])  # type: ignore[list-item, arg-type]
        assert "cannot hold 5" in str(failure_of(await collect(model)))

    @pytest.mark.parametrize("piece", [call("add"), text("done"), error(OSError("x"))])
    async def test_a_piece_alone_is_a_step_of_one(self, piece: Any):
        alone, listed = ScriptedModel([piece, "ok"]), ScriptedModel([[piece], "ok"])
        assert await collect(alone) == await collect(listed)
        assert text_of(await collect(alone)) == "ok"

    @pytest.mark.parametrize(
        "script",
        ["Hello there", None, 3, {"text": "x"}, [{"text": "x"}], [3], [b"x"], [[5]], [[["a"]]]],
    )
    def test_what_is_no_script_is_refused_when_it_is_made(self, script: Any):
        with pytest.raises(TypeError, match="Write one step for each call of the model"):
            ScriptedModel(script)

    def test_what_is_no_step_cannot_be_added(self):
        with pytest.raises(TypeError, match="Write one step for each call of the model"):
            ScriptedModel().add(3)  # type: ignore[arg-type]


class TestComplaints:
    async def test_a_call_too_many_fails_loudly(self):
        model = ScriptedModel(["only one"])
        await collect(model)
        problem = failure_of(await collect(model))
        assert isinstance(problem, AssertionError)
        assert "called 2 times but has only 1 steps" in str(problem)

    def test_steps_left_over_are_named(self):
        with pytest.raises(AssertionError, match=r"1 of 1 scripted steps .* 'unheard'"):
            ScriptedModel(["unheard"]).assert_complete()

    async def test_a_script_used_up_is_complete(self):
        model = ScriptedModel(["a"])
        model.add("b")
        await collect(model)
        await collect(model)
        model.assert_complete()

    async def test_requests_are_recorded(self):
        model = ScriptedModel(["a"])
        asked = request("hi")
        await collect(model, asked)
        assert model.requests == [asked]

    def test_it_is_a_model(self):
        assert isinstance(ScriptedModel(), Model)


class TestGates:
    async def test_the_stream_waits_at_the_gate_until_the_test_opens_it(self):
        gate, seen = pause(), []
        model = ScriptedModel([["before", gate, "after"]])

        async def read():
            async for event in model.stream(request(), AbortController().signal):
                seen.append(event)

        task = asyncio.create_task(read())
        await gate.reached()
        assert text_of(seen) == "before"
        gate.open()
        await task
        assert text_of(seen) == "beforeafter"

    async def test_an_abort_frees_a_stream_at_the_gate(self):
        gate, controller = pause(), AbortController()
        task = asyncio.create_task(
            collect(ScriptedModel([["A", gate, "B"]]), signal=controller.signal)
        )
        await gate.reached()
        controller.abort()
        events = await task
        assert text_of(events) == "A"
        assert isinstance(events[0], TextStart)
        assert len(events) == 3
