"""Which scopes there are and who owns which tool name (spec/02 §12.5-12.8, AC75, AC77, AC78)."""

import pytest

from thinkwell.core.errors import ToolDefinitionError
from thinkwell.tools import Scope, ScopeRegistry, from_json_schema


def make(name: str, enabled=None):
    return from_json_schema(name, "", {}, lambda value, ctx: None, enabled=enabled)


def scope(name: str, *tools: str, **options):
    return Scope(name, tools=[make(tool) for tool in tools], **options)


class Log:
    """A registry that notes who is called when, and what could be seen then."""

    def __init__(self):
        self.seen = []
        self.registry = ScopeRegistry(
            on_register=lambda s: self.note("registered", s),
            on_unregister=lambda s: self.note("unregistered", s),
        )
        self.registry.subscribe(lambda: self.note("told", None))

    def note(self, what, which):
        names = [s.name for s in self.registry.get_snapshot()]
        self.seen.append((what, which.name if which else None, names))


class TestRegister:
    def test_a_scope_can_be_found_by_name_and_by_tool(self):
        registry, cart = ScopeRegistry(), scope("cart", "add")
        registry.register(cart)
        found = registry.find_tool("add")
        assert registry.get("cart") is cart
        assert found is not None
        assert (found.tool.name, found.scope, found.enabled) == ("add", cart, True)
        assert registry.find_tool("remove") is None

    def test_hooks_hear_after_the_change_and_subscribers_after_them(self):
        log = Log()
        dispose = log.registry.register(scope("cart"))
        dispose()
        assert log.seen == [
            ("registered", "cart", ["cart"]),
            ("told", None, ["cart"]),
            ("unregistered", "cart", []),
            ("told", None, []),
        ]

    @pytest.mark.parametrize(
        ("wrong", "text"),
        [
            (scope("cart", "new"), "scope named 'cart'"),
            (scope("shop", "new", "add"), "'add' of scope 'shop'.*scope 'cart'"),
            (scope("shop", "new", "new"), "'new' of scope 'shop'.*same scope"),
            (scope("shop", "new", "own"), "'own' of scope 'shop'.*the agent itself"),
        ],
    )
    def test_a_taken_name_raises_and_nothing_has_changed(self, wrong, text):
        registry = ScopeRegistry(reserved=lambda: {"own"})
        registry.register(scope("cart", "add"))
        before, told = registry.get_snapshot(), []
        registry.subscribe(lambda: told.append(1))
        with pytest.raises(ToolDefinitionError, match=text):
            registry.register(wrong)
        assert registry.get_snapshot() is before
        assert registry.find_tool("new") is None
        assert told == []


class TestUnregister:
    def test_the_names_are_free_again(self):
        registry = ScopeRegistry()
        registry.register(scope("cart", "add"))
        registry.unregister("cart")
        assert registry.find_tool("add") is None
        registry.register(scope("cart", "add"))

    def test_an_unknown_name_is_no_change(self):
        log = Log()
        log.registry.unregister("cart")
        assert log.seen == []

    def test_a_disposer_removes_only_its_own_scope_and_may_be_called_again(self):
        registry, second = ScopeRegistry(), scope("cart", "add")
        dispose = registry.register(scope("cart", "add"))
        dispose()
        registry.register(second)
        dispose()
        assert registry.get("cart") is second
        assert registry.find_tool("add") is not None


class TestSnapshot:
    def test_it_is_the_same_object_until_something_changes(self):
        registry = ScopeRegistry()
        registry.register(scope("a"))
        before = registry.get_snapshot()
        registry.unregister("nobody")
        assert registry.get_snapshot() is before
        registry.register(scope("b"))
        assert [s.name for s in registry.get_snapshot()] == ["a", "b"]
        assert [s.name for s in before] == ["a"]

    def test_a_subscriber_hears_nothing_after_it_left(self):
        registry, told = ScopeRegistry(), []
        leave = registry.subscribe(lambda: told.append(1))
        registry.register(scope("a"))
        leave()
        leave()
        registry.register(scope("b"))
        assert told == [1]

    def test_a_subscriber_that_raises_does_not_keep_others_from_hearing(self):
        registry, told = ScopeRegistry(), []
        registry.subscribe(lambda: [].pop())
        registry.subscribe(lambda: told.append(1))
        registry.register(scope("a"))
        assert told == [1]

    def test_a_hook_that_raises_reaches_the_caller_and_subscribers_still_hear(self):
        def fail(_scope):
            raise RuntimeError("hook")

        registry, told = ScopeRegistry(on_register=fail), []
        registry.subscribe(lambda: told.append(1))
        with pytest.raises(RuntimeError, match="hook"):
            registry.register(scope("a"))
        assert (told, registry.get("a") is not None) == ([1], True)


class TestEnabled:
    def test_it_is_asked_each_time_for_scope_and_tool(self):
        state = {"scope": True, "tool": True}
        registry = ScopeRegistry()
        tools = [make("a", lambda: state["tool"]), make("b")]
        registry.register(Scope("s", tools=tools, enabled=lambda: state["scope"]))
        assert set(registry.active_tools()) == {"a", "b"}
        state["tool"] = False
        assert set(registry.active_tools()) == {"b"}
        state["scope"] = False
        assert registry.active_tools() == {}

    def test_a_tool_of_a_scope_whose_switch_raises_is_found_but_off(self):
        registry = ScopeRegistry()
        registry.register(scope("s", "a", enabled=lambda: 1 / 0))
        found = registry.find_tool("a")
        assert found is not None
        assert not found.enabled
        assert registry.active_tools() == {}

    async def test_sections_come_from_what_is_registered_now(self):
        registry = ScopeRegistry()
        dispose = registry.register(Scope("s", context="Here."))
        assert (await registry.sections()).system == "## s\nHere."
        dispose()
        assert (await registry.sections()).system == ""
