"""One table of time limits: defaults, the agent's, the turn's (spec/02 §8.1)."""

from __future__ import annotations

from typing import Any

import pytest

from thinkwell import Think
from thinkwell.core.errors import ConfigurationError
from thinkwell.hooks.time_limits import TimeLimits, limits_of


def test_the_figures_are_fixed():
    assert TimeLimits() == TimeLimits(
        connect=15, first_chunk=180, chunk=120, step=1800, tool=600, hook=60, total=None
    )


def test_the_agent_changes_limits_by_name_and_the_turn_changes_them_again():
    limits = limits_of({"tool": 30, "step": 5}, {"tool": 10, "chunk": None})
    assert (limits.tool, limits.step, limits.chunk, limits.hook) == (10, 5, None, 60)


def test_one_number_limits_the_whole_turn_and_leaves_the_others():
    assert limits_of({}, 7) == TimeLimits(total=7)


def test_tools_by_name_are_merged_and_the_nearest_limit_of_a_tool_wins():
    limits = limits_of({"tools": {"a": 1, "b": 2}}, {"tools": {"b": None}})
    assert [limits.of_tool(name, own) for name, own in (("a", 9), ("b", 9), ("c", 9))] == [
        1,
        None,
        9,
    ]
    assert limits.of_tool("c", None) == 600


@pytest.mark.parametrize("value", [0, -1, "soon", True])
def test_a_limit_that_is_no_time_is_refused_by_name(value: object):
    with pytest.raises(ConfigurationError, match="chunk"):
        limits_of({"chunk": value})


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"tol": 3}, "'tol'. Known: connect, .*tool, tools, hook, .*total"),
        ({"tool": -1}, "tool is -1"),
        ({"tool": "soon"}, "tool is 'soon'"),
        ({"tools": 3}, "tools is 3"),
        (30, "Give seconds by name"),
    ],
)
def test_a_class_with_limits_that_are_none_is_refused_when_it_is_made(limits: Any, said: str):
    with pytest.raises(ConfigurationError, match=rf"Clerk\.time_limits is .*{said}"):
        type("Clerk", (Think,), {"time_limits": limits})


def test_the_grace_may_be_nothing_and_a_turn_may_change_it():
    assert limits_of({}).grace == 1.0
    assert limits_of({"grace": 0}).grace == 0
    assert limits_of({"grace": 0}, {"grace": 2.5}).grace == 2.5


@pytest.mark.parametrize("wrong", [None, -1, True, "1"])
def test_a_grace_that_is_no_time_is_refused(wrong: object):
    with pytest.raises(ConfigurationError, match="grace"):
        limits_of({"grace": wrong})
