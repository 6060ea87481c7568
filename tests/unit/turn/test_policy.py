"""What becomes of an input that arrives while others run or wait (spec/02 §3.8, DESIGN §8.8)."""

from __future__ import annotations

from typing import Any

import pytest

from thinkwell.core.errors import ConfigurationError
from thinkwell.core.principal import Principal
from thinkwell.journal.turns import TurnRecord
from thinkwell.turn.ask.policy import STRATEGIES, Plan, Policy, plan_intake, read_policy
from thinkwell.turn.handle import TurnHandle

ADA, BOB = Principal(id="ada"), Principal(id="bob")


def waiting(**fields: Any) -> TurnHandle:
    row = {"agent_id": "a/x", "request_id": "q", "trigger": "ws-chat", "status": "accepted"}
    return TurnHandle(TurnRecord(**{**row, "generation": 0, **fields}))


class TestReading:
    @pytest.mark.parametrize("strategy", STRATEGIES)
    def test_a_name_is_a_policy(self, strategy: Any):
        assert read_policy(strategy) == Policy(strategy, 0.75) == Policy(strategy)

    @pytest.mark.parametrize(("wait", "seconds"), [(0, 0.0), (1, 0.001), (250.5, 0.2505)])
    def test_a_debounce_has_its_own_time(self, wait: float, seconds: float):
        policy = read_policy({"strategy": "debounce", "debounce_ms": wait})
        assert policy.debounce == pytest.approx(seconds)

    @pytest.mark.parametrize("wait", [-1, True, "soon", None])
    def test_an_invalid_time_is_the_default(self, wait: Any):
        assert read_policy({"strategy": "debounce", "debounce_ms": wait}).debounce == 0.75

    @pytest.mark.parametrize("value", ["first", {}, {"strategy": "first"}])
    def test_an_unknown_name_is_refused_with_the_known_ones(self, value: Any):
        with pytest.raises(ConfigurationError, match="queue, latest, merge, drop, debounce, steer"):
            read_policy(value)


class TestPlanning:
    def test_by_itself_a_plan_changes_nothing(self):
        plan = Plan()
        assert (plan.drop, plan.steer, plan.supersedes, plan.not_before) == (False, False, (), None)

    @pytest.mark.parametrize("strategy", STRATEGIES)
    def test_nothing_is_done_about_an_input_that_overlaps_nothing(self, strategy: Any):
        assert plan_intake(Policy(strategy), [], 100.0) == Plan()

    async def test_each_strategy_has_its_plan(self):
        line = [waiting(), second := waiting()]
        plans = {name: plan_intake(Policy(name, 2.0), line, 100.0) for name in STRATEGIES}
        assert plans == {
            "queue": Plan(),
            "drop": Plan(drop=True),
            "steer": Plan(steer=True),
            "latest": Plan(supersedes=(second,)),
            "merge": Plan(supersedes=(second,)),
            "debounce": Plan(supersedes=(second,), not_before=102.0),
        }

    async def test_the_first_in_line_is_superseded_only_while_it_is_debounced(self):
        runs, rests = waiting(), waiting(not_before=101.0)
        assert plan_intake(Policy("latest"), [runs], 100.0).supersedes == ()
        assert plan_intake(Policy("latest"), [rests], 100.0).supersedes == (rests,)

    @pytest.mark.parametrize("fields", [{"branch_from": "m1"}, {"trigger": "run"}])
    async def test_regenerates_and_turns_of_the_app_keep_their_place(self, fields: Any):
        line = [waiting(), waiting(**fields)]
        assert plan_intake(Policy("merge"), line, 100.0).supersedes == ()

    @pytest.mark.parametrize("trigger", ["ws-chat", "http-chat"])
    async def test_questions_of_the_socket_and_of_http_are_alike(self, trigger: str):
        line = [waiting(), asked := waiting(trigger=trigger)]
        assert plan_intake(Policy("merge"), line, 100.0).supersedes == (asked,)

    @pytest.mark.parametrize(("asks", "waits"), [(ADA, BOB), (ADA, None), (None, BOB)])
    async def test_nobody_takes_the_place_of_somebody_else(self, asks: Any, waits: Any):
        line = [waiting(), waiting(principal=waits)]
        assert plan_intake(Policy("latest"), line, 100.0, asks).supersedes == ()

    async def test_a_person_is_known_by_the_id_whatever_else_was_said(self):
        line = [waiting(), mine := waiting(principal=Principal(id="ada", claims={"role": "old"}))]
        assert plan_intake(Policy("latest"), line, 100.0, ADA).supersedes == (mine,)
