"""What may begin when: the pure decision about one call, and the line that is fair (DESIGN §9)."""

from __future__ import annotations

from typing import Any, cast

import pytest

from thinkwell import ModelLimits
from thinkwell.core.errors import ConfigurationError
from thinkwell.messages.model_messages import (
    AssistantMessage,
    FileContent,
    TextContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
)
from thinkwell.models.base import ModelRequest, ToolSpec
from thinkwell.models.fair_queue import FairQueue
from thinkwell.models.limits import LONGEST_PAUSE, Allowance, Hold, estimate_tokens
from thinkwell.models.retry_after import retry_hint, used_up_for


def begun(limits: ModelLimits, calls: int, now: float = 0.0, tokens: float = 0.0) -> Allowance:
    left = Allowance.full(limits, now)
    for _ in range(calls):
        assert left.hold(limits, now, tokens) is None
        left = left.begun(limits, now, tokens)
    return left


class TestParallelCalls:
    def test_as_many_run_as_the_limit_says_and_the_next_waits_for_an_end(self):
        limits = ModelLimits(parallel=2)
        left = begun(limits, 2)
        assert left.hold(limits, 0.0, 0.0) == Hold("parallel")
        assert left.ended(limits, 1.0, 0.0).hold(limits, 1.0, 0.0) is None


class TestRequestsPerMinute:
    def test_a_minutes_worth_may_begin_at_once_and_then_one_by_one(self):
        limits = ModelLimits(requests_per_minute=60)
        left = begun(limits, 60)
        assert left.hold(limits, 0.0, 0.0) == Hold("requests", 1.0)
        assert left.hold(limits, 1.0, 0.0) is None
        left = left.begun(limits, 1.0, 0.0)
        assert left.hold(limits, 1.0, 0.0) == Hold("requests", 2.0)

    def test_a_quiet_hour_saves_no_more_than_a_minutes_worth(self):
        limits = ModelLimits(requests_per_minute=2)
        left = begun(limits, 2).later(limits, 3600.0)
        assert left.requests == 2

    def test_less_than_one_a_minute_still_lets_one_through(self):
        limits = ModelLimits(requests_per_minute=0.5)
        assert Allowance.full(limits, 0.0).hold(limits, 0.0, 0.0) is None
        assert begun(limits, 1).hold(limits, 0.0, 0.0) == Hold("requests", 120.0)

    def test_a_clock_that_goes_back_gives_nothing_and_takes_nothing(self):
        limits = ModelLimits(requests_per_minute=1)
        left = begun(limits, 1, now=100.0)
        assert left.later(limits, 50.0) == left


class TestTokensPerMinute:
    def test_the_estimate_is_taken_and_corrected_by_what_was_used(self):
        limits = ModelLimits(tokens_per_minute=1000)
        left = begun(limits, 1, tokens=100)
        assert left.tokens == 900
        assert left.ended(limits, 0.0, 700).tokens == 200
        assert left.ended(limits, 0.0, -60).tokens == 960

    def test_an_overdrawn_bucket_holds_calls_until_there_is_enough(self):
        limits = ModelLimits(tokens_per_minute=600)
        left = begun(limits, 1, tokens=100).ended(limits, 0.0, 800)  # 300 below nothing
        assert left.hold(limits, 0.0, 100) == Hold("tokens", 40.0)
        assert left.hold(limits, 40.0, 100) is None

    def test_a_call_that_is_larger_than_the_bucket_begins_when_it_is_full(self):
        limits = ModelLimits(tokens_per_minute=600)
        assert Allowance.full(limits, 0.0).hold(limits, 0.0, 5000) is None
        assert begun(limits, 1, tokens=60).hold(limits, 0.0, 5000) == Hold("tokens", 6.0)

    def test_texts_tools_and_their_results_are_counted_and_files_are_not(self):
        file = FileContent(url="data:image/png;base64," + "A" * 10_000, media_type="image/png")
        request = ModelRequest(
            system="x" * 400,
            messages=(
                UserMessage(content=(TextContent("y" * 400), file)),
                AssistantMessage(content=(ToolCallContent("c", "t", {"q": "z" * 396}),)),
                ToolMessage(content=(ToolResultContent("c", "t", "json", ["w" * 398, 1]),)),
            ),
            tools=(ToolSpec("t", "d" * 400, {}),),
        )
        assert 490 <= estimate_tokens(request) <= 510


