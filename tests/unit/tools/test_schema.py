"""Signatures as schemas, and the validation of arguments (spec/02 §9.1, §9.5)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from thinkwell.core.errors import ToolDefinitionError, ToolInputError
from thinkwell.tools import ToolContext, from_json_schema
from thinkwell.tools.execute import check_input
from thinkwell.tools.tool import as_tool

if TYPE_CHECKING:
    from decimal import Decimal


class Unit(Enum):
    CELSIUS = "c"
    FAHRENHEIT = "f"


class Place(BaseModel):
    city: str
    tags: list[str] = []


@dataclass
class Point:
    x: int
    y: int


def forecast(city: str, ctx: ToolContext, days: Annotated[int, Field(ge=1)] = 3) -> Decimal:
    """Tells the weather
    of the next days.

    It is never wrong.

    Args:
        city: Name of the city,
            in English.
        days (int): How far to look.

    Returns:
        Nothing of interest.
    """
    raise NotImplementedError


def locate(place: Place, point: Point, unit: Unit, mode: Literal["a", "b"] = "a") -> None: ...


def problem_of(function, value: dict[str, Any]) -> str:
    with pytest.raises(ToolInputError) as caught:
        check_input(as_tool(function), value)
    return caught.value.detail


class TestSchema:
    def test_required_optional_and_defaults(self):
        schema = as_tool(forecast).input_schema
        assert schema["required"] == ["city"]
        assert schema["properties"]["days"]["default"] == 3
        assert schema["additionalProperties"] is False

    def test_the_context_is_not_part_of_it(self):
        assert set(as_tool(forecast).input_schema["properties"]) == {"city", "days"}

    def test_the_docstring_gives_descriptions(self):
        made = as_tool(forecast)
        assert made.description == "Tells the weather of the next days."
        assert made.input_schema["properties"]["city"]["description"] == (
            "Name of the city, in English."
        )
        assert made.input_schema["properties"]["days"]["description"] == "How far to look."

    def test_only_keys_providers_accept_stand_at_the_root(self):
        schema = as_tool(locate).input_schema
        assert set(schema) == {
            "type",
            "properties",
            "required",
            "additionalProperties",
            "$defs",
        }

    def test_no_arguments_is_an_empty_object(self):
        def ping() -> None: ...

        assert as_tool(ping).input_schema == {
            "type": "object",
            "properties": {},
            "additionalProperties": False,
        }

    def test_names_that_pydantic_uses_itself_are_allowed(self):
        def odd(schema: str, copy: str, _hidden: str, model_config: str) -> None: ...

        made = as_tool(odd)
        given = dict.fromkeys(("schema", "copy", "_hidden", "model_config"), "x")
        assert check_input(made, given).value == given

    def test_a_return_type_only_checkers_know_does_not_matter(self):
        assert as_tool(forecast).name == "forecast"

    def test_an_annotation_that_cannot_be_resolved_says_so(self):
        def broken(value: Decimal) -> None: ...

        with pytest.raises(ToolDefinitionError, match="'Decimal' is not defined"):
            as_tool(broken)

    def test_a_type_without_a_schema_is_refused(self):
        def broken(value: object, handle: asyncio_handle) -> None: ...

        with pytest.raises(ToolDefinitionError, match="broken"):
            as_tool(broken)

    @pytest.mark.parametrize("kind", ["*args", "**options", "positional, /"])
    def test_only_named_parameters_are_allowed(self, kind):
        function = eval(f"lambda {kind}: None")
        with pytest.raises(ToolDefinitionError, match="ordinary parameter"):
            as_tool(function)


class asyncio_handle:  # noqa: N801 - a class pydantic cannot describe
    pass


class TestValidation:
    def test_the_handler_gets_typed_values(self):
        value = {"place": {"city": "Rome"}, "point": {"x": 1, "y": 2}, "unit": "f"}
        checked = check_input(as_tool(locate), value)
        assert checked.value == {
            "place": Place(city="Rome"),
            "point": Point(1, 2),
            "unit": Unit.FAHRENHEIT,
        }
        assert checked.raw is value

    def test_arguments_not_given_are_left_to_the_function(self):
        assert check_input(as_tool(forecast), {"city": "Rome"}).value == {"city": "Rome"}

    def test_a_missing_argument_is_named(self):
        assert problem_of(forecast, {}) == "missing argument 'city'"

    def test_an_unknown_argument_is_named(self):
        assert problem_of(forecast, {"city": "Rome", "zip": 1}) == "unknown argument 'zip'"

    def test_every_wrong_argument_is_named_with_the_reason(self):
        detail = problem_of(forecast, {"city": 5, "days": 0})
        assert detail.startswith("argument 'city': Input should be a valid string; ")
        assert "argument 'days': Input should be greater than or equal to 1" in detail

    def test_a_nested_field_is_named_by_its_path(self):
        value = {"place": {}, "point": {"x": 1, "y": 2}, "unit": "c"}
        assert problem_of(locate, value) == "missing argument 'place.city'"


WEATHER = {
    "type": "object",
    "title": "left out",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": ["integer", "null"]},
        "unit": {"enum": ["c", "f"]},
    },
    "required": ["city"],
    "additionalProperties": False,
}


class TestGivenSchema:
    def tool(self):
        return from_json_schema("weather", "", WEATHER, lambda value, ctx: value)

    def test_only_known_root_keys_are_kept(self):
        assert "title" not in self.tool().input_schema

    @pytest.mark.parametrize("days", [1, 2.0, None])
    def test_fitting_arguments_pass_unchanged(self, days):
        value = {"city": "Rome", "days": days}
        assert check_input(self.tool(), value).value == value

    @pytest.mark.parametrize(
        ("value", "detail"),
        [
            ({}, "missing argument 'city'"),
            ({"city": 1}, "argument 'city': expected string"),
            ({"city": "R", "days": True}, "argument 'days': expected integer or null"),
            ({"city": "R", "unit": "k"}, "argument 'unit': expected one of 'c', 'f'"),
            ({"city": "R", "zip": 1}, "unknown argument 'zip'"),
        ],
    )
    def test_what_does_not_fit_is_named(self, value, detail):
        with pytest.raises(ToolInputError) as caught:
            check_input(self.tool(), value)
        assert caught.value.detail == detail

    def test_a_schema_that_is_no_object_is_refused(self):
        with pytest.raises(ToolDefinitionError, match="must be an object"):
            from_json_schema("x", "", {"type": "array"}, lambda value, ctx: None)
