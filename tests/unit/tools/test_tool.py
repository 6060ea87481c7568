"""The record and the decorator (spec/02 §9.1)."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from thinkwell.core.errors import ToolDefinitionError, ToolInputError
from thinkwell.tools import Tool, client_tool, from_json_schema, tool
from thinkwell.tools.execute import check_input
from thinkwell.tools.tool import as_tool, bind_tools, is_tool


class Base:
    greeting = "Hello"

    @tool
    async def greet(self, name: str) -> str:
        """Greets somebody."""
        return f"{self.greeting} {name}"

    @tool(name="sum-up", description="Adds.", effect="pure", timeout=5.0, inline=True)
    def add(self, a: int, b: int = 1) -> int:
        return a + b

    @staticmethod
    @tool
    def shout(text: str) -> str:
        return text.upper()

    def not_offered(self) -> None: ...


class TestDecorator:
    async def test_the_decorated_method_stays_callable_as_written(self):
        assert await Base().greet("Ann") == "Hello Ann"
        assert Base().add(1) == 2

    def test_only_decorated_methods_are_bound_by_tool_name(self):
        assert set(bind_tools(Base())) == {"greet", "sum-up", "shout"}

    def test_a_decorated_member_is_recognised_in_a_class_body(self):
        body = vars(Base)
        assert [is_tool(body[name]) for name in ("greet", "shout", "not_offered", "greeting")] == [
            True,
            True,
            False,
            False,
        ]

    def test_options_reach_the_record(self):
        made = bind_tools(Base())["sum-up"]
        assert (made.description, made.effect, made.timeout) == ("Adds.", "pure", 5.0)
        assert not made.blocking

    def test_the_default_effect_is_once_and_there_is_no_time_limit(self):
        made = bind_tools(Base())["greet"]
        assert (made.effect, made.timeout) == ("once", None)

    def test_an_ordinary_function_is_blocking_and_a_coroutine_is_not(self):
        tools = bind_tools(Base())
        assert tools["shout"].blocking
        assert not tools["greet"].blocking

    def test_a_generator_is_refused_and_the_error_says_what_to_write(self):
        with pytest.raises(ToolDefinitionError, match="async def numbers"):

            @tool
            def numbers():
                yield 1

    def test_a_wrapped_method_is_refused(self):
        with pytest.raises(ToolDefinitionError, match="above @tool"):
            tool(staticmethod(lambda: None))

    @pytest.mark.parametrize("name", ["", "two words", "ü", "a.b", "a\n"])
    def test_a_name_no_provider_takes_is_refused(self, name):
        with pytest.raises(ToolDefinitionError, match="no tool name"):
            from_json_schema(name, "", {}, lambda value, ctx: None)

    def test_an_unknown_effect_is_refused(self):
        with pytest.raises(ToolDefinitionError, match="pure, idempotent, once"):
            as_tool(tool(name="x", effect="sometimes")(lambda: None))  # type: ignore[call-overload]

    def test_a_time_limit_of_zero_is_refused(self):
        with pytest.raises(ToolDefinitionError, match="above 0"):
            from_json_schema("x", "", {}, lambda value, ctx: None, timeout=0)


class TestOptionsThatWouldDoNothing:
    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"approvers": "boss"}, "needs_approval=True, approvers="),
            ({"needs_approval": True, "approvers": 5}, "names nobody"),
            ({"needs_approval": True, "approvers": []}, "names nobody"),
            ({"needs_approval": True, "approvers": ""}, "names nobody"),
            ({"needs_approval": True, "approvers": [7]}, "names nobody"),
            ({"reconcile": "find_payment"}, 'effect="once", reconcile=find_payment'),
            ({"reconcile": print, "effect": "pure"}, "never asked"),
            ({"reconcile": print, "effect": "idempotent"}, "never asked"),
        ],
    )
    def test_are_refused_where_they_are_written(self, options: dict[str, Any], said: str):
        with pytest.raises(ToolDefinitionError, match=said):

            @tool(**options)
            async def pay() -> None:
                """Pays."""

        with pytest.raises(ToolDefinitionError, match=said):
            from_json_schema("pay", "Pays.", {"type": "object"}, print, **options)

    def test_a_client_tool_may_name_who_answers_it(self):
        assert replace(client_tool("ask"), approvers={"boss"}).approvers == {"boss"}


class TestInheritance:
    def test_an_override_wins(self):
        class Child(Base):
            @tool
            async def greet(self, name: str, loud: bool = False) -> str:
                """Greets loudly."""
                return name

        made = bind_tools(Child())["greet"]
        assert made.description == "Greets loudly."
        assert "loud" in made.input_schema["properties"]

    def test_an_override_without_the_decorator_takes_the_tool_away(self):
        class Child(Base):
            async def greet(self, name: str) -> str:
                return name

        assert "greet" not in bind_tools(Child())

    async def test_a_tool_is_bound_to_its_own_instance(self):
        one, two = Base(), Base()
        two.greeting = "Bye"
        bound = [bind_tools(agent)["greet"] for agent in (one, two)]
        said = await asyncio.gather(*(b.execute({"name": "A"}, None) for b in bound))  # type: ignore[misc]
        assert said == ["Hello A", "Bye A"]

    def test_two_methods_with_one_tool_name_are_an_error_that_names_both(self):
        class Child(Base):
            @tool(name="greet")
            async def welcome(self) -> None: ...

        with pytest.raises(ToolDefinitionError, match="greet and welcome of Child"):
            bind_tools(Child())


class TestPlainFunctions:
    def test_a_decorated_function_becomes_a_tool(self):
        @tool(effect="idempotent")
        def roll(sides: int = 6) -> int:
            """Rolls a die."""
            return sides

        made = as_tool(roll)
        assert (made.name, made.description, made.effect) == ("roll", "Rolls a die.", "idempotent")

    def test_an_undecorated_function_is_taken_with_defaults(self):
        async def ping() -> str:
            return "pong"

        assert as_tool(ping).name == "ping"

    def test_a_bound_method_is_taken_without_its_self(self):
        assert set(as_tool(Base().greet).input_schema["properties"]) == {"name"}

    def test_a_tool_comes_back_as_it_is(self):
        made = from_json_schema("x", "", {"type": "object"}, lambda value, ctx: value)
        assert isinstance(made, Tool)
        assert as_tool(made) is made

    def test_anything_else_is_refused(self):
        with pytest.raises(ToolDefinitionError, match="neither a function nor a Tool"):
            as_tool(42)


class TestOptions:
    def test_every_option_of_the_decorator_reaches_the_record(self):
        options = {
            "needs_approval": lambda value, ctx: True,
            "to_model_output": lambda **call: {"type": "text", "value": ""},
            "enabled": lambda: True,
            "title": "Roll a die",
            "metadata": {"icon": "die"},
        }

        @tool(**options)
        def roll() -> int:
            return 6

        made = as_tool(roll)
        assert {name: getattr(made, name) for name in options} == options

    def test_a_given_schema_takes_the_same_options(self):
        made = from_json_schema(
            "x", "", {}, lambda value, ctx: None, needs_approval=True, title="X"
        )
        assert (made.needs_approval, made.title) == (True, "X")

    def test_an_option_nobody_knows_is_refused_where_it_is_written(self):
        with pytest.raises(TypeError, match="need_approval"):
            tool(need_approval=True)  # type: ignore[call-overload]

    def test_a_tool_is_enabled_unless_it_says_otherwise(self):
        made = from_json_schema("x", "", {}, lambda value, ctx: None)
        assert made.is_enabled()

    def test_enabled_is_asked_anew_each_time_and_an_error_means_no(self):
        answers = iter([True, False])
        made = from_json_schema("x", "", {}, lambda value, ctx: None, enabled=lambda: next(answers))
        assert [made.is_enabled() for _ in range(3)] == [True, False, False]

    def test_an_async_enabled_is_refused(self):
        async def enabled():
            return False

        with pytest.raises(ToolDefinitionError, match="`enabled` of Tool 'x' is async"):
            from_json_schema("x", "", {}, lambda value, ctx: None, enabled=enabled)  # type: ignore[arg-type]


class TestClientTools:
    """A tool without a handler is answered by the client (spec/01 §11.1, spec/02 §9.1)."""

    def test_a_tool_without_a_handler_is_a_client_tool(self):
        made = client_tool("ask", "Asks.", {"properties": {"question": {"type": "string"}}})
        assert made.is_client
        assert made.description == "Asks."
        assert made.input_schema["type"] == "object"
        assert not from_json_schema("x", "", {}, lambda value, ctx: None).is_client

    def test_only_the_name_is_needed(self):
        made = client_tool("ask")
        assert (made.description, made.input_schema) == ("", {"type": "object", "properties": {}})

    def test_its_input_is_checked_like_any_other(self):
        made = client_tool("ask", None, {"properties": {"n": {"type": "integer"}, "free": True}})
        assert check_input(made, {"n": 1, "free": []}).raw == {"n": 1, "free": []}
        with pytest.raises(ToolInputError, match="'n': expected integer"):
            check_input(made, {"n": "one"})

    @pytest.mark.parametrize("name", [None, 3, "", "two words", ["ask"]])
    def test_a_wrong_name_is_refused(self, name):
        with pytest.raises(ToolDefinitionError):
            client_tool(name)

    @pytest.mark.parametrize(
        "parameters",
        [
            [],
            "object",
            {"type": "string"},
            {"type": {}},
            {"properties": []},
            {"properties": {"a": 1}},
            {"properties": {"a": {"type": 1}}},
            {"properties": {"a": {"type": [{}]}}},
            {"properties": {"a": {"enum": "abc"}}},
            {"required": "a"},
            {"required": [1]},
        ],
    )
    def test_what_is_no_schema_of_an_object_is_refused(self, parameters):
        with pytest.raises(ToolDefinitionError):
            client_tool("ask", None, parameters)

    def test_a_wrong_description_is_refused(self):
        with pytest.raises(ToolDefinitionError, match="description"):
            client_tool("ask", {"text": "Asks."})
