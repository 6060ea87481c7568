"""Who is called at which moment (spec/02 §5.0.1-5.0.3, AC69, AC70)."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from pydantic import TypeAdapter

from thinkwell.agent.think import Think
from thinkwell.hooks.read_only import ReadOnlyDict, ordinary, read_only_copy
from thinkwell.hooks.registry import EVENTS, HookRegistry


class Base:
    """Has every hook; none is overridden."""


for _event in EVENTS:
    setattr(Base, _event, lambda self, *args: None)


class Own(Base):
    def before_turn(self, ctx: Any) -> None:
        """Overridden."""


def test_only_overridden_methods_are_called():
    registry = HookRegistry(Own(), Base)
    assert [len(registry.hooks(event)) for event in EVENTS] == [
        1 if event == "before_turn" else 0 for event in EVENTS
    ]
    assert registry.hooks("before_turn")[0].name == "Own.before_turn"


def test_the_class_comes_first_then_hooks_in_the_order_they_were_added():
    registry = HookRegistry(Own(), Base)
    registry.add("before_turn", print, name="one")
    registry.add("before_turn", print, name="two")
    assert [hook.name for hook in registry.hooks("before_turn")] == [
        *("Own.before_turn", "one", "two")
    ]


def test_ac69_the_same_function_twice_is_two_registrations():
    registry = HookRegistry(Base(), Base)
    first = registry.add("on_chunk", print)
    registry.add("on_chunk", print)
    first()
    first()
    assert len(registry.hooks("on_chunk")) == 1


def test_ac70_a_snapshot_does_not_change_and_knows_who_was_disposed():
    registry = HookRegistry(Base(), Base)
    dispose = registry.add("on_chunk", print)
    snapshot = registry.hooks("on_chunk")
    registry.add("on_chunk", print)
    dispose()
    assert [hook.alive for hook in snapshot] == [False]


def test_a_hook_without_a_name_is_called_what_its_function_is_called():
    registry = HookRegistry(Base(), Base)

    def my_hook(_: Any) -> None:
        """A hook."""

    registry.add("on_chunk", my_hook)
    assert "my_hook" in registry.hooks("on_chunk")[0].name


def test_an_unknown_event_names_the_known_ones():
    with pytest.raises(ValueError, match="before_turn"):
        HookRegistry(Base(), Base).add("before_trun", print)


def test_every_event_is_a_method_of_think():
    assert all(callable(getattr(Think, event)) for event in EVENTS)


class TestReadOnly:
    @pytest.mark.parametrize(
        "change",
        [
            lambda d: d.__setitem__("a", 2),
            lambda d: d.__delitem__("a"),
            lambda d: d.update(b=1),
            lambda d: d.pop("a"),
            lambda d: d.popitem(),
            lambda d: d.clear(),
            lambda d: d.setdefault("b", 1),
            lambda d: d.__ior__({"b": 1}),
        ],
    )
    def test_5_0_5_it_cannot_be_changed(self, change: Any):
        shown = ReadOnlyDict({"a": 1})
        with pytest.raises(TypeError, match="Return a value"):
            change(shown)
        assert shown == {"a": 1}

    @pytest.mark.parametrize(
        "change",
        [
            lambda d: d.__setitem__(0, 2),
            lambda d: d.__delitem__(0),
            lambda d: d.__iadd__([2]),
            lambda d: d.__imul__(2),
            lambda d: d.append(2),
            lambda d: d.extend([2]),
            lambda d: d.insert(0, 2),
            lambda d: d.pop(),
            lambda d: d.remove(1),
            lambda d: d.clear(),
            lambda d: d.sort(),
            lambda d: d.reverse(),
        ],
    )
    def test_5_0_5_nor_can_a_list(self, change: Any):
        shown = read_only_copy([1])
        with pytest.raises(TypeError, match="Return a value"):
            change(shown)
        assert shown == [1]

    def test_a_copy_can_be_changed(self):
        import copy

        for made in (dict(ReadOnlyDict(a=1)), copy.copy(ReadOnlyDict(a=1)), ReadOnlyDict(a=1) | {}):
            made["a"] = 2
            assert made == {"a": 2}

    def test_what_is_nested_cannot_be_changed_either_but_in_a_deep_copy(self):
        import copy

        original = {"list": [1, {"n": 1}], "object": {"n": 1}}
        shown = read_only_copy(original)
        with pytest.raises(TypeError, match="Return a value"):
            shown["object"]["n"] = 2
        with pytest.raises(TypeError, match="Return a value"):
            shown["list"][1]["n"] = 2
        with pytest.raises(TypeError, match="Return a value"):
            dict(shown)["list"].append(2)
        assert shown == original == {"list": [1, {"n": 1}], "object": {"n": 1}}
        for made in (copy.deepcopy(shown), ordinary(shown)):
            made["list"][1]["n"] = made["object"]["n"] = 2
            assert made == {"list": [1, {"n": 2}], "object": {"n": 2}}

    def test_it_is_json_as_any_other(self):
        shown = read_only_copy({"list": [{"n": 1}]})
        assert json.dumps(shown) == '{"list": [{"n": 1}]}'
        assert msgspec.convert(shown, dict[str, list[dict[str, int]]]) == shown
        assert TypeAdapter(dict[str, list[dict[str, int]]]).validate_python(shown) == shown

    def test_a_scalar_is_itself(self):
        assert [read_only_copy(value) for value in (1, "a", None, [1])] == [1, "a", None, [1]]
