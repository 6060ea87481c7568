"""Tool objects of pydantic-ai are taken as they are."""

import subprocess
import sys
from dataclasses import dataclass

import msgspec
import pytest
from pydantic_ai import ModelRetry, RunContext, ToolReturn
from pydantic_ai import Tool as PydanticTool
from pydantic_ai.exceptions import ApprovalRequired

from tests.unit.tools.support import CTX
from thinkwell.core.errors import ToolDefinitionError, ToolError, ToolInputError, ToolOutputError
from thinkwell.tools.execute import check_input, run_tool
from thinkwell.tools.pydantic_ai_tool import takes_run_context
from thinkwell.tools.tool import as_tool


def add(a: int, b: int = 1) -> int:
    """Adds two numbers.

    Args:
        a: The first.
        b: The second.
    """
    return a + b


async def call(function, value=None, *, ctx=CTX, **options):
    made = as_tool(PydanticTool(function, **options))
    return await run_tool(made, check_input(made, value or {}).value, ctx, lambda _: None)


class TestTakingOver:
    def test_name_description_and_schema_are_its_own(self):
        made = as_tool(PydanticTool(add, name="plus", timeout=3.0, metadata={"k": 1}))
        assert (made.name, made.timeout, made.metadata) == ("plus", 3.0, {"k": 1})
        assert made.description.startswith("Adds two numbers.")
        assert made.input_schema["required"] == ["a"]
        assert made.input_schema["properties"]["a"]["description"] == "The first."

    @pytest.mark.parametrize("wanted", [True, False])
    def test_a_wish_for_approval_is_kept(self, wanted):
        assert as_tool(PydanticTool(add, requires_approval=wanted)).needs_approval is wanted

    @pytest.mark.parametrize(
        "options", [{"prepare": lambda ctx, definition: definition}, {"sequential": True}]
    )
    def test_what_cannot_be_honoured_is_refused(self, options):
        with pytest.raises(ToolDefinitionError, match="has no equal here"):
            as_tool(PydanticTool(add, **options))

    def test_pydantic_ai_is_not_imported_to_recognise_one(self):
        program = (
            "import sys\n"
            "from thinkwell.tools.tool import as_tool\n"
            "async def add(a: int): ...\n"
            "as_tool(add)\n"
            "sys.exit('pydantic_ai' in sys.modules)"
        )
        done = subprocess.run([sys.executable, "-c", program], check=False)
        assert done.returncode == 0


class TestRunning:
    async def test_an_ordinary_and_an_async_function_give_their_value(self):
        async def double(n: int) -> int:
            return n * 2

        assert await call(add, {"a": 2}) == 3
        assert await call(double, {"n": 2}) == 4

    async def test_its_own_schema_checks_the_arguments(self):
        with pytest.raises(ToolInputError, match="missing argument 'a'"):
            await call(add, {"b": 1})
        with pytest.raises(ToolInputError, match="argument 'a'"):
            await call(add, {"a": "many"})

    async def test_a_single_object_argument_is_filled_from_the_top(self):
        @dataclass
        class Place:
            city: str

        async def visit(place: Place) -> str:
            return place.city

        assert await call(visit, {"city": "Rome"}) == "Rome"

    async def test_a_run_context_carries_the_call_and_the_runtime_context(self):
        async def who(ctx: RunContext[str]) -> list:
            return [ctx.deps, ctx.tool_call_id, ctx.tool_name, ctx.run_step]

        assert await call(who) == [None, "call-1", "x", 0]
        ctx = msgspec.structs.replace(CTX, runtime_context="Ann")
        assert (await call(who, ctx=ctx))[0] == "Ann"

    async def test_a_tool_from_a_schema_gets_what_the_model_sent(self):
        given = PydanticTool.from_schema(
            lambda **arguments: arguments, "echo", "Echoes.", {"type": "object"}
        )
        assert await run_tool(as_tool(given), {"a": [1]}, CTX, lambda _: None) == {"a": [1]}


class TestItsOwnErrorsAndResults:
    async def test_a_wish_to_retry_is_text_for_the_model(self):
        async def picky() -> None:
            raise ModelRetry("say please")

        with pytest.raises(ModelRetry, match="say please"):
            await call(picky)

    async def test_its_validator_of_arguments_is_asked_before_the_function(self):
        async def check(ctx, a: int, b: int = 1) -> None:
            if a > b:
                raise ModelRetry("a must not be above b")

        with pytest.raises(ModelRetry, match="not be above"):
            await call(add, {"a": 2, "b": 1}, args_validator=check)
        assert await call(add, {"a": 1, "b": 1}, args_validator=check) == 2

    async def test_an_approval_asked_for_too_late_says_what_to_write(self):
        async def late(ctx: RunContext[None]) -> str:
            if not ctx.tool_call_approved:
                raise ApprovalRequired
            return "done"

        with pytest.raises(ToolError, match="requires_approval=True"):
            await call(late)
        assert await call(late, requires_approval=True) == "done"

    async def test_a_tool_return_is_unpacked(self):
        async def bare():
            return ToolReturn([1], metadata={"kept": "apart"})

        async def with_words():
            return ToolReturn(1, content="One is enough.")

        async def with_bytes():
            return ToolReturn(1, content=[b"bytes"])  # type: ignore[list-item]

        assert await call(bare) == [1]
        assert await call(with_words) == {"result": 1, "content": "One is enough."}
        with pytest.raises(ToolOutputError):
            await call(with_bytes)


class TestAFunctionWithARunContext:
    @pytest.mark.parametrize(
        ("hints", "is_one"),
        [
            ({"ctx": RunContext, "a": int}, True),
            ({"ctx": RunContext[int], "a": int}, True),
            ({"ctx": "RunContext[int]", "a": int}, True),
            ({"ctx": "pydantic_ai.RunContext", "a": int}, True),
            ({"a": int, "ctx": RunContext[int]}, False),
            ({"ctx": "str"}, False),
            ({}, False),
        ],
    )
    def test_it_is_known_by_its_first_argument(self, hints, is_one):
        scope = {}
        exec(f"def written({', '.join(hints)}): ...", scope)
        scope["written"].__annotations__ = hints
        assert takes_run_context(scope["written"]) is is_one
