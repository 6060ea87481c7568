"""Conditions that end a turn (spec/02 §8.1 `stop_when`, AC63, AC94)."""

from types import SimpleNamespace

import pytest

from thinkwell.core.errors import ConfigurationError
from thinkwell.tools import has_tool_call, step_count_is
from thinkwell.tools.stopping import should_stop


def step(*names: str):
    return SimpleNamespace(tool_calls=tuple(SimpleNamespace(tool_name=name) for name in names))


class TestStepCount:
    @pytest.mark.parametrize(("steps", "stops"), [(0, False), (1, False), (2, True), (3, True)])
    async def test_it_holds_from_that_many_steps_on(self, steps, stops):
        assert await should_stop(step_count_is(2), [step()] * steps) is stops

    def test_a_count_that_never_comes_is_refused(self):
        with pytest.raises(ConfigurationError):
            step_count_is(0)


class TestToolCalls:
    async def test_only_the_last_step_counts(self):
        assert await should_stop(has_tool_call("done"), [step("a"), step("b", "done")])
        assert not await should_stop(has_tool_call("done"), [step("done"), step("a")])

    async def test_any_of_the_names_is_enough(self):
        assert await should_stop(has_tool_call("done", "give_up"), [step("give_up")])

    async def test_before_the_first_step_it_does_not_hold(self):
        assert not await should_stop(has_tool_call("done"), [])

    def test_no_name_is_refused(self):
        with pytest.raises(ConfigurationError):
            has_tool_call()


class TestSeveral:
    async def test_none_and_an_empty_list_never_stop(self):
        assert not await should_stop(None, [step()])
        assert not await should_stop([], [step()])

    async def test_one_of_several_is_enough_and_later_ones_are_not_asked(self):
        asked = []

        def condition(name, answer):
            return lambda steps: asked.append(name) or answer

        conditions = [condition("a", False), condition("b", True), condition("c", True)]
        assert await should_stop(conditions, [step()])
        assert asked == ["a", "b"]

    async def test_an_async_condition_is_awaited(self):
        async def never(steps):
            return False

        assert not await should_stop(never, [step()])

    async def test_what_a_condition_raises_comes_through(self):
        with pytest.raises(ZeroDivisionError):
            await should_stop(lambda steps: 1 / 0 > 1, [step()])
