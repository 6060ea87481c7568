"""Failed model calls that are tried again (spec/02 §8.1, §11.3, §11.6; DESIGN §8.6)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.turns.support import Stage, running, untyped
from thinkwell import Think
from thinkwell.core.errors import ModelError
from thinkwell.messages.message import text_of
from thinkwell.models.openai_chat import OpenAIChatModel
from thinkwell.testing import error, reasoning
from thinkwell.testing.mock_provider import MockProvider, RawReply, Reply

BUSY = ModelError("busy", provider="p", retryable=True)
WRONG = ModelError("wrong", provider="p", retryable=False)


class Plain(Think):
    pass


def without_waiting(stage: Stage[Any], random: float = 1.0) -> list[float]:
    """Let retries wait for nothing; gives the seconds they would have waited."""
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    turns = untyped(stage)._turns  # the one place where time can be replaced
    parts = msgspec.structs.replace(turns.parts, sleep=sleep, random=lambda: random)
    turns.wire(parts)
    return waited


class TestRetries:
    async def test_8_1_two_retries_by_default_with_full_jitter_under_a_growing_limit(self):
        async with running(Plain, [error(BUSY)], [error(BUSY)], "at last") as stage:
            waited = without_waiting(stage, random=0.5)
            result = await stage.agent.run("hi")
            assert (result.text, waited) == ("at last", [0.5, 1.0])
            assert result.steps == 1

    async def test_a_quota_that_is_used_up_is_not_tried_again(self):
        spent = ModelError("no", status=429, code="insufficient_quota", retryable=True)
        async with running(Plain, [error(spent)]) as stage:
            assert (await stage.agent.run("hi")).status == "error"
            assert len(stage.model.requests) == 1

    async def test_whom_the_provider_told_when_to_come_back_comes_a_little_later(self):
        busy = ModelError("busy", retryable=True, retry_after=7.0)
        async with running(Plain, [error(busy)], "ok") as stage:
            waited = without_waiting(stage, random=0.5)
            assert (await stage.agent.run("hi")).text == "ok"
            assert waited == [7.5]

    async def test_on_chat_error_is_told_the_kind_of_error_without_any_hook_for_it(self):
        told: list[Any] = []
        long = ModelError("prompt is too long: 5 tokens > 4 maximum", status=400)
        async with running(Plain, [error(long)]) as stage:
            stage.agent.add_hook("on_chat_error", lambda ctx: told.append(ctx.classification))
            await stage.agent.run("hi")
            assert told == ["context_overflow"]

    @pytest.mark.parametrize(("retries", "calls"), [(0, 1), (1, 2), (3, 4)])
    async def test_8_1_max_retries_of_the_turn_bounds_the_calls(self, retries: int, calls: int):
        async with running(Plain, *([error(BUSY)] for _ in range(5))) as stage:
            without_waiting(stage)
            stage.agent.add_hook("before_turn", lambda _: {"max_retries": retries})
            assert (await stage.agent.run("hi")).status == "error"
            assert len(stage.model.requests) == calls

    async def test_8_1_the_class_may_turn_retries_off(self):
        class Impatient(Plain):
            max_retries = 0

        async with running(Impatient, [error(BUSY)]) as stage:
            assert (await stage.agent.run("hi")).error == "busy"

    async def test_11_6_an_error_that_would_come_again_is_not_tried_again(self):
        async with running(Plain, [error(WRONG)]) as stage:
            assert (await stage.agent.run("hi")).error == "wrong"
            assert len(stage.model.requests) == 1

    async def test_11_6_nothing_is_tried_again_once_something_was_said(self):
        async with running(Plain, ["par", error(BUSY)]) as stage:
            assert (await stage.agent.run("hi")).status == "error"
            assert (text_of(await stage.answer()), len(stage.model.requests)) == ("par", 1)

    async def test_11_6_hidden_reasoning_counts_as_said(self):
        class Quiet(Plain):
            send_reasoning = False

        async with running(Quiet, [reasoning("hm"), error(BUSY)]) as stage:
            assert (await stage.agent.run("hi")).status == "error"
            assert len(stage.model.requests) == 1

    async def test_a_stop_while_a_retry_waits_ends_the_turn(self):
        async with running(Plain, [error(BUSY)], "never") as stage:
            turns = untyped(stage)._turns

            async def stop(_: float) -> None:
                await stage.agent.cancel_chat()

            turns.wire(msgspec.structs.replace(turns.parts, sleep=stop))
            assert (await stage.agent.run("hi")).status == "aborted"


class TestClassification:
    @pytest.mark.parametrize("kind", ["transient", "rate_limit"])
    async def test_11_6_a_classified_error_is_tried_again(self, kind: Any):
        async with running(Plain, [error(RuntimeError("odd"))], "ok") as stage:
            without_waiting(stage)
            stage.agent.add_hook("classify_chat_error", lambda *_: kind)
            assert (await stage.agent.run("hi")).text == "ok"

    @pytest.mark.parametrize("kind", ["fatal", "unknown", "context_overflow"])
    async def test_11_6_the_hook_may_forbid_a_retry(self, kind: Any):
        told: list[Any] = []
        async with running(Plain, [error(BUSY)]) as stage:
            stage.agent.add_hook("classify_chat_error", lambda *_: kind)
            stage.agent.add_hook("on_chat_error", lambda ctx: told.append(ctx.classification))
            assert (await stage.agent.run("hi")).status == "error"
            assert (told, len(stage.model.requests)) == ([kind], 1)

    async def test_11_3_one_failed_event_with_the_classification_whatever_was_tried(self):
        async with running(Plain, *([error(BUSY)] for _ in range(3))) as stage:
            without_waiting(stage)
            stage.agent.add_hook("classify_chat_error", lambda *_: "transient")
            await stage.agent.run("hi")
            (failed,) = stage.fields("chat:request:failed")
            assert (failed["classification"], failed["stage"]) == ("transient", "stream")


class TestRealProvider:
    async def test_a_busy_provider_is_asked_again(self):
        busy = RawReply(status=503, content_type="application/json", chunks=[b'{"error":{}}'])
        async with MockProvider([busy, Reply(deltas=["ok"])]) as provider:
            model = OpenAIChatModel("m", base_url=provider.base_url, api_key="k")
            async with running(Plain) as stage:
                setattr(stage.agent, "model", model)  # noqa: B010 - a setting of one instance
                without_waiting(stage)
                assert (await stage.agent.run("hi")).text == "ok"
            await model.aclose()
