"""The record and the decorator (spec/02 §9.1)."""

import asyncio

import pytest

from thinkwell.core.errors import ToolDefinitionError
from thinkwell.tools import Tool, as_tool, bind_tools, from_json_schema, is_tool, tool


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
        said = await asyncio.gather(*(b.execute({"name": "A"}, None) for b in bound))  # type: ignore[arg-type]
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
            as_tool(42)  # type: ignore[arg-type]
