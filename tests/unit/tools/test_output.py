"""Structured output (spec/02 §8.3-8.4, AC65, AC66)."""

from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Literal, NewType

import pytest
from pydantic import BaseModel, ConfigDict, Field, conlist
from typing_extensions import TypeAliasType, TypedDict

from thinkwell.core.errors import ConfigurationError, OutputError, ToolInputError
from thinkwell.tools import Output
from thinkwell.tools.execute import check_input
from thinkwell.tools.output import (
    correction_request,
    final_answer_instruction,
    final_answer_tool,
    resolve_mode,
)

Numbers = TypeAliasType("Numbers", list[int])


class Trip(BaseModel):
    city: str
    days: int


class Node(BaseModel):
    name: str
    below: list["Node"] = []


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)
    day: date


@dataclass
class Point:
    x: int
    y: int


class Colour(TypedDict):
    name: str


SCHEMA = {
    "title": "A trip!",
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
}


class TestSchemas:
    @pytest.mark.parametrize(
        ("schema", "text", "value"),
        [
            (Trip, '{"city": "Rome", "days": 2}', Trip(city="Rome", days=2)),
            (
                Node,
                '{"name": "a", "below": [{"name": "b"}]}',
                Node(name="a", below=[Node(name="b")]),
            ),
            (Strict, '{"day": "2025-01-31"}', Strict(day=date(2025, 1, 31))),
            (Point, '{"x": 1, "y": 2}', Point(1, 2)),
            (Colour, '{"name": "red"}', {"name": "red"}),
            (SCHEMA, '{"city": "Rome"}', {"city": "Rome"}),
            (list[int], '{"value": [1, 2]}', [1, 2]),
            (Trip | None, '{"value": null}', None),
            (Literal["a", "b"], '{"value": "a"}', "a"),
            ({"type": "array", "items": {"type": "integer"}}, '{"value": [1]}', [1]),
            ({"enum": [1, 2]}, '{"value": 2}', 2),
        ],
    )
    def test_every_kind_of_schema_is_an_object_to_the_model_and_a_value_to_us(
        self, schema, text, value
    ):
        output = Output(schema)
        assert output.json_schema["type"] == "object"
        assert output.parse(text) == value

    def test_definitions_stay_at_the_top(self):
        assert "Node" in Output(Node).json_schema["$defs"]
        wrapped = Output(list[Trip]).json_schema
        assert "Trip" in wrapped["$defs"]
        assert "$defs" not in wrapped["properties"]["value"]

    @pytest.mark.parametrize(
        ("output", "name"),
        [
            (Output(Trip), "Trip"),
            (Output(SCHEMA), "A_trip"),
            (Output({"type": "object"}), "answer"),
            (Output(Trip, name="my trip"), "my_trip"),
        ],
    )
    def test_the_name_is_one_that_providers_take(self, output, name):
        assert output.name == name

    @pytest.mark.parametrize(
        "value", [Trip(city="Oslo", days=1), Point(1, 2), 3, [int], "json", "int", len, lambda: 1]
    )
    def test_a_value_in_the_place_of_its_class_is_refused(self, value):
        with pytest.raises(ConfigurationError, match=r"not a class. Give the class.*`output="):
            Output(value)

    @pytest.mark.parametrize(
        "kind",
        [
            list[int],
            int | None,
            Literal["a"],
            Annotated[int, Field(gt=1)],
            NewType("Metres", int),
            Numbers,
            list[Trip] | None,
            Any,
            conlist(int, min_length=1),
            type(None),
        ],
    )
    def test_every_type_can_be_an_output(self, kind):
        assert Output(kind).json_schema["type"] == "object"

    def test_what_cannot_be_an_output_is_refused_at_once(self):
        class Plain: ...

        with pytest.raises(ConfigurationError, match="cannot be an output"):
            Output(Plain)
        with pytest.raises(ConfigurationError, match="auto, native, tool, prompted"):
            Output(Trip, mode="text")  # type: ignore[arg-type]
        with pytest.raises(ConfigurationError, match="0 or more"):
            Output(Trip, retries=-1)


class TestWrongAnswers:
    def test_each_wrong_field_is_named(self):
        with pytest.raises(OutputError) as caught:
            Output(Trip).parse('{"days": "many"}')
        missing, wrong = caught.value.problems
        assert missing == "missing field 'city'"
        assert wrong.startswith("field 'days': ")
        assert caught.value.raw == '{"days": "many"}'

    def test_a_json_schema_names_them_too(self):
        with pytest.raises(OutputError, match="field 'city': expected string"):
            Output(SCHEMA).validate({"city": 1})

    @pytest.mark.parametrize("text", ["", "Rome", '{"city": "Rome"'])
    def test_text_that_is_no_json_is_kept_as_it_was(self, text):
        with pytest.raises(OutputError, match="not JSON") as caught:
            Output(Trip).parse(text)
        assert caught.value.raw == text

    @pytest.mark.parametrize("text", ["[1]", "{}", "1"])
    def test_a_value_that_is_not_under_its_key_is_missing(self, text):
        with pytest.raises(OutputError, match="missing field 'value'"):
            Output(list[int]).parse(text)

    def test_the_request_to_try_again_lists_the_problems(self):
        text = correction_request(OutputError(("missing field 'city'", "field 'days': odd")))
        assert "- missing field 'city'\n- field 'days': odd" in text


class TestMode:
    @pytest.mark.parametrize(
        ("mode", "native", "tools", "chosen"),
        [
            ("auto", True, False, "native"),
            ("auto", True, True, "tool"),
            ("auto", False, False, "tool"),
            ("native", False, True, "native"),
            ("tool", True, False, "tool"),
        ],
    )
    def test_auto_is_native_only_where_it_works_and_no_tool_is_active(
        self, mode, native, tools, chosen
    ):
        output = Output(Trip, mode=mode)
        assert resolve_mode(output, native_supported=native, tools_active=tools) == chosen


class TestFinalAnswer:
    def test_its_input_is_the_typed_answer(self):
        made = final_answer_tool(Output(Trip), ())
        value = check_input(made, {"city": "Rome", "days": 2}).value
        assert value == Trip(city="Rome", days=2)
        assert (made.name, made.effect, made.is_client) == ("final_answer", "pure", False)
        assert made.input_schema["required"] == ["city", "days"]

    def test_an_answer_that_does_not_fit_is_wrong_input(self):
        with pytest.raises(ToolInputError, match="'final_answer': missing field 'city'") as caught:
            check_input(final_answer_tool(Output(Trip), ()), {"days": 2})
        assert isinstance(caught.value.__cause__, OutputError)

    @pytest.mark.parametrize(
        ("taken", "name"),
        [
            (["a"], "final_answer"),
            (["final_answer"], "final_answer_1"),
            (["final_answer", "final_answer_1"], "final_answer_2"),
        ],
    )
    def test_a_taken_name_gets_a_number(self, taken, name):
        made = final_answer_tool(Output(Trip), taken)
        assert made.name == name
        assert repr(name) in final_answer_instruction(made.name)
