"""A second chance for a wrong call (spec/02 §9.13, AC23, AC24)."""

import pytest

from thinkwell.core.errors import (
    AbortTurn,
    ToolError,
    ToolInputError,
    ToolRepairError,
    UnknownToolError,
)
from thinkwell.tools import RepairCall, client_tool
from thinkwell.tools.repair import RawCall, repair_call

CALL = RawCall(tool_call_id="c1", tool_name="wether", input='{"city": ')


def context(error: ToolError | None = None) -> RepairCall:
    return RepairCall(
        tool_call=CALL,
        error=error or UnknownToolError("wether", ["weather"]),
        tools={"weather": client_tool("weather", "", {"required": ["city"]})},
        messages=(),
        system="Be brief.",
    )


class TestContext:
    def test_it_gives_the_schema_of_offered_tools_only(self):
        schema = context().schema("weather")
        assert schema is not None
        assert schema["required"] == ["city"]
        assert context().schema("wether") is None

    def test_a_corrected_call_takes_arguments_as_text_or_as_an_object(self):
        assert CALL.corrected(tool_name="weather").input == CALL.input
        assert CALL.corrected(input="{}") == RawCall(
            tool_call_id="c1", tool_name="wether", input="{}"
        )
        assert CALL.corrected(input={"city": "Rome"}).input == '{"city":"Rome"}'


class TestRepair:
    async def test_without_a_function_nothing_is_repaired(self):
        assert await repair_call(None, context()) is None

    async def test_the_corrected_call_comes_back(self):
        repaired = await repair_call(lambda ctx: ctx.tool_call.corrected(input="{}"), context())
        assert repaired == RawCall(tool_call_id="c1", tool_name="wether", input="{}")

    async def test_it_may_be_async_and_may_give_up(self):
        async def give_up(ctx):
            return None

        assert await repair_call(give_up, context()) is None

    async def test_the_id_of_the_call_cannot_change(self):
        other = RawCall(tool_call_id="c9", tool_name="weather", input="{}")
        repaired = await repair_call(lambda ctx: other, context())
        assert repaired is not None
        assert repaired.tool_call_id == "c1"

    async def test_arguments_that_do_not_fit_are_repaired_too(self):
        error = ToolInputError("weather", "no JSON")
        assert await repair_call(lambda ctx: ctx.tool_call, context(error)) == CALL

    async def test_any_other_problem_is_not_shown_to_it(self):
        def never(ctx):
            raise AssertionError("asked")

        assert await repair_call(never, context(ToolError("denied"))) is None

    async def test_its_own_error_is_told_beside_the_first_problem(self):
        def fail(ctx):
            raise RuntimeError("no idea")

        with pytest.raises(
            ToolRepairError, match=r"no tool named 'wether'.*failed as well: no idea"
        ):
            await repair_call(fail, context())

    async def test_an_answer_of_another_type_says_what_to_return(self):
        with pytest.raises(ToolRepairError, match="returned a dict"):
            await repair_call(lambda ctx: {"input": "{}"}, context())  # type: ignore[arg-type, return-value]

    async def test_a_stop_of_the_turn_is_not_swallowed(self):
        def stop(ctx):
            raise AbortTurn("enough")

        with pytest.raises(AbortTurn):
            await repair_call(stop, context())