class TestProvidersThatRefuse:
    def test_a_refusal_pauses_everybody_as_long_as_the_provider_asks(self):
        limits = ModelLimits()
        left = begun(limits, 3).refused(10.0, 7.0)
        assert left.hold(limits, 16.9, 0.0) == Hold("provider", 17.0)
        assert left.hold(limits, 17.0, 0.0) is None

    def test_after_the_pause_one_goes_ahead_and_the_others_follow_its_answer(self):
        limits = ModelLimits()
        left = Allowance.full(limits, 0.0).refused(0.0, 5.0).begun(limits, 5.0, 0.0)
        assert left.hold(limits, 5.0, 0.0) == Hold("provider")
        assert left.tried(answered=True).hold(limits, 5.0, 0.0) is None

    def test_one_that_ends_without_an_answer_lets_the_next_go_ahead(self):
        limits = ModelLimits()
        left = Allowance.full(limits, 0.0).refused(0.0, 5.0).begun(limits, 5.0, 0.0)
        left = left.tried(answered=False)
        assert left.hold(limits, 5.0, 0.0) is None
        assert left.begun(limits, 5.0, 0.0).hold(limits, 5.0, 0.0) == Hold("provider")

    def test_without_a_hint_pauses_double_and_what_was_refused_together_counts_once(self):
        left = Allowance.full(ModelLimits(), 0.0)
        pauses: list[float] = []
        for _ in range(4):
            now = left.paused_until
            left = left.refused(now, None).refused(now, None)
            pauses.append(left.paused_until - now)
        assert pauses == [1.0, 2.0, 4.0, 8.0]

    def test_nobody_waits_longer_than_a_minute_because_of_a_header(self):
        left = Allowance.full(ModelLimits(), 0.0)
        assert left.refused(0.0, 86_400.0).paused_until == LONGEST_PAUSE
        assert left.used_up(0.0, 86_400.0).paused_until == LONGEST_PAUSE


class TestHeaders:
    def test_only_a_limit_with_nothing_left_says_when_to_come_back(self):
        openai = {
            "X-RateLimit-Remaining-Requests": "0",
            "X-RateLimit-Reset-Requests": "1m30s",
            "X-RateLimit-Remaining-Tokens": "149984",
            "X-RateLimit-Reset-Tokens": "6h",
        }
        assert used_up_for(openai, 0.0) == 90.0
        assert used_up_for({**openai, "X-RateLimit-Remaining-Requests": "1"}, 0.0) is None

    def test_anthropic_tells_a_time(self):
        found = {
            "anthropic-ratelimit-output-tokens-remaining": "0",
            "anthropic-ratelimit-output-tokens-reset": "1970-01-01T00:01:05Z",
        }
        assert used_up_for(found, 60.0) == 5.0
        assert retry_hint(found, 60.0) == 5.0
        assert used_up_for({**found, "anthropic-ratelimit-output-tokens-reset": "soon"}, 0) is None


class TestWhatIsNoLimit:
    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ({"parallel": 0}, "parallel=0"),
            ({"parallel": 1.5}, "parallel=1.5"),
            ({"requests_per_minute": True}, "requests_per_minute=True"),
            ({"tokens_per_minute": -1}, "tokens_per_minute=-1"),
            ({"when_full": "queue"}, 'one of "wait", "next", "error"'),
            ({"per": "user"}, 'one of "model", "key"'),
        ],
    )
    def test_the_error_names_it_and_what_to_give(self, given: dict[str, object], said: str):
        with pytest.raises(ConfigurationError, match=said.replace("(", r"\(")):
            ModelLimits(**cast("Any", given))

    def test_a_misspelled_field_is_named(self):
        with pytest.raises(TypeError, match="requests_per_minute"):
            ModelLimits(**cast("Any", {"request_per_minute": 3}))


class TestTheLine:
    def test_those_who_wait_are_served_in_turn_and_each_in_order(self):
        queue: FairQueue[str] = FairQueue()
        for item in ("a1", "a2", "a3", "b1", "b2", "c1"):
            queue.put(item[0], item)
        assert [queue.take() for _ in range(6)] == ["a1", "b1", "c1", "a2", "b2", "a3"]
        assert queue.first() is None

    def test_whoever_comes_later_goes_to_the_end_of_the_round(self):
        queue: FairQueue[str] = FairQueue()
        for item in ("a1", "a2", "b1", "b2"):
            queue.put(item[0], item)
        assert queue.take() == "a1"
        queue.put("c", "c1")
        assert [queue.take() for _ in range(4)] == ["b1", "a2", "c1", "b2"]

    def test_whoever_leaves_is_not_served(self):
        queue: FairQueue[str] = FairQueue()
        for item in ("a1", "a2", "b1"):
            queue.put(item[0], item)
        assert queue.remove("a", "a1")
        assert not queue.remove("a", "a1")
        assert len(queue) == 2
        assert [queue.take(), queue.take()] == ["a2", "b1"]
